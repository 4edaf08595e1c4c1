//! Block checkpointing changes the memory and nothing else.

mod blocks;
mod bytes;
mod edges;
mod laws;
mod random;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};

use crate::support::{is_flex, relative_error, values};

/// What a step leaves behind: the loss, and by name the gradients and the running statistics.
#[derive(Debug, Default)]
pub struct Step {
    pub loss: f32,
    pub gradients: Vec<(String, Option<Vec<f32>>)>,
    pub buffers: Vec<(String, Vec<f32>)>,
}

impl Step {
    /// Runs a step on a copy of the model, and collects the gradients of `extra` leaves too.
    pub fn run<M: Module, const D: usize>(
        model: &M,
        extra: &[&Tensor<D>],
        loss: impl FnOnce(&M, &[Tensor<D>]) -> Tensor<1>,
    ) -> Self {
        let model = copy(model);
        let extra: Vec<_> = extra.iter().map(|x| (*x).clone().detach()).collect();
        let loss = loss(&model, &extra);
        let gradients = loss.backward();
        let mut step = Self {
            loss: values(loss)[0],
            ..Self::default()
        };
        for (index, leaf) in extra.iter().enumerate() {
            let gradient = leaf.grad(&gradients).map(values);
            step.gradients.push((format!("input {index}"), gradient));
        }
        model.visit(&mut Collect {
            gradients: &gradients,
            step: &mut step,
            path: Vec::new(),
        });
        step
    }

    /// The same bits on flex; elsewhere the same but for the order of sums.
    pub fn assert_same(&self, other: &Self, device: &Device, what: &str) {
        self.assert_close(other, if is_flex(device) { 0.0 } else { 1e-5 }, what);
    }

    pub fn assert_close(&self, other: &Self, tolerance: f32, what: &str) {
        let loss = relative_error(&[self.loss], &[other.loss]);
        assert!(loss <= tolerance, "{what}: {} {}", self.loss, other.loss);
        assert!(!self.gradients.is_empty() && self.gradients.len() == other.gradients.len());
        // Against the largest of all: the gradient of a key's bias, for one, is nothing but rounding.
        let all = other.gradients.iter().filter_map(|(_, b)| b.as_ref());
        let largest = all
            .flatten()
            .fold(f32::MIN_POSITIVE, |max, b| max.max(b.abs()));
        for ((name, a), (_, b)) in self.gradients.iter().zip(&other.gradients) {
            assert_eq!(a.is_some(), b.is_some(), "{what}: gradient of {name}");
            let (Some(a), Some(b)) = (a, b) else { continue };
            assert_eq!(a.len(), b.len(), "{what}: gradient of {name}");
            let worst = a
                .iter()
                .zip(b)
                .fold(0.0f32, |max, (a, b)| max.max((a - b).abs()));
            let error = worst / largest;
            assert!(error <= tolerance, "{what}: gradient of {name} {error}");
        }
        for ((name, a), (_, b)) in self.buffers.iter().zip(&other.buffers) {
            let error = relative_error(a, b);
            assert!(error <= tolerance, "{what}: buffer {name} {error}");
        }
    }

    pub fn gradient(&self, name: &str) -> Option<&[f32]> {
        let found = self.gradients.iter().find(|(path, _)| path == name);
        let (_, gradient) = found.unwrap_or_else(|| panic!("no '{name}' in {:?}", self.names()));
        gradient.as_deref()
    }

    pub fn names(&self) -> Vec<&str> {
        self.gradients
            .iter()
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// The same parameters, with leaves and running statistics of its own.
pub fn copy<M: Module>(model: &M) -> M {
    model.valid().train()
}

struct Collect<'a> {
    gradients: &'a Gradients,
    step: &'a mut Step,
    path: Vec<String>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        let tensor = param.base();
        if name.contains("running") {
            self.step.buffers.push((name, values(tensor.inner())));
        } else {
            let gradient = tensor.grad(self.gradients).map(values);
            self.step.gradients.push((name, gradient));
        }
    }
}
