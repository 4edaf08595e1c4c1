//! Equality with torchvision on closed-form weights; `benches/peers/golden_resnet.py` makes the files.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use leanburn::models::{Depth, ResNet, ResNetConfig};
use safetensors::SafeTensors;

use crate::support::{alone, closed_form, relative_error, values};

fn fill<const D: usize>(
    name: &str,
    shape: [usize; D],
    device: &Device,
    value: impl Fn(f64) -> f64,
) -> Tensor<D> {
    let count = shape.iter().product::<usize>() as u64;
    let data: Vec<f32> = (0..count)
        .map(|k| value(closed_form(name, k)) as f32)
        .collect();
    Tensor::from_data(TensorData::new(data, shape), device)
}

struct ClosedForm {
    path: Vec<String>,
    /// Name of the norm that ends a residual branch.
    last_norm: &'static str,
}

impl ModuleMapper for ClosedForm {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = self
            .path
            .join(".")
            .replace("downsample.conv", "downsample.0")
            .replace("downsample.bn", "downsample.1");
        let (owner, field) = path.rsplit_once('.').unwrap();
        let gain = if owner.starts_with("layer") && owner.ends_with(self.last_norm) {
            0.2
        } else {
            1.0
        };
        let shape: [usize; D] = param.lazy_shape().dims();
        let device = param.lazy_device();
        let torch = |field: &str| format!("{owner}.{field}");
        let value = match field {
            "gamma" => fill(&torch("weight"), shape, &device, |c| gain * (1.0 + 0.1 * c)),
            "beta" => fill(&torch("bias"), shape, &device, |c| {
                gain * (if c >= 0.0 { 2.5 } else { -2.5 } + 0.1 * c)
            }),
            "running_mean" => fill(&path, shape, &device, |c| 0.1 * c),
            "running_var" => fill(&path, shape, &device, |c| 1.0 + 0.5 * c * c),
            "bias" => fill(&path, shape, &device, |c| 0.1 * c),
            "weight" if D == 4 => {
                let fan_in = (shape[1] * shape[2] * shape[3]) as f64;
                fill(&path, shape, &device, |c| c * (6.0 / fan_in).sqrt())
            }
            "weight" => {
                // Burn's Linear is [in, out], PyTorch's [out, in].
                let mut torch_shape = shape;
                torch_shape.reverse();
                let scale = (1.0 / shape[0] as f64).sqrt();
                fill(&path, torch_shape, &device, |c| c * scale).swap_dims(0, 1)
            }
            other => panic!("{other}"),
        };
        param.map(|old| {
            if old.is_require_grad() {
                value.require_grad()
            } else {
                value
            }
        })
    }
}

fn network(depth: Depth, device: &Device) -> ResNet {
    let last_norm = if depth == Depth::R18 { "bn2" } else { "bn3" };
    ResNetConfig::new(depth, 1000)
        .init(device)
        .map(&mut ClosedForm {
            path: Vec::new(),
            last_norm,
        })
}

fn golden(depth: Depth) -> HashMap<String, Vec<f32>> {
    let path = format!(
        "{}/tests/golden/{depth}.safetensors",
        env!("CARGO_MANIFEST_DIR")
    );
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let read = |view: safetensors::tensor::TensorView| -> Vec<f32> {
        view.data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    };
    file.tensors()
        .into_iter()
        .map(|(name, view)| (name, read(view)))
        .collect()
}

fn equals_torchvision(depth: Depth) {
    let _alone = alone();
    let expected = golden(depth);
    let device = Device::flex().autodiff();
    let model = network(depth, &device);
    let input = fill("input", [2, 3, 64, 64], &device, |c| c);
    let near = |what: &str, actual: Vec<f32>, tolerance: f32| {
        let error = relative_error(&actual, &expected[what]);
        assert!(error <= tolerance, "{depth} {what}: {error}");
    };
    near(
        "eval_logits",
        values(model.valid().forward(input.clone().inner())),
        1e-4,
    );
    let logits = model.forward(input);
    near("train_logits", values(logits.clone()), 1e-4);
    let targets = Tensor::<1, Int>::from_data([3, 7], &device);
    let loss = CrossEntropyLossConfig::new()
        .init(&device)
        .forward(logits, targets);
    near("loss", values(loss.clone()), 1e-4);
    let grads = loss.backward();
    near(
        "conv1_grad",
        values(model.conv1.weight.grad(&grads).unwrap()),
        1e-4,
    );
    let norm = model.bn1.as_ref().expect("not folded");
    near(
        "bn1_running_mean",
        values(norm.running_mean.value_sync()),
        1e-4,
    );
    // Trap B82: PyTorch's running variance is unbiased. 2 x 32 x 32 values make n / (n - 1).
    let unbiased = norm.running_var.value_sync().inner();
    let before = fill("bn1.running_var", [64], &Device::flex(), |c| {
        1.0 + 0.5 * c * c
    });
    let n = 2.0 * 32.0 * 32.0;
    let unbiased = before.clone() * 0.9 + (unbiased - before * 0.9) * (n / (n - 1.0));
    near("bn1_running_var", values(unbiased), 1e-5);
}

#[test]
fn resnet18_equals_torchvision() {
    equals_torchvision(Depth::R18);
}

#[test]
fn resnet50_equals_torchvision() {
    equals_torchvision(Depth::R50);
}
