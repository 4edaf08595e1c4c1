//! From scaled gradients to the ones an optimizer may use: unscale, check, global-norm clip.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{FloatDType, Tensor};
use leanburn_memory::trace::is_tracing;

use crate::ops::sum_of_squares;

/// Outcome of the one look at the gradients that an update needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientCheck {
    /// Loss as summed by the caller; whatever was passed in, read back along.
    pub loss: f64,
    /// L2 norm over all parameters, of the unscaled gradients, before clipping.
    pub norm: f64,
}

impl GradientCheck {
    /// Reads the loss and the global norm of `gradients * factor` in a single readback.
    ///
    /// `factor` undoes loss scale and accumulation. Sums are f32; a norm above 1.8e19 counts as
    /// not finite, as its square overflows.
    pub fn of<M: Module>(
        module: &M,
        gradients: &GradientsParams,
        factor: f64,
        loss: Tensor<1>,
    ) -> Self {
        let mut squares = SumOfSquares {
            gradients,
            factor,
            sum: None,
        };
        module.visit(&mut squares);
        let loss = loss.cast(FloatDType::F32);
        let values = match squares.sum {
            Some(sum) => Tensor::cat(vec![loss, sum], 0),
            None => Tensor::cat(vec![loss.clone(), loss.zeros_like()], 0),
        };
        if is_tracing() {
            // Nothing was computed; a traced step is one whose gradients are in order.
            return Self {
                loss: 0.0,
                norm: 1.0,
            };
        }
        let values: Vec<f64> = values.into_data().iter::<f64>().collect();
        Self {
            loss: values[0],
            norm: values[1].sqrt(),
        }
    }

    /// Whether the loss is a number.
    pub fn loss_finite(&self) -> bool {
        self.loss.is_finite()
    }

    /// Whether every gradient is.
    pub fn gradients_finite(&self) -> bool {
        self.norm.is_finite()
    }

    /// Factor that brings the norm down to `max_norm`; 1 where it is smaller, or where there is no limit.
    pub fn clip_factor(&self, max_norm: Option<f64>) -> f64 {
        max_norm.map_or(1.0, |max| (max / (self.norm + 1e-6)).min(1.0))
    }
}

/// Multiplies every gradient by `factor`, one tensor at a time, in place where its buffer is unshared.
pub fn scale<M: Module>(module: &M, gradients: &mut GradientsParams, factor: f64) {
    if factor != 1.0 {
        module.visit(&mut Scale { gradients, factor });
    }
}

/// Path of the first parameter, in module order, whose gradient is not finite.
pub fn first_non_finite<M: Module>(module: &M, gradients: &GradientsParams) -> Option<String> {
    let mut search = FirstNonFinite {
        gradients,
        path: Vec::new(),
        found: None,
    };
    module.visit(&mut search);
    search.found
}

struct SumOfSquares<'a> {
    gradients: &'a GradientsParams,
    factor: f64,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for SumOfSquares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let squares = sum_of_squares(gradient, self.factor);
            self.sum = Some(match self.sum.take() {
                Some(sum) => sum + squares,
                None => squares,
            });
        }
    }
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients
                .register(param.id, gradient.mul_scalar(self.factor));
        }
    }
}

struct FirstNonFinite<'a> {
    gradients: &'a GradientsParams,
    path: Vec<String>,
    found: Option<String>,
}

impl ModuleVisitor for FirstNonFinite<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.found.is_some() {
            return;
        }
        if let Some(gradient) = self.gradients.get::<D>(param.id)
            && !gradient.is_finite().all().into_scalar::<bool>()
        {
            self.found = Some(self.path.join("."));
        }
    }
}
