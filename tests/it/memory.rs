//! Bytes are repeatable, so they are asserted.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d};
use burn::tensor::{Device, Int, Tensor, activation::relu};
use leanburn::data::{Batch, HostBatch};
use leanburn::levers::{Activation, Output, Policy, Precision, conv2d, norm_act};
use leanburn::memory::{Bytes, Measurement, Phase, Row, census, heap};
use leanburn::models::{Depth, ResNet, ResNetConfig, Stem};
use leanburn::train::{Adam, OptimizerKind, Settings, Trainer};

use crate::support::{alone, random};

fn resnet50(policy: Policy) -> ResNet {
    let device = Device::flex().autodiff();
    let model = ResNetConfig::new(Depth::R50, 1000)
        .init(&device)
        .with_policy(policy);
    // Parameters exist from the first use on.
    drop(model.forward(random([1, 3, 32, 32], &device)));
    model
}

/// Bytes per image that the forward keeps, at 224 pixels.
fn kept_per_image(policy: Policy) -> f64 {
    let (device, batch) = (Device::flex().autodiff(), 2);
    let model = resnet50(policy);
    let images = random([batch, 3, 224, 224], &device);
    let targets = Tensor::<1, Int>::zeros([batch], &device);
    let before = heap::current();
    let loss = CrossEntropyLossConfig::new()
        .init(&device)
        .forward(model.forward(images.clone()), targets.clone());
    let kept = heap::current() - before;
    drop(loss.backward());
    kept as f64 / batch as f64 / 1e6
}

#[test]
fn resnet50_keeps_what_pytorch_counts_and_half_of_it_in_half_precision() {
    let _alone = alone();
    let full = kept_per_image(Policy::FP32);
    assert!((80.0..=87.0).contains(&full), "{full} MB per image");
    let half = kept_per_image(Policy::computing(Precision::Bf16));
    assert!((40.0..=44.6).contains(&half), "{half} MB per image");
}

#[derive(Module, Debug)]
struct Chain {
    convs: Vec<Conv2d>,
    norms: Vec<BatchNorm>,
}

impl Chain {
    fn new(device: &Device) -> Self {
        let conv = || {
            Conv2dConfig::new([16, 16], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .with_bias(false)
        };
        Self {
            convs: (0..4).map(|_| conv().init(device)).collect(),
            norms: (0..4)
                .map(|_| BatchNormConfig::new(16).init(device))
                .collect(),
        }
    }

    fn forward(&self, mut x: Tensor<4>, lean: bool) -> Tensor<4> {
        for (conv, norm) in self.convs.iter().zip(&self.norms) {
            x = if lean {
                norm_act(norm, conv2d(conv, x), None, Activation::Relu, Output::Kept)
            } else {
                relu(norm.forward(conv.forward(x)))
            };
        }
        x
    }
}

/// Activation-sized tensors kept after the forward, and more at the backward's peak.
fn chain_keeps(lean: bool) -> (f64, f64) {
    let device = Device::flex().autodiff();
    let chain = Chain::new(&device);
    // Large enough that the kernels' buffers of a few MiB do not count.
    let x = random([96, 16, 32, 32], &device);
    drop(chain.forward(x.clone(), lean).sum().backward());
    let one = (96 * 16 * 32 * 32 * 4) as f64;
    let before = heap::current();
    let loss = chain.forward(x, lean).powi_scalar(2).mean();
    let kept = heap::current() - before;
    heap::reset_peak();
    drop(loss.backward());
    (
        kept as f64 / one,
        (heap::peak() - before - kept) as f64 / one,
    )
}

/// Four norm inputs, and the outputs of the ReLUs that a convolution, or the loss, reads: eight.
#[test]
fn nothing_is_kept_twice() {
    let _alone = alone();
    let (kept, more) = chain_keeps(true);
    assert!(kept < 8.3, "{kept} tensors");
    assert!(more < 3.2, "{more} more at the peak");
    let (plain, plain_more) = chain_keeps(false);
    assert!(
        plain > kept + 2.5 && plain_more > more,
        "{plain} {plain_more}: Burn got leaner, update the docs"
    );
}

fn settings(batch: usize) -> Settings {
    Settings {
        clip_norm: Some(1.0),
        weight_decay: 1e-4,
        adam: Adam::default(),
        ..Settings::plain(batch)
    }
}

fn trainer(config: &ResNetConfig, policy: Policy, batch: usize) -> Trainer<ResNet> {
    let device = Device::flex().autodiff();
    let model = || config.init(&device).with_policy(policy);
    Trainer::bare(settings(batch), &device, model).unwrap()
}

pub fn batch(size: usize, image_size: usize) -> Batch {
    let pixels = (0..size * 3 * image_size * image_size)
        .map(|i| (i % 17) as f32 / 8.0 - 1.0)
        .collect();
    let labels = (0..size as i64).map(|i| i % 5).collect();
    HostBatch {
        pixels,
        labels,
        image_size,
        visited: size,
    }
    .into_device(&Device::flex().autodiff())
}

fn measured(policy: Policy, config: &ResNetConfig, size: usize, image_size: usize) -> Measurement {
    let mut trainer = trainer(config, policy, size);
    for _ in 0..2 {
        trainer.micro_step(batch(size, image_size));
        trainer.update().unwrap();
    }
    trainer.measurement().unwrap().clone()
}

/// Where activations rule, as at ImageNet's size, half precision brings the whole peak below 0.62.
#[test]
fn half_precision_shrinks_the_peak() {
    let _alone = alone();
    let config = ResNetConfig::new(Depth::R50, 1000);
    let full = measured(Policy::FP32, &config, 16, 224);
    let half = measured(Policy::computing(Precision::Bf16), &config, 16, 224);
    let ratio = half.peak.0 as f64 / full.peak.0 as f64;
    assert!(ratio <= 0.62, "{ratio}: {} of {}", half.peak, full.peak);
    let activations = |m: &Measurement| m.rows.get(Row::Activations).unwrap().0 as f64;
    assert!(activations(&half) <= 0.51 * activations(&full));
}

/// Every byte of the peak is in a row, and the rows that are known are exact.
#[test]
fn rows_add_up_to_the_peak() {
    let _alone = alone();
    let config = ResNetConfig::new(Depth::R18, 5)
        .with_width(16)
        .with_stem(Stem::Small);
    let measured = measured(Policy::FP32, &config, 8, 32);
    let rows = &measured.rows;
    let counted = census(&config.init(&Device::flex()));
    assert_eq!(
        rows.get(Row::Parameters),
        Some(Bytes(4 * counted.parameters.elements))
    );
    assert_eq!(
        rows.get(Row::Buffers),
        Some(Bytes(4 * counted.buffers.elements))
    );
    assert_eq!(rows.get(Row::OptimizerState), rows.get(Row::Parameters));
    let inputs = rows.get(Row::Inputs).unwrap().0;
    let images = 8 * 3 * 32 * 32 * 4;
    assert!(
        (images + 8 * 4..=images + 8 * 8).contains(&inputs),
        "{inputs}"
    );
    assert_eq!(rows.get(Row::Allocator), None);
    assert_eq!(rows.known_total(), measured.peak);
    assert_eq!(measured.phase, Phase::Backward);
    assert!(rows.get(Row::Temporaries).unwrap().0 < measured.peak.0 / 3);
    assert!(rows.get(Row::Activations).unwrap() <= measured.kept_after_forward.unwrap());
}

/// The formula for optimizer state is what the heap grows by.
#[test]
fn optimizer_state_is_as_its_formula_says() {
    let _alone = alone();
    // The first step of a process also starts thread pools, which are no optimizer state.
    let _ = measured(
        Policy::FP32,
        &ResNetConfig::new(Depth::R18, 5).with_width(2),
        4,
        16,
    );
    for kind in [
        OptimizerKind::Sgd,
        OptimizerKind::AdamW,
        OptimizerKind::Lion,
    ] {
        let device = Device::flex().autodiff();
        let config = ResNetConfig::new(Depth::R18, 5)
            .with_width(16)
            .with_stem(Stem::Small);
        let settings = Settings {
            optimizer: kind,
            ..settings(4)
        };
        let model = config.init(&device);
        let parameters = leanburn::memory::census(&model).parameters.bytes;
        let mut trainer = Trainer::bare(settings, &device, || model).unwrap();
        let before = heap::current();
        trainer.micro_step(batch(4, 16));
        trainer.update().unwrap();
        let grown = (heap::current() - before) as f64;
        let formula = kind.state_bytes(parameters).0 as f64;
        assert!(
            (grown / formula - 1.0).abs() < 0.05,
            "{kind}: {grown} against {formula}"
        );
    }
}

/// Bytes by which the heap grows from the twentieth of five hundred steps on.
pub fn growth(mut step: impl FnMut(usize)) -> usize {
    let mut after_twenty = 0;
    for index in 0..500 {
        step(index);
        if index == 19 {
            after_twenty = heap::current();
        }
    }
    heap::current().saturating_sub(after_twenty) as usize
}

/// Trap B38: five hundred steps, and not a byte more than after twenty.
#[test]
fn memory_does_not_grow() {
    let _alone = alone();
    let config = ResNetConfig::new(Depth::R18, 5)
        .with_width(2)
        .with_stem(Stem::Small);
    let mut trainer = trainer(&config, Policy::computing(Precision::F16), 4);
    let grown = growth(|_| {
        trainer.micro_step(batch(4, 8));
        trainer.update().unwrap();
    });
    assert!(grown < 16 << 10, "{grown} bytes in 480 steps");
}
