//! What chunking costs in time: attention and cross-entropy against Burn's own, forward and backward, taking
//! turns in one process.
//!
//!     cargo bench --profile dev --bench chunk

use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Device, Distribution, Int, Tensor};
use leanburn::levers::{Attention, CrossEntropy};
use leanburn::memory::{Bytes, CountingAllocator, heap};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

const ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` runs this too, without anything to measure.
    if std::env::args().any(|flag| flag == "--test") {
        return;
    }
    let device = Device::flex().autodiff();
    println!(
        "{:<34} {:>9} {:>9} {:>7} {:>12} {:>12} {:>7}",
        "", "Burn s", "leanburn", "time", "Burn peak", "leanburn", "memory"
    );
    for causal in [false, true] {
        let inputs = [(); 3].map(|()| random([1, 8, 2048, 64], &device));
        let name = format!(
            "attention, 2048 tokens{}",
            if causal { ", causal" } else { "" }
        );
        compare(
            &name,
            || {
                let [q, k, v] = inputs.clone();
                let options = AttentionModuleOptions {
                    is_causal: causal,
                    ..Default::default()
                };
                drop(attention(q, k, v, None, None, options).sum().backward());
            },
            || {
                let [q, k, v] = inputs.clone();
                let lean = Attention {
                    causal,
                    ..Attention::default()
                };
                drop(lean.forward(q, k, v, None).sum().backward());
            },
        );
    }
    let (hidden, weight) = (random([1024, 256], &device), random([50_257, 256], &device));
    let targets = Tensor::<1, Int>::arange(0..1024, &device);
    compare(
        "cross-entropy, 1024 x 50,257",
        || {
            let logits = hidden.clone().matmul(weight.clone().transpose());
            let loss = CrossEntropyLossConfig::new().init(&device);
            drop(loss.forward(logits, targets.clone()).backward());
        },
        || {
            let loss = CrossEntropy::default();
            drop(
                loss.mean(hidden.clone(), weight.clone(), targets.clone())
                    .backward(),
            );
        },
    );
}

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device).require_grad()
}

/// Median seconds and peak bytes of both, in turns.
fn compare(name: &str, plain: impl Fn(), lean: impl Fn()) {
    let measure = |f: &dyn Fn()| {
        heap::reset_peak();
        let before = heap::current();
        let start = Instant::now();
        f();
        (start.elapsed().as_secs_f64(), heap::peak() - before)
    };
    plain();
    lean();
    let (mut plains, mut leans) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plains.push(measure(&plain));
        leans.push(measure(&lean));
    }
    let [(plain, plain_peak), (lean, lean_peak)] = [plains, leans].map(|mut rounds| {
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        rounds[ROUNDS / 2]
    });
    let [time, memory] = [lean / plain, lean_peak as f64 / plain_peak as f64];
    let [plain_peak, lean_peak] = [plain_peak, lean_peak].map(|peak| Bytes(peak).to_string());
    println!(
        "{name:<34} {plain:>9.3} {lean:>9.3} {time:>6.2}x {plain_peak:>12} {lean_peak:>12} {memory:>6.3}x"
    );
}
