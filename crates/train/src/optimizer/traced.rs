//! An update on the capture device, whose tensors Burn's own walk cannot lift back into autodiff.

use std::any::Any;
use std::collections::HashMap;

use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::Tensor;
use leanburn_levers::captured;

use super::{OptimizerKind, adamw, lion, sgd};
use crate::Settings;

/// State of a traced optimizer.
pub struct Traced {
    settings: Settings,
    states: HashMap<ParamId, Box<dyn Any>>,
}

impl Traced {
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: *settings,
            states: HashMap::new(),
        }
    }

    /// The same operations as [`ModuleOptimizer::step`](burn::optim::ModuleOptimizer::step).
    pub fn step<M: Module>(
        &mut self,
        rates: ModuleLearningRate,
        module: M,
        gradients: GradientsParams,
    ) -> M {
        module.map(&mut Walk {
            traced: self,
            lr: rates.base(),
            gradients,
        })
    }

    fn step_one<const D: usize>(
        &mut self,
        lr: f64,
        id: ParamId,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
    ) -> Tensor<D> {
        let decay = if D > 1 {
            self.settings.weight_decay
        } else {
            0.0
        };
        match self.settings.optimizer {
            OptimizerKind::Sgd => self.by(&sgd(decay).build(), lr, id, tensor, gradient),
            OptimizerKind::AdamW => {
                let adamw = adamw(decay, self.settings.adam).build();
                self.by(&adamw, lr, id, tensor, gradient)
            }
            OptimizerKind::Lion => self.by(&lion(decay).build(), lr, id, tensor, gradient),
        }
    }

    fn by<O: Optimizer, const D: usize>(
        &mut self,
        optimizer: &O,
        lr: f64,
        id: ParamId,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
    ) -> Tensor<D> {
        let state = self
            .states
            .remove(&id)
            .and_then(|state| state.downcast().ok());
        let (tensor, state) = optimizer.step(lr, tensor, gradient, state.map(|state| *state));
        if let Some(state) = state {
            self.states.insert(id, Box::new(state));
        }
        tensor
    }
}

struct Walk<'a> {
    traced: &'a mut Traced,
    lr: f64,
    gradients: GradientsParams,
}

impl ModuleMapper for Walk<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        let tensor = match self.gradients.remove::<D>(id) {
            Some(gradient) => {
                let tensor = captured::inner(tensor);
                let tensor = self.traced.step_one(self.lr, id, tensor, gradient);
                captured::from_inner(tensor).require_grad()
            }
            None => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}
