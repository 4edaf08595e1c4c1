//! How long the chain planner takes for all budgets of a chain.
//!
//!     cargo bench --profile dev --bench chain

use std::time::Instant;

use leanburn::memory::Bytes;
use leanburn::memory::chain::{Block, Chain, Plans, Schedule, Way};

/// Equal blocks have the sizes of a GPT-2 layer at batch 8 and 1024 tokens in bf16; others one to five times those.
fn chain(blocks: u64, equal: bool, host: bool) -> Chain {
    let block = |index: u64| {
        let factor = if equal { 1 } else { 1 + index * 7919 % 5 };
        let way = |cheap, kept, forward, backward, extra| Way {
            cheap,
            kept: factor * kept,
            forward: factor * forward,
            backward: factor * backward,
            extra,
        };
        Block {
            input: factor * 12_582_912,
            forward: factor as f64,
            alone: factor * 30_000_000,
            behind: 1000 * (blocks - index),
            gradients: 0,
            ways: vec![
                way(false, 213_909_504, 220_000_000, 240_000_000, 0.0),
                way(true, 113_246_208, 150_000_000, 180_000_000, 0.1),
            ],
        }
    };
    Chain {
        base: 0,
        blocks: (0..blocks).map(block).collect(),
        output: 12_582_912,
        head: 500_000_000,
        host: host.then_some(1e-10),
    }
}

fn main() {
    println!("blocks  sizes      host   seconds  within 30 % of");
    for blocks in [17, 48, 100, 200] {
        for (equal, host) in [(true, false), (false, false), (true, true)] {
            let chain = chain(blocks, equal, host);
            let all = chain.cost(&Schedule::default()).peak;
            let budget = all * 3 / 10;
            let start = Instant::now();
            let plan = Plans::of(&chain, budget).within(budget);
            let seconds = start.elapsed().as_secs_f64();
            let extra = plan.map_or("nothing fits".into(), |plan| {
                let forward: f64 = chain.blocks.iter().map(|block| block.forward).sum();
                format!("{:.2} forwards more", plan.cost.extra / forward)
            });
            println!(
                "{blocks:>6}  {:<9}  {:<5} {seconds:>8.3}  {}: {extra}",
                if equal { "equal" } else { "different" },
                if host { "yes" } else { "no" },
                Bytes(all),
            );
        }
    }
}
