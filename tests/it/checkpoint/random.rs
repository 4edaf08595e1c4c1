//! Dropout: the recomputation draws the same mask, and nothing else repeats it.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
use burn::tensor::{Device, Distribution, Tensor};
use leanburn::levers::{checkpoint, seed};

use super::Step;
use crate::support::{alone, devices, random, values};

#[derive(Module, Debug)]
struct Dropping {
    linear: Linear,
    dropout: Dropout,
}

impl Dropping {
    fn new(device: &Device) -> Self {
        Self {
            linear: LinearConfig::new(8, 8).init(device),
            dropout: DropoutConfig::new(0.5).init(),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.dropout.forward(self.linear.forward(x))
    }
}

/// Trap B50. The gradient of the sum over a masked output tells the mask: with an identity in front
/// it is the output itself.
#[test]
fn the_mask_comes_again() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        seed(&device, 3);
        let dropout = DropoutConfig::new(0.5).init();
        let x = Tensor::<2>::ones([16, 16], &device).require_grad();
        let y: Tensor<2> = checkpoint(&dropout, x.clone(), Dropout::forward);
        let mask = values(y.clone());
        assert!(mask.contains(&0.0) && mask.contains(&2.0));
        let gradients = y.sum().backward();
        assert_eq!(values(x.grad(&gradients).unwrap()), mask);
    }
}

/// Also inside a block inside a block, which draws in three runs.
#[test]
fn the_mask_comes_again_when_nested() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        seed(&device, 4);
        let dropouts = vec![
            DropoutConfig::new(0.5).init(),
            DropoutConfig::new(0.5).init(),
        ];
        let x = Tensor::<2>::ones([16, 16], &device).require_grad();
        let y: Tensor<2> = checkpoint(&dropouts, x.clone(), |dropouts, x: Tensor<2>| {
            let x = dropouts[0].forward(x);
            let x: Tensor<2> = checkpoint(&dropouts[1], x, Dropout::forward);
            dropouts[0].forward(x)
        });
        let mask = values(y.clone());
        assert!(mask.contains(&0.0) && mask.contains(&8.0));
        let gradients = y.sum().backward();
        assert_eq!(values(x.grad(&gradients).unwrap()), mask);
    }
}

#[test]
fn no_two_blocks_share_a_mask() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        seed(&device, 5);
        let dropout = DropoutConfig::new(0.5).init();
        let x = Tensor::<2>::ones([16, 16], &device).require_grad();
        let mut seen = Vec::new();
        let mut sum = Tensor::<1>::zeros([1], &device);
        // Two rounds, as of two micro-batches: the backward of the first re-seeds in between.
        for _ in 0..2 {
            for _ in 0..3 {
                let y: Tensor<2> = checkpoint(&dropout, x.clone(), Dropout::forward);
                seen.push(values(y.clone()));
                seen.push(values(dropout.forward(x.clone())));
                sum = sum + y.sum();
            }
            sum.backward();
            sum = Tensor::zeros([1], &device);
            seen.push(values(dropout.forward(x.clone())));
        }
        for (index, mask) in seen.iter().enumerate() {
            assert!(
                !seen[..index].contains(mask),
                "draw {index} repeats an earlier one"
            );
        }
    }
}

/// Seeded alike, a step repeats itself; and what is drawn after it depends on the seed alone.
#[test]
fn a_seeded_step_repeats_itself() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let blocks = [Dropping::new(&device), Dropping::new(&device)];
        let blocks = blocks.to_vec();
        let x = random([4, 8], &device);
        let run = |number| {
            seed(&device, number);
            let step = Step::run(&blocks, &[] as &[&Tensor<2>], |blocks, _| {
                let y = blocks.iter().fold(x.clone(), |x, block| {
                    checkpoint(block, x, Dropping::forward)
                });
                y.sum()
            });
            let after = Tensor::<1>::random([8], Distribution::Default, &device);
            (step, values(after))
        };
        let ((first, after_first), (again, after_again)) = (run(1), run(1));
        again.assert_same(&first, &device, "the same seed");
        assert_eq!(after_again, after_first);
        assert_ne!(run(2).1, after_first);
    }
}
