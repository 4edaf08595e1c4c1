//! Every kind of block gives the gradients of its plain forward.

use burn::module::{Lora, Module};
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig,
    PaddingConfig2d,
};
use burn::tensor::activation::{gelu, relu};
use burn::tensor::{Bool, Device, Tensor};
use leanburn::levers::{
    Activation, CheckpointPolicy, Offload, Output, Policy, checkpoint, conv2d, norm_act, recompute,
};
use leanburn::models::{Depth, ResNet, ResNetConfig};

use super::Step;
use crate::support::{alone, devices, random};

/// Convolution, Burn's own norm, ReLU, and the input added.
#[derive(Module, Debug)]
pub struct Bottleneck {
    conv: Conv2d,
    norm: BatchNorm,
}

impl Bottleneck {
    pub fn new(device: &Device) -> Self {
        Self {
            conv: Conv2dConfig::new([4, 4], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device),
            norm: BatchNormConfig::new(4).init(device),
        }
    }

    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        relu(self.norm.forward(self.conv.forward(x.clone())) + x)
    }
}

/// A pre-norm Transformer block.
#[derive(Module, Debug)]
pub struct Attention {
    norms: [LayerNorm; 2],
    attention: MultiHeadAttention,
    up: Linear,
    down: Linear,
}

impl Attention {
    pub fn new(width: usize, device: &Device) -> Self {
        Self {
            norms: std::array::from_fn(|_| LayerNormConfig::new(width).init(device)),
            attention: MultiHeadAttentionConfig::new(width, 2)
                .with_dropout(0.0)
                .init(device),
            up: LinearConfig::new(width, 2 * width).init(device),
            down: LinearConfig::new(2 * width, width).init(device),
        }
    }

    pub fn forward(&self, x: Tensor<3>, mask: Tensor<2, Bool>) -> Tensor<3> {
        let [first, second] = &self.norms;
        let input = MhaInput::self_attn(first.forward(x.clone())).mask_pad(mask);
        let x = x + self.attention.forward(input).context;
        let y = gelu(self.up.forward(second.forward(x.clone())));
        x + self.down.forward(y)
    }

    /// With the large activation recomputed.
    fn forward_lean(&self, x: Tensor<3>, mask: Tensor<2, Bool>) -> Tensor<3> {
        let [first, second] = &self.norms;
        let input = MhaInput::self_attn(first.forward(x.clone())).mask_pad(mask);
        let x = x + self.attention.forward(input).context;
        let y = self.up.forward(second.forward(x.clone()));
        x + self.down.forward(recompute(&Gelu::new(), y, Gelu::forward))
    }
}

fn mask(device: &Device) -> Tensor<2, Bool> {
    Tensor::<2>::from_floats([[0.0, 0.0, 0.0, 0.0, 1.0], [0.0; 5]], device).greater_elem(0.5)
}

#[test]
fn a_bottleneck() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = Bottleneck::new(&device);
        let x = random([3, 4, 5, 5], &device).require_grad();
        let plain = Step::run(&block, &[&x], |block, x| {
            block.forward(x[0].clone()).powi_scalar(2).mean()
        });
        let again = Step::run(&block, &[&x], |block, x| {
            let y: Tensor<4> = checkpoint(block, x[0].clone(), Bottleneck::forward);
            y.powi_scalar(2).mean()
        });
        assert_eq!(plain.buffers.len(), 2);
        again.assert_same(&plain, &device, "bottleneck");
    }
}

#[test]
fn an_attention_block_with_a_mask() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = Attention::new(8, &device);
        let x = random([2, 5, 8], &device).require_grad();
        let run = |forward: fn(&Attention, Tensor<3>, Tensor<2, Bool>) -> Tensor<3>| {
            Step::run(&block, &[&x], |block, x| {
                forward(block, x[0].clone(), mask(&device))
                    .powi_scalar(2)
                    .mean()
            })
        };
        let plain = run(Attention::forward);
        let again = run(|block, x, mask| {
            checkpoint(block, (x, mask), |block, (x, mask)| block.forward(x, mask))
        });
        again.assert_same(&plain, &device, "attention");
        run(Attention::forward_lean).assert_same(&plain, &device, "recomputed gelu");
    }
}

/// Trap B51: the recomputation runs in the precision of the forward, as that is the module's.
#[test]
fn reparameterized_parameters() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let x = random([4, 8], &device).require_grad();
        let block = || LinearConfig::new(8, 8).with_bias(false).init(&device);
        let lora = Lora {
            rank: 2,
            alpha: 4.0,
            init_std: None,
            dtype: None,
            param_group: burn::module::ParamGroup::all(),
        };
        let mut cases: Vec<(String, Linear)> = vec![("lora".into(), block().apply_lora(lora))];
        for text in ["f16", "bf16"] {
            if let Ok(policy) = Policy::resolve(text, &device) {
                cases.push((text.into(), policy.attach(block(), &[])));
            }
        }
        for (what, block) in cases {
            let dtype = block.weight.val().dtype();
            let forward = move |block: &Linear, x: Tensor<2>| {
                assert_eq!(block.weight.val().dtype(), dtype);
                block.forward(x.cast(dtype))
            };
            let plain = Step::run(&block, &[&x], |block, x| {
                forward(block, x[0].clone())
                    .cast(burn::tensor::DType::F32)
                    .sum()
            });
            let again = Step::run(&block, &[&x], |block, x| {
                let y: Tensor<2> = checkpoint(block, x[0].clone(), forward);
                y.cast(burn::tensor::DType::F32).sum()
            });
            if what == "lora" {
                assert_eq!(plain.names().len(), 4, "{:?}", plain.names());
            }
            again.assert_same(&plain, &device, &what);
        }
    }
}

fn resnet_step(model: &ResNet, images: &Tensor<4>) -> Step {
    let images = images.clone();
    Step::run(model, &[] as &[&Tensor<4>], |model, _| {
        let logits = model.forward(images);
        logits.powi_scalar(2).mean()
    })
}

/// All our policies, in every precision: the same loss, gradients and running statistics.
#[test]
fn a_resnet_by_every_policy() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    for precision in ["f32", "bf16", "f16"] {
        let model = ResNetConfig::new(Depth::R18, 3)
            .with_width(4)
            .init(&device)
            .with_policy(precision.parse().unwrap());
        let images = random([2, 3, 16, 16], &device);
        let plain = resnet_step(&model, &images);
        assert_eq!(plain.buffers.len(), 40);
        for text in [
            "cheap",
            "every-block",
            "every:3",
            "sqrt",
            "sqrt+cheap",
            "schedule:(2,(1)),1c,host(1c,2),1",
        ] {
            let policy: CheckpointPolicy = text.parse().unwrap();
            let model = model.clone().with_checkpoint(policy, Offload::None);
            let again = resnet_step(&model, &images);
            again.assert_same(&plain, &device, &format!("{precision} {text}"));
        }
    }
}

/// A residual block of our operations; of the shape that [`Bottleneck`] has, whose kernels are tuned.
#[derive(Module, Debug)]
struct Lean {
    convs: [Conv2d; 3],
    norms: [BatchNorm; 2],
}

impl Lean {
    fn new(device: &Device) -> Self {
        let conv = || {
            Conv2dConfig::new([4, 4], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .with_bias(false)
        };
        Self {
            convs: std::array::from_fn(|_| conv().init(device)),
            norms: std::array::from_fn(|_| BatchNormConfig::new(4).init(device)),
        }
    }

    fn forward(&self, x: Tensor<4>, keep: Output) -> Tensor<4> {
        let y = conv2d(&self.convs[0], x.clone());
        let y = norm_act(&self.norms[0], y, None, Activation::Relu, keep);
        let y = conv2d(&self.convs[1], y);
        let y = norm_act(&self.norms[1], y, Some(x), Activation::Relu, keep);
        conv2d(&self.convs[2], y)
    }
}

#[test]
fn lean_operations_recomputed() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = Lean::new(&device);
        let x = random([3, 4, 5, 5], &device).require_grad();
        let run = |forward: fn(&Lean, Tensor<4>) -> Tensor<4>| {
            Step::run(&block, &[&x], |block, x| {
                forward(block, x[0].clone()).powi_scalar(2).mean()
            })
        };
        let plain = run(|block, x| block.forward(x, Output::Kept));
        let cheap = run(|block, x| block.forward(x, Output::Recomputed));
        let again = run(|block, x| checkpoint(block, x, |b, x| b.forward(x, Output::Kept)));
        let both = run(|block, x| checkpoint(block, x, |b, x| b.forward(x, Output::Recomputed)));
        assert_eq!(plain.buffers.len(), 4);
        for (what, step) in [("cheap", cheap), ("checkpoint", again), ("both", both)] {
            step.assert_same(&plain, &device, what);
        }
    }
}

/// The host holds the inputs between forward and backward, bit for bit.
#[test]
fn parked_inputs_come_back_as_they_were() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let model: Vec<Linear> = (0..4)
            .map(|_| LinearConfig::new(8, 8).init(&device))
            .collect();
        let x = random([4, 8], &device).require_grad();
        let run = |offload| {
            let checkpoint = leanburn::levers::Checkpoint {
                offload,
                ..Default::default()
            };
            Step::run(&model, &[&x], |model, x| {
                let y = model.iter().fold(x[0].clone(), |x, block| {
                    checkpoint.run(block, x, |block, x: Tensor<2>| relu(block.forward(x)))
                });
                y.sum()
            })
        };
        let (stay, parked) = (run(Offload::None), run(Offload::Host));
        parked.assert_same(&stay, &device, "parked");
    }
}
