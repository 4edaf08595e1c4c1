//! Laws over random small modules: any cut, any nesting, any shape.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::{gelu, tanh};
use burn::tensor::{Device, Tensor};
use leanburn::levers::checkpoint::{Chain, Link};
use leanburn::levers::{CheckpointPolicy, Offload, checkpoint, recompute, seed};
use proptest::prelude::*;

use super::{Step, copy};
use crate::support::{alone, devices, is_flex, random};

#[derive(Module, Debug)]
enum Layer {
    Linear(Linear),
    Norm(LayerNorm),
    Dropout(Dropout),
    Nested(Vec<Linear>),
    Lean(Linear),
}

impl Layer {
    fn new(kind: u8, width: usize, device: &Device) -> Self {
        let linear = || LinearConfig::new(width, width).init(device);
        match kind {
            0 => Self::Linear(linear()),
            1 => Self::Norm(LayerNormConfig::new(width).init(device)),
            2 => Self::Dropout(DropoutConfig::new(0.3).init()),
            3 => Self::Nested(vec![linear(), linear()]),
            _ => Self::Lean(linear()),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Linear(linear) => tanh(linear.forward(x)),
            Self::Norm(norm) => norm.forward(x),
            Self::Dropout(dropout) => dropout.forward(x),
            Self::Nested(pair) => checkpoint(pair, x, |pair: &Vec<Linear>, x| {
                let x = gelu(pair[0].forward(x));
                checkpoint(&pair[1], x, |linear, x: Tensor<2>| gelu(linear.forward(x)))
            }),
            Self::Lean(linear) => linear.forward(recompute(&Gelu::new(), x, Gelu::forward)),
        }
    }

    /// The same without any checkpoint inside, and without random numbers.
    fn is_deterministic(&self) -> bool {
        !matches!(self, Self::Dropout(_))
    }

    fn plain(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Nested(pair) => pair.iter().fold(x, |x, linear| gelu(linear.forward(x))),
            Self::Lean(linear) => linear.forward(gelu(x)),
            other => other.forward(x),
        }
    }
}

impl Link for Layer {
    type Value = Tensor<2>;

    fn step(&self, x: Tensor<2>) -> Tensor<2> {
        self.forward(x)
    }
}

fn check(device: &Device, kinds: &[u8], width: usize, batch: usize, policy: &str) {
    let layers: Vec<Layer> = kinds
        .iter()
        .map(|k| Layer::new(*k, width, device))
        .collect();
    // Burn draws parameters at first use; here that is before anything is seeded.
    let layers = copy(&layers);
    let x = random([batch, width], device).require_grad();
    let policy: CheckpointPolicy = policy.parse().unwrap();
    let chain = Chain {
        policy: policy.clone(),
        offload: Offload::None,
        random: true,
    };
    let run = |chained: bool| {
        seed(device, 11);
        Step::run(&layers, &[&x], |layers, x| {
            let y = match chained {
                true => chain.run(layers, x[0].clone()),
                false => layers.iter().fold(x[0].clone(), |x, layer| layer.plain(x)),
            };
            (y.clone() * y).sum()
        })
    };
    let what = format!("{kinds:?} {policy}");
    let again = run(true);
    run(true).assert_same(&again, device, &format!("{what} repeated"));
    if layers.iter().all(Layer::is_deterministic) {
        again.assert_same(&run(false), device, &what);
    }
}

fn policies() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("none".to_owned()),
        Just("every-block".to_owned()),
        Just("sqrt+cheap".to_owned()),
        (1usize..4).prop_map(|n| format!("every:{n}")),
        (1usize..3, 1usize..6).prop_map(|(a, b)| format!("schedule:{a},({b})")),
        // Segments inside segments, three deep.
        (1usize..4, 1usize..3).prop_map(|(a, b)| format!("schedule:({a},(1,({b})),host(1)),(2)")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_chain_by_any_policy(
        kinds in prop::collection::vec(0u8..5, 1..7),
        width in 1usize..9,
        batch in 1usize..5,
        policy in policies(),
    ) {
        let _alone = alone();
        check(&Device::flex().autodiff(), &kinds, width, batch, &policy);
    }
}

/// One shape, so that a GPU backend tunes its kernels once.
#[test]
fn a_chain_on_every_device() {
    let _alone = alone();
    for device in devices().into_iter().filter(|device| !is_flex(device)) {
        let device = device.autodiff();
        for (kinds, policy) in [
            (&[0, 1, 3, 4, 0][..], "every:2"),
            (&[3, 0, 2, 1, 4], "every-block"),
        ] {
            check(&device, kinds, 8, 4, policy);
        }
    }
}
