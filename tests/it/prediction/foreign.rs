//! A network that cannot be traced is measured small instead.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use leanburn::data::DataError;
use leanburn::levers::Policy;
use leanburn::memory::{Bytes, Method, compare};
use leanburn::train::recipe::Defaults;
use leanburn::train::task::{Builds, Loaders, Measure, MicroBatch};
use leanburn::train::{BackendKind, Images, Recipe, Score, Task, TrainError, Trainable, predict};

use super::measured;
use crate::support::{alone, on_one_thread};

/// Burn's own BatchNorm moves tensors between devices, which cannot be recorded.
#[derive(Module, Debug)]
struct Foreign {
    convolutions: Vec<Conv2d>,
    norms: Vec<BatchNorm>,
    head: Linear,
}

const CHANNELS: usize = 32;

impl Trainable for Foreign {
    type Batch = Tensor<4>;

    fn samples(batch: &Tensor<4>) -> usize {
        batch.dims()[0]
    }

    fn input_bytes(batch: &Tensor<4>) -> Bytes {
        Bytes(batch.shape().num_elements() as u64 * 4)
    }

    fn loss(&self, mut x: Tensor<4>) -> Tensor<1> {
        for (convolution, norm) in self.convolutions.iter().zip(&self.norms) {
            x = relu(norm.forward(convolution.forward(x)));
        }
        let x: Tensor<2> = x.mean_dim(3).mean_dim(2).flatten(1, 3);
        self.head.forward(x).powi_scalar(2).mean()
    }

    fn score(&self, _batch: Tensor<4>) -> Score {
        Score::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Foreigners;

#[derive(Clone)]
struct Nothing;

impl MicroBatch for Nothing {
    type Batch = Tensor<4>;

    fn visited(&self) -> usize {
        0
    }

    fn items(&self) -> usize {
        0
    }

    fn into_device(self, device: &Device) -> Tensor<4> {
        Tensor::zeros([1, CHANNELS, 16, 16], device)
    }
}

impl Loaders for Nothing {
    type Micro = Nothing;

    fn train(&self, _: usize, _: usize) -> impl Iterator<Item = Result<Nothing, DataError>> {
        std::iter::empty()
    }

    fn val(&self) -> impl Iterator<Item = Result<Nothing, DataError>> {
        std::iter::empty()
    }

    fn batches(&self) -> usize {
        0
    }

    fn name(&self) -> String {
        "nothing".into()
    }
}

impl Task for Foreigners {
    type Model = BTreeMap<String, u64>;
    type Data = BTreeMap<String, u64>;
    type Loaders = Nothing;
    type Batch = Tensor<4>;

    const ITEMS: &'static str = "images";
    const MEASURES: &'static [Measure] = &[];

    fn defaults() -> Defaults {
        Images::defaults()
    }

    fn validate(_recipe: &Recipe<Self>) -> Result<(), TrainError> {
        Ok(())
    }

    fn open(_recipe: &Recipe<Self>) -> Result<Nothing, TrainError> {
        Ok(Nothing)
    }

    fn model_name(_model: &Self::Model) -> String {
        "foreign".into()
    }

    fn tell(_score: &Score) -> String {
        String::new()
    }
}

impl Builds for Foreigners {
    type Network = Foreign;
    type Facts = ();

    fn facts_of(_loaders: &Nothing) {}

    fn data_facts(_recipe: &Recipe<Self>) -> Result<(), TrainError> {
        Ok(())
    }

    fn init(_recipe: &Recipe<Self>, _facts: &(), device: &Device) -> Result<Foreign, TrainError> {
        let convolution = || {
            Conv2dConfig::new([CHANNELS, CHANNELS], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device)
        };
        Ok(Foreign {
            convolutions: (0..4).map(|_| convolution()).collect(),
            norms: (0..4)
                .map(|_| BatchNormConfig::new(CHANNELS).init(device))
                .collect(),
            head: LinearConfig::new(CHANNELS, 4).init(device),
        })
    }

    fn load(_recipe: &Recipe<Self>, network: Foreign) -> Result<Foreign, TrainError> {
        Ok(network)
    }

    fn save(_: &Self::Network, path: &Path) -> Result<(), TrainError> {
        unreachable!("{}: nothing is trained", path.display())
    }

    fn with_levers(_recipe: &Recipe<Self>, _policy: Policy, network: Foreign) -> Foreign {
        network
    }

    fn blank(recipe: &Recipe<Self>, _facts: &(), device: &Device) -> Tensor<4> {
        Tensor::zeros([recipe.train.batch, CHANNELS, 16, 16], device)
    }
}

#[test]
fn what_no_trace_sees_through_is_measured_small() {
    let _alone = alone();
    let mut recipe = Recipe::<Foreigners>::default();
    recipe.train.batch = 32;
    recipe.precision.policy = "fp32".into();
    on_one_thread(|| {
        let predicted = predict(&recipe, &(), Policy::FP32, BackendKind::Flex.into()).unwrap();
        assert_eq!(predicted.method, Method::Measured);
        assert!(predicted.remark().contains("two small steps"));
        let compared = compare(&predicted, &measured(&recipe, &()));
        let off = compared.peak.fraction().unwrap();
        assert!(off.abs() < 0.05, "{compared:?}");
    });
}
