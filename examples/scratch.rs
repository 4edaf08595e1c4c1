#[global_allocator]
static ALLOC: leanburn::memory::CountingAllocator = leanburn::memory::CountingAllocator::system();
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{GradientsParams, SgdConfig, momentum::MomentumConfig};
use burn::prelude::*;
use burn::tensor::Distribution;
use leanburn::levers::Policy;
use leanburn::memory::heap;
use leanburn::models::*;
#[path = "../benches/support/plain.rs"]
mod plain;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (b, s): (usize, usize) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let stem = if a.get(4).is_some() {
        Stem::Small
    } else {
        Stem::Imagenet
    };
    let d = Device::flex().autodiff();
    let x = Tensor::<4>::random([b, 3, s, s], Distribution::Normal(0., 1.), &d);
    let y = Tensor::<1, Int>::zeros([b], &d);
    macro_rules! go { ($m:expr) => {{ let mut m = $m;
        let mut opt = SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9).with_dampening(0.0))).init();
        for i in 0..3 {
            let base = heap::current(); heap::reset_peak(); let t = std::time::Instant::now();
            let l = CrossEntropyLossConfig::new().init(&d).forward(m.forward(x.clone()), y.clone());
            let kept = heap::current() - base; let tf = t.elapsed().as_secs_f64();
            let g = l.backward(); let pb = heap::peak() - base; let tb = t.elapsed().as_secs_f64();
            let g = GradientsParams::from_grads(g, &m);
            m = opt.step(0.01, m, g);
            println!("step {i} base {} MiB kept {:.2} MB/img peak bwd {} MiB peak step {} total peak {} MiB fwd {tf:.2} bwd {:.2} opt {:.2} total {:.2} loss {:?}", base >> 20, kept as f64 / b as f64 / 1e6, pb >> 20, (heap::peak() - base) >> 20, heap::peak() >> 20, tb - tf, t.elapsed().as_secs_f64() - tb, t.elapsed().as_secs_f64(), l.into_scalar::<f32>());
        } }} }
    match a[3].as_str() {
        "plain" => go!(plain::ResNet50::new(1000, &d)),
        p => go!(ResNetConfig::new(Depth::R50, 1000)
            .with_stem(stem)
            .init(&d)
            .with_policy(Policy::resolve(p, &d).unwrap())),
    }
}
