//! What a backend's memory pools hold after tensors come and go, and what a cleanup gives back.
//!
//!     cargo run --example memory_pools -- --backend wgpu thread

use anyhow::Result;
use burn::tensor::{Device, Tensor};
use clap::Parser;
use leanburn::memory::{Bytes, CountingAllocator, heap};
use leanburn::train::{Backend, choose};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

const SCENES: [&str; 7] = ["small", "large", "grow", "window", "fuse", "read", "thread"];

/// Allocate and free in a few instructive ways, and print what the pools hold after each.
#[derive(Parser)]
struct Args {
    /// auto, flex (CPU), wgpu, vulkan or cuda.
    #[arg(long, value_name = "NAME", default_value = "flex")]
    backend: Backend,
    /// The scene to play; without it all, one after the other on the same pools.
    #[arg(value_parser = SCENES)]
    scene: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let chosen = choose(args.backend)?;
    let device = &chosen.device;
    println!("{}: {}", chosen.backend, chosen.why);
    if device.memory_pool_usage().is_none() {
        println!("no pool: tensors live on the heap; in use is what the counting allocator says");
    }
    println!("after                                       in use   padding  reserved   process");
    let plays = [small, large, grow, window, fuse, read, thread];
    for (name, play) in SCENES.into_iter().zip(plays) {
        if args.scene.as_deref().is_none_or(|only| only == name) {
            println!("{name}");
            play(device)?;
            clean_up(device)?;
        }
    }
    Ok(())
}

/// Prints a line of the table, once all that this thread asked for is done.
fn row(device: &Device, step: &str) -> Result<()> {
    device.sync()?;
    let pool = device.memory_pool_usage();
    let used = Some(pool.map_or(heap::current(), |pool| pool.bytes_in_use));
    let pad = pool.map(|pool| pool.bytes_padding);
    let held = pool.map(|pool| pool.bytes_reserved);
    let [used, pad, held, all] = [used, pad, held, resident()]
        .map(|size| size.map_or("-".into(), |bytes| Bytes(bytes).to_string()));
    println!("  {step:<38}{used:>10}{pad:>10}{held:>10}{all:>10}");
    Ok(())
}

fn clean_up(device: &Device) -> Result<()> {
    let reserved = || device.memory_pool_usage().map(|pool| pool.bytes_reserved);
    // A cleanup does not run the operations that fusion holds back; until then their tensors live.
    device.sync()?;
    let before = reserved().unwrap_or_default();
    device.memory_cleanup();
    let given = before.saturating_sub(reserved().unwrap_or_default());
    row(
        device,
        &format!("a cleanup, which gave back {}", Bytes(given)),
    )
}

/// What the system holds for this process, where it is Linux.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

fn mib(mib: usize, device: &Device) -> Tensor<1> {
    Tensor::ones([mib << 18], device)
}

fn small(device: &Device) -> Result<()> {
    let ones = |elements| (0..1000).map(move |_| Tensor::<1>::ones([elements], device));
    let mut many: Vec<_> = ones(1).collect();
    row(device, "1000 tensors of one float")?;
    many.extend(ones(4096));
    row(device, "1000 more of 16 KiB")?;
    many.truncate(1); // and one of them holds a page
    clean_up(device)
}

fn large(device: &Device) -> Result<()> {
    let one = mib(32, device);
    row(device, "32 MiB")?;
    drop(one);
    row(device, "dropped")?;
    let _three = [16, 16, 16].map(|size| mib(size, device));
    row(device, "3 x 16 MiB")
}

fn grow(device: &Device) -> Result<()> {
    let mut held = Vec::new();
    for size in [1, 4, 16] {
        held.push(mib(size, device));
        row(device, &format!("and {size} MiB"))?;
    }
    clean_up(device)
}

fn window(device: &Device) -> Result<()> {
    let window = || device.memory_persistent_allocations((), |()| mib(10, device));
    drop(window());
    row(device, "10 MiB in a persistent window, dropped")?;
    let _both = [mib(10, device), window()];
    row(device, "10 MiB outside, and 10 MiB in a window")
}

fn fuse(device: &Device) -> Result<()> {
    let x = mib(16, device);
    let _product = x.clone().exp() * x.clone().sin();
    row(device, "x and exp(x) * sin(x), of 16 MiB")?;
    let _looked_at = (x.clone().exp(), x.clone().sin());
    row(device, "exp(x) and sin(x)")
}

fn read(device: &Device) -> Result<()> {
    let read = |tensor: Tensor<1>| tensor.into_data().try_to_vec::<f32>();
    read(mib(16, device))?;
    row(device, "16 MiB, read to the host and dropped")?;
    (0..2000).try_for_each(|_| read(Tensor::ones([1], device)).map(drop))?;
    row(device, "2000 reads of one float")
}

fn thread(device: &Device) -> Result<()> {
    let ones = vec![1f32; 1 << 20];
    let upload = || Tensor::<1>::from_data(ones.as_slice(), device) * 2.0;
    let four_times = |work: &(dyn Fn() + Sync)| {
        (0..4).for_each(|_| std::thread::scope(|scope| _ = scope.spawn(work)));
    };
    for step in ["4 threads with 4 MiB each, ended", "4 other threads"] {
        four_times(&|| _ = (upload(), device.sync()));
        row(device, step)?;
    }
    clean_up(device)?;
    four_times(&|| _ = upload());
    row(device, "4 threads that did not sync")
}
