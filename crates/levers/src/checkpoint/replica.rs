//! A module as it stood at the forward, to be run again without touching the original.

use std::collections::HashMap;

use burn::backend::DispatchTensor;
use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{GradientCheckpointingStrategy, Tensor};

/// What a module's float parameters and training flags are at one moment.
#[derive(Default)]
pub(super) struct Parts {
    /// Parameters that collect gradients, in the order of a visit.
    pub leaves: Vec<DispatchTensor>,
    /// Any parameter on an autodiff device, to know the device by.
    pub on_autodiff: Option<DispatchTensor>,
    /// Whether they collect gradients, of all on an autodiff device.
    gradients: HashMap<ParamId, bool>,
    flags: HashMap<ParamId, bool>,
    path: Vec<String>,
}

impl Parts {
    pub fn of<M: Module>(module: &M) -> Self {
        let mut parts = Self::default();
        module.visit(&mut parts);
        parts
    }
}

impl ModuleVisitor for Parts {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.base();
        if !tensor.is_autodiff() {
            return;
        }
        let leaf = tensor.is_require_grad();
        self.gradients.insert(param.id, leaf);
        if self.on_autodiff.is_none() {
            self.on_autodiff = Some(tensor.clone().into_dispatch());
        }
        if leaf {
            self.leaves.push(tensor.into_dispatch());
        } else {
            assert!(
                !tensor.is_tracked(),
                "checkpoint: parameter '{}' is the result of a computation (such as \
                 Module::to_device), so its gradient would be lost; use Module::fork, or pass the \
                 tensor as an input of the block",
                self.path.join(".")
            );
        }
    }

    fn visit_flag(&mut self, param: &Param<Flag>) {
        self.flags.insert(param.id, param.is_enabled());
    }
}

/// Holds no part of the graph: parameters by value, running statistics of its own.
pub(super) struct Replica<M> {
    module: M,
    gradients: HashMap<ParamId, bool>,
    flags: HashMap<ParamId, bool>,
    strategy: GradientCheckpointingStrategy,
}

impl<M: Module> Replica<M> {
    /// `capturing` devices have no values to protect, and refuse [`Module::valid`].
    pub fn new(
        module: &M,
        parts: Parts,
        strategy: GradientCheckpointingStrategy,
        capturing: bool,
    ) -> Self {
        Self {
            module: if capturing {
                module.clone()
            } else {
                module.valid()
            },
            gradients: parts.gradients,
            flags: parts.flags,
            strategy,
        }
    }

    /// The module with fresh leaves (`tracked`), or without any gradients.
    pub fn instance(&self, tracked: bool) -> M {
        let mut fresh = Fresh {
            replica: self,
            tracked,
        };
        self.module.clone().map(&mut fresh)
    }
}

struct Fresh<'a, M> {
    replica: &'a Replica<M>,
    tracked: bool,
}

impl<M> ModuleMapper for Fresh<'_, M> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(leaf) = self.replica.gradients.get(&param.id) else {
            // Was a constant in the forward, too.
            return param;
        };
        let tracked = self.tracked && *leaf;
        param.map(|tensor| {
            let tensor = match tensor.is_autodiff() {
                true => tensor.detach(),
                false => tensor
                    .autodiff()
                    .with_gradient_checkpointing_strategy(self.replica.strategy),
            };
            tensor.set_require_grad(tracked)
        })
    }

    fn map_flag(&mut self, param: Param<Flag>) -> Param<Flag> {
        match self.replica.flags.get(&param.id) {
            Some(enabled) => param.with_value(*enabled),
            None => param,
        }
    }
}
