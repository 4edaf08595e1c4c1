//! What a module stores: parameters, buffers, frozen parameters.

mod walk;

use std::collections::HashSet;

use burn::module::Module;

use crate::Bytes;
use walk::{Float, Walk, running_statistics};

/// A number of tensors, their elements and the bytes they store.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tensors.
    pub tensors: usize,
    /// Elements of all of them.
    pub elements: u64,
    /// Stored bytes of all of them.
    pub bytes: Bytes,
}

impl Count {
    /// Adds one tensor.
    fn add(&mut self, elements: u64, bytes: Bytes) {
        self.tensors += 1;
        self.elements = self.elements.saturating_add(elements);
        self.bytes = [self.bytes, bytes].into_iter().sum();
    }
}

/// What a module stores, each tensor once, however often it is used (tied weights).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Parameters that require gradients, as stored: the base of a reparameterized one.
    pub parameters: Count,
    /// Running statistics, and integer and boolean parameters: no gradients, no optimizer state.
    pub buffers: Count,
    /// Float parameters that do not require gradients.
    pub frozen: Count,
}

/// Counts what `module` stores.
///
/// A parameter counts as trainable when it is configured so, on a device with autodiff or
/// without, and after [`Module::valid`] too. Nothing is read back from the device, and lazy
/// parameters stay lazy: they count in the default float dtype of their device, which one element
/// made there tells. Not seen, as Burn
/// shows them to no visitor: bare tensor fields, and what a running statistic holds until its next
/// update. Tied weights are told by their [`ParamId`](burn::module::ParamId).
pub fn census<M: Module>(module: &M) -> Census {
    let mut walk = Walk::default();
    module.visit(&mut walk);

    let mut census = Census {
        buffers: walk.others,
        ..Census::default()
    };
    // Only a float that requires no gradient can be a running statistic.
    let running = match walk.floats.iter().all(|float| float.trainable) {
        true => HashSet::new(),
        false => running_statistics(module),
    };
    for Float {
        id,
        trainable,
        elements,
        bytes,
    } in walk.floats
    {
        let count = match (running.contains(&id), trainable) {
            (true, _) => &mut census.buffers,
            (false, true) => &mut census.parameters,
            (false, false) => &mut census.frozen,
        };
        count.add(elements, bytes);
    }
    census
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::{Param, ParamId, Reparameterization, Reparameterizer};
    use burn::nn::conv::{Conv2d, Conv2dConfig};
    use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
    use burn::tensor::{Device, FloatDType, Int, Tensor};

    #[derive(Module, Debug)]
    struct Block {
        conv: Conv2d,
        norm: BatchNorm,
    }

    // conv: 3 * 8 * 3 * 3 weights and 8 biases; norm: 8 + 8 trained, 8 + 8 statistics.
    const CONV: u64 = 224;

    fn block(device: &Device) -> Block {
        Block {
            conv: Conv2dConfig::new([3, 8], [3, 3]).init(device),
            norm: BatchNormConfig::new(8).init(device),
        }
    }

    fn count(tensors: usize, elements: u64) -> Count {
        Count {
            tensors,
            elements,
            bytes: Bytes(4 * elements),
        }
    }

    /// Trap B27: running statistics are no parameters, on either kind of device.
    #[test]
    fn statistics_are_buffers() {
        let expected = Census {
            parameters: count(4, CONV + 16),
            buffers: count(2, 16),
            frozen: Count::default(),
        };
        for device in [Device::flex(), Device::flex().autodiff()] {
            let block = block(&device);
            assert_eq!(census(&block), expected, "{device:?}, lazy");
            block.forward_once(&device);
            assert_eq!(census(&block), expected, "{device:?}, initialized");
            assert_eq!(
                census(&block.valid()),
                expected,
                "{device:?}, for validation"
            );
            assert_eq!(census(&block.train()), expected, "{device:?}, for training");
        }
    }

    impl Block {
        fn forward_once(&self, device: &Device) {
            let images = Tensor::<4>::ones([2, 3, 4, 4], device);
            let _ = self.norm.forward(self.conv.forward(images));
        }
    }

    #[test]
    fn frozen_parameters_are_told_from_statistics() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            let expected = Census {
                parameters: Count::default(),
                buffers: count(2, 16),
                frozen: count(4, CONV + 16),
            };
            assert_eq!(
                census(&block(&device).freeze()),
                expected,
                "{device:?}, lazy"
            );
            let initialized = block(&device);
            initialized.forward_once(&device);
            assert_eq!(
                census(&initialized.freeze()),
                expected,
                "{device:?}, initialized"
            );

            let mut half = block(&device);
            half.conv = half.conv.freeze();
            let half = census(&half);
            assert_eq!(half.parameters, count(2, 16));
            assert_eq!(half.frozen, count(2, CONV));
        }
    }

    #[test]
    fn counting_changes_nothing() {
        let device = Device::flex().autodiff();
        let block = block(&device);
        census(&block);
        assert!(!block.conv.weight.is_initialized());
        block.forward_once(&device);
        let ids = burn::module::list_param_ids(&block);
        let mean = block.norm.running_mean.value_sync().into_data();
        census(&block);
        assert_eq!(burn::module::list_param_ids(&block), ids);
        block
            .norm
            .running_mean
            .value_sync()
            .into_data()
            .assert_eq(&mean, true);
        assert!(!block.norm.running_mean.value().is_require_grad());
        assert!(block.conv.weight.is_require_grad());
    }

    /// Trap B25: a tied weight counts once.
    #[test]
    fn tied_weights_count_once() {
        let linear: Linear = LinearConfig::new(4, 4)
            .with_bias(false)
            .init(&Device::flex());
        assert_eq!(
            census(&vec![linear.clone(), linear]).parameters,
            count(1, 16)
        );
    }

    #[derive(Module, Debug)]
    struct Half {}

    impl Reparameterization for Half {
        const NAME: &'static str = "half";
        fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
            base.cast(FloatDType::F16)
        }
    }

    struct ToHalf;

    impl Reparameterizer for ToHalf {
        type Reparam = Half;
        fn reparameterize<const D: usize>(
            &mut self,
            _path: &str,
            param: Param<Tensor<D>>,
        ) -> (Param<Tensor<D>>, Option<Half>) {
            (param, Some(Half {}))
        }
    }

    #[test]
    fn a_reparameterized_weight_counts_its_base() {
        let linear: Linear = LinearConfig::new(4, 4)
            .with_bias(false)
            .init(&Device::flex());
        let linear = linear.apply_reparameterization(ToHalf);
        assert_eq!(linear.weight.val().dtype(), burn::tensor::DType::F16);
        assert_eq!(census(&linear).parameters, count(1, 16));
    }

    #[test]
    fn integer_parameters_are_buffers() {
        let device = Device::flex();
        let table = Tensor::<1, Int>::zeros([5], &device);
        let size = Bytes::of_elements(&[5], table.dtype()).unwrap();
        let counted = census(&Param::initialized(ParamId::new(), table));
        assert_eq!(
            counted.buffers,
            Count {
                tensors: 1,
                elements: 5,
                bytes: size
            }
        );
    }
}
