//! `leanburn gpus`: the catalogue.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Catalogue, Gpu, Instance};
use serde_json::{Value, json};

use crate::budget;
use crate::print::out;

/// What to list.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Memory is what the driver reports, in MiB, which is less than what is sold; rates are the vendors' dense \
                  peaks; --json has source and date of every line."
)]
pub struct Args {
    /// List the cloud machines instead, cheapest first by the price of one GPU.
    #[arg(long)]
    instances: bool,
    /// Read this file (TOML, as crates/memory/src/catalogue.toml) instead of the catalogue that comes with leanburn.
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let catalogue = budget::catalogue(args.catalogue.as_deref())?;
    out(&match (args.json, args.instances) {
        (true, _) => format!("{}\n", json(&catalogue)),
        (false, false) => gpus(&catalogue),
        (false, true) => instances(&catalogue),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn gpus(catalogue: &Catalogue) -> String {
    let mut text = format!(
        "{:<26} {:>10} {:>9} {:>9} {:>14} {:>9}\n",
        "", "MiB", "GB/s", "TFLOPS", "half TFLOPS", "links"
    );
    for gpu in catalogue.gpus() {
        let half = gpu.half();
        let links = gpu.nvlink_gbs.map_or("-".into(), |gbs| format!("{gbs:.0}"));
        text += &format!(
            "{:<26} {:>10} {:>9.0} {:>9.1} {:>9.1} {half:<4} {links:>9}\n",
            gpu.name, gpu.memory_mib, gpu.bandwidth_gbs, gpu.f32_tflops, gpu.half_tflops,
        );
    }
    text
}

/// Dollars an hour for one GPU of a machine.
pub fn price_of_one(instance: &Instance) -> f64 {
    instance.price_usd_per_hour / f64::from(instance.count)
}

fn instances(catalogue: &Catalogue) -> String {
    let mut instances: Vec<&Instance> = catalogue.instances().iter().collect();
    instances.sort_by(|a, b| price_of_one(a).total_cmp(&price_of_one(b)));
    let mut text = format!(
        "{:<28} {:<6} {:<22} {:>10} {:>12}  {:<16} {}\n",
        "", "", "GPUs", "USD/h", "USD/h a GPU", "region", "looked up"
    );
    for instance in instances {
        text += &format!(
            "{:<28} {:<6} {:<22} {:>10.3} {:>12.3}  {:<16} {}\n",
            instance.name,
            instance.cloud,
            format!("{} x {}", instance.count, instance.gpu),
            instance.price_usd_per_hour,
            price_of_one(instance),
            instance.region,
            instance.date,
        );
    }
    text
}

fn json(catalogue: &Catalogue) -> Value {
    let gpu = |gpu: &Gpu| {
        json!({
            "name": gpu.name, "memory": gpu.memory().0, "memory_mib": gpu.memory_mib,
            "bandwidth_gbs": gpu.bandwidth_gbs, "f32_tflops": gpu.f32_tflops, "half_tflops": gpu.half_tflops,
            "bf16": gpu.bf16, "nvlink_gbs": gpu.nvlink_gbs, "source": gpu.source, "date": gpu.date,
        })
    };
    let instance = |instance: &Instance| {
        json!({
            "name": instance.name, "cloud": instance.cloud, "gpu": instance.gpu, "count": instance.count,
            "price_usd_per_hour": instance.price_usd_per_hour, "region": instance.region,
            "source": instance.source, "date": instance.date,
        })
    };
    json!({
        "gpus": catalogue.gpus().iter().map(gpu).collect::<Vec<_>>(),
        "instances": catalogue.instances().iter().map(instance).collect::<Vec<_>>(),
    })
}
