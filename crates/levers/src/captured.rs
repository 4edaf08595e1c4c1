//! Autodiff on the capture device, where Burn's dispatch refuses what leads in and out of it.

use burn::backend::{Autodiff, AutodiffBackend, Capture};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use leanburn_memory::Row;
use leanburn_memory::trace::{Note, is_tracing, note};

type Tracked = Autodiff<Capture>;

/// [`Tensor::inner`], on every device.
pub fn inner<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if !is_tracing() || !tensor.is_autodiff() {
        return tensor.inner();
    }
    let tensor = tensor.try_into_primitive::<Tracked>();
    let tensor = Tracked::inner(tensor.expect("a traced tensor is on the capture device"));
    Tensor::from_primitive::<Capture>(tensor)
}

/// [`Tensor::from_inner`], on every device.
pub fn from_inner<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if !is_tracing() {
        return Tensor::from_inner(tensor);
    }
    let tensor = tensor.try_into_primitive::<Capture>();
    let tensor = tensor.expect("a traced tensor is on the capture device");
    Tensor::from_primitive::<Tracked>(Tracked::from_inner(tensor))
}

/// The gradients of `loss` for the parameters of `module`, on every device.
pub fn backward<M: Module>(loss: Tensor<1>, module: &M) -> GradientsParams {
    if !is_tracing() {
        return GradientsParams::from_module(&mut loss.backward(), module);
    }
    let loss = loss.try_into_primitive::<Tracked>();
    let mut taken = Taken {
        all: Tracked::backward(loss.expect("a traced loss is on the capture device")),
        of_module: GradientsParams::new(),
    };
    module.visit(&mut taken);
    taken.of_module
}

/// Tells the trace which tensors `module` stores, and under which paths.
pub fn note_stored<M: Module>(module: &M) {
    if is_tracing() {
        module.visit(&mut Stored::default());
    }
}

#[derive(Default)]
struct Stored {
    path: Vec<String>,
}

impl ModuleVisitor for Stored {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let row = match param.is_require_grad() {
            true => Row::Parameters,
            false => Row::Buffers,
        };
        let stored = inner(param.base().clone()).try_into_primitive::<Capture>();
        let id = stored
            .expect("a traced module is on the capture device")
            .id();
        let path = self.path.join(".");
        note(Note::Stored {
            id: id.value(),
            path,
            row,
        });
    }
}

struct Taken {
    all: <Tracked as AutodiffBackend>::Gradients,
    of_module: GradientsParams,
}

impl ModuleVisitor for Taken {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !param.is_require_grad() {
            return;
        }
        let base = param.base().clone().try_into_primitive::<Tracked>();
        let base = base.expect("a traced parameter is on the capture device");
        if let Some(gradient) = Tracked::grad_remove(&base, &mut self.all) {
            let gradient = Tensor::<D>::from_primitive::<Capture>(gradient);
            self.of_module.register(param.id, gradient);
        }
    }
}
