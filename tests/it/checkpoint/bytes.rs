//! What is kept and what the peak is, in bytes.

use burn::module::{Module, Param};
use burn::nn::{Gelu, Linear, LinearConfig};
use burn::tensor::activation::{gelu, tanh};
use burn::tensor::{Device, Tensor};
use leanburn::levers::checkpoint::{Chain, Link};
use leanburn::levers::{
    Checkpoint, CheckpointPolicy, Offload, Policy, Precision, checkpoint, recompute,
};
use leanburn::memory::{Measurement, Meter, Row, heap};
use leanburn::models::{Depth, ResNet, ResNetConfig};
use leanburn::train::{Settings, Trainable, Trainer};

use super::blocks::Attention;
use crate::memory::{batch, growth};
use crate::support::{alone, devices, is_flex, random};

fn resnet50(precision: Precision, checkpoint: &str) -> ResNet {
    ResNetConfig::new(Depth::R50, 1000)
        .init(&Device::flex().autodiff())
        .with_policy(Policy::computing(precision))
        .with_checkpoint(checkpoint.parse().unwrap(), Offload::None)
}

fn trainer(model: impl FnOnce() -> ResNet, batch: usize) -> Trainer<ResNet> {
    Trainer::bare(Settings::plain(batch), &Device::flex(), model).unwrap()
}

/// Per image at 224 pixels, in MB: kept after the forward; the step's peak less parameters, buffers,
/// gradients, optimizer state and inputs.
fn measured(precision: Precision, checkpoint: &str, size: usize) -> (f64, f64) {
    let mut trainer = trainer(|| resnet50(precision, checkpoint), size);
    for _ in 0..2 {
        trainer.micro_step(batch(size, 224));
        trainer.update().unwrap();
    }
    let measured: &Measurement = trainer.measurement().unwrap();
    let per_image = |bytes: u64| bytes as f64 / size as f64 / 1e6;
    let row = |row| measured.rows.get(row).unwrap().0;
    (
        per_image(measured.kept_after_forward.unwrap().0),
        per_image(row(Row::Activations) + row(Row::Temporaries)),
    )
}

#[test]
fn resnet50_keeps_its_block_inputs() {
    let _alone = alone();
    let (kept, _) = measured(Precision::F32, "every-block", 2);
    assert!((22.0..=31.0).contains(&kept), "kept {kept} MB per image");
    // At sixteen images the kernels' buffers, which are the same for any batch, no longer show.
    let (kept, step) = measured(Precision::F32, "every-block", 16);
    assert!(step <= 28.0, "step {step} MB per image");
    let (half_kept, half_step) = measured(Precision::Bf16, "every-block", 16);
    let ratios = [half_kept / kept, half_step / step];
    assert!(
        ratios.iter().all(|ratio| *ratio <= 0.53),
        "bf16: {ratios:?}"
    );
}

/// The outputs of all convolutions are 44.4 MB.
#[test]
fn resnet50_keeps_its_convolutions_outputs() {
    let _alone = alone();
    let (kept, _) = measured(Precision::F32, "cheap", 2);
    assert!((44.0..=46.0).contains(&kept), "kept {kept} MB per image");
}

impl Link for Attention {
    type Value = Tensor<3>;

    fn step(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, length, _] = x.dims();
        let mask = Tensor::<2>::zeros([batch, length], &x.device()).greater_elem(0.5);
        self.forward(x, mask)
    }
}

/// Kept in units of a block's input, less what the loss itself keeps.
fn kept_by_stack(depth: usize, policy: &str) -> f64 {
    let device = Device::flex().autodiff();
    let blocks: Vec<_> = (0..depth).map(|_| Attention::new(16, &device)).collect();
    let chain = Chain {
        policy: policy.parse().unwrap(),
        ..Chain::default()
    };
    let x = random([64, 32, 16], &device);
    drop(chain.run(&blocks, x.clone()).sum().backward());
    let before = heap::current();
    let y = chain.run(&blocks, x);
    let kept = heap::current() - before;
    drop(y.sum().backward());
    kept as f64 / (64 * 32 * 16 * 4) as f64
}

#[test]
fn a_deep_stack_keeps_the_square_root_of_its_depth() {
    let _alone = alone();
    let depths = [12.0f64, 24.0, 48.0];
    let kept = depths.map(|depth| kept_by_stack(depth as usize, "sqrt"));
    // Least squares for kept = c * sqrt(depth).
    let products: f64 = depths.iter().zip(kept).map(|(d, k)| d.sqrt() * k).sum();
    let c = products / depths.iter().sum::<f64>();
    for (depth, kept) in depths.into_iter().zip(kept) {
        let error = kept / (c * depth.sqrt()) - 1.0;
        assert!(
            error.abs() <= 0.10,
            "{depth} blocks keep {kept}, fit off by {error}"
        );
    }
    assert!(kept_by_stack(48, "none") > 4.0 * kept[2]);
}

/// The feed-forward block without its activation's output, which is as large as its input.
#[test]
fn a_recomputed_activation_is_not_kept() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let linears: Vec<Linear> = (0..2)
        .map(|_| LinearConfig::new(64, 64).init(&device))
        .collect();
    let x = random([256, 64], &device);
    let kept = |lean: bool| {
        let before = heap::current();
        let y = linears[0].forward(x.clone());
        let y = match lean {
            true => recompute(&Gelu::new(), y, Gelu::forward),
            false => gelu(y),
        };
        let loss = linears[1].forward(y).sum();
        let kept = heap::current() - before;
        drop(loss.backward());
        kept as f64 / (256 * 64 * 4) as f64
    };
    let _warm_up = (kept(true), kept(false));
    let (lean, plain) = (kept(true), kept(false));
    assert!(lean < 1.2 && plain > 2.0, "{lean} against {plain}");
}

/// Trap B38: five hundred steps, and not a byte more than after twenty; abandoned ones in between.
#[test]
fn checkpointed_steps_do_not_grow() {
    let _alone = alone();
    let config = ResNetConfig::new(Depth::R18, 5).with_width(2);
    let device = Device::flex().autodiff();
    let model = || {
        let policy = CheckpointPolicy::SQRT.with_cheap();
        config.init(&device).with_checkpoint(policy, Offload::None)
    };
    let mut trainer = trainer(model, 4);
    let grown = growth(|step| {
        if step % 50 == 7 {
            drop(trainer.model().loss(batch(4, 8)));
        }
        trainer.micro_step(batch(4, 8));
        trainer.update().unwrap();
    });
    assert!(grown < 16 << 10, "{grown} bytes in 480 steps");
}

/// What a forward without a backward holds is gone after the next step.
#[test]
fn an_abandoned_forward_is_freed_by_the_next_step() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let blocks: Vec<Linear> = (0..4)
        .map(|_| LinearConfig::new(64, 64).init(&device))
        .collect();
    let x = random([512, 64], &device);
    let forward = || {
        blocks.iter().fold(x.clone(), |x, block| {
            checkpoint(block, x, |block, x: Tensor<2>| block.forward(x))
        })
    };
    drop(forward().sum().backward());
    let before = heap::current();
    let abandoned = forward();
    let held = heap::current() - before;
    assert!(held > 4 * 512 * 64 * 4, "{held}");
    drop(abandoned);
    drop(forward().sum().backward());
    let left = heap::current().saturating_sub(before);
    assert!(left < 4 << 10, "{left} bytes of {held}");
}

/// Without gradients in sight nothing is kept, and nothing is left behind but the output.
#[test]
fn a_block_without_gradients_costs_nothing() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let block = LinearConfig::new(64, 64).init(&device).no_grad();
    let x = random([512, 64], &device);
    let kept = |checkpointed: bool| {
        let before = heap::current();
        let y: Tensor<2> = match checkpointed {
            true => checkpoint(&block, x.clone(), |block, x: Tensor<2>| block.forward(x)),
            false => block.forward(x.clone()),
        };
        assert!(!y.is_tracked());
        heap::current() - before
    };
    let _warm_up = (kept(true), kept(false));
    let (checkpointed, plain) = (kept(true), kept(false));
    assert!(
        checkpointed < plain + 4096,
        "{checkpointed} against {plain}"
    );
}

/// Elementwise only, so that a GPU backend has nothing to tune.
#[derive(Module, Debug)]
struct Scale {
    factor: Param<Tensor<1>>,
}

/// Parked inputs leave the device until the backward.
#[test]
fn parked_inputs_are_not_on_the_device() {
    let _alone = alone();
    for device in devices().into_iter().filter(|device| !is_flex(device)) {
        let meter = Meter::new(&device);
        let device = device.autodiff();
        let scale = || Scale {
            factor: Param::from_tensor(random([64], &device)),
        };
        let blocks: Vec<Scale> = (0..6).map(|_| scale()).collect();
        let x = random([4096, 64], &device);
        let kept = |offload| {
            let checkpoint = Checkpoint {
                offload,
                ..Checkpoint::default()
            };
            let used = || {
                meter.sync();
                meter.current().unwrap().0
            };
            let before = used();
            let y = blocks.iter().fold(x.clone(), |x, block| {
                checkpoint.run(block, x, |block, x: Tensor<2>| {
                    tanh(x * block.factor.val().unsqueeze())
                })
            });
            let kept = used().saturating_sub(before);
            drop(y.sum().backward());
            kept as f64 / (4096 * 64 * 4) as f64
        };
        let _warm_up = kept(Offload::None);
        let (stay, parked) = (kept(Offload::None), kept(Offload::Host));
        assert!(stay > 5.0 && parked < 2.5, "{parked} against {stay} inputs");
    }
}
