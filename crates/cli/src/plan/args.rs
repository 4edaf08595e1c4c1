//! Flags of `leanburn plan`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use leanburn_memory::{Bytes, Gpu};
use leanburn_train::{Backend, Keep};

use crate::step::StepArgs;
use crate::subject::Given;

/// What to plan for.
#[derive(clap::Args, Debug, Default)]
#[command(
    after_help = "Levers are tried by price: chunks, half precision, checkpoint schedules and (without BatchNorm) \
                  micro-batches, then micro-batches under BatchNorm, host memory, another optimizer. The samples of an \
                  update stay the same. Neither data nor GPU are needed. docs/planning.md says how it works."
)]
pub struct Args {
    #[command(flatten)]
    pub step: StepArgs,
    /// Backend to plan for: flex (CPU), wgpu, vulkan, metal, cuda or rocm; it need not be there. By default that of
    /// the recipe, and cuda where --device names a GPU.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
    /// Classes of the images, where their folder is not here.
    #[arg(long, value_name = "N", value_parser = crate::estimate::count)]
    pub classes: Option<usize>,
    /// Distinct tokens of the text, where the token file is not here.
    #[arg(long, value_name = "N", value_parser = crate::estimate::count)]
    pub tokens: Option<usize>,

    /// The memory that a step may take, in bytes: 24GiB, 24GB, 512M. By default `memory` of the recipe.
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<Bytes>,
    /// The same as a GPU's name ("RTX 3060"), less what driver and framework take; `leanburn gpus` lists them.
    #[arg(long, value_name = "GPU", conflicts_with = "memory")]
    pub device: Option<String>,
    /// GPUs of your own (TOML, as crates/memory/src/catalogue.toml) instead of those that come with leanburn.
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
    /// Levers that stay as they are: precision, batch (where BatchNorm looks at it), optimizer; or results for all
    /// that change losses or gradients.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub keep: Vec<Lever>,
    /// Write the recipe that fits into FILE; without a name beside that of --config, as NAME-planned.toml.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", conflicts_with = "largest_batch")]
    pub apply: Option<PathBuf>,

    /// Find the largest micro-batch of the recipe as it is, with no other lever pulled.
    #[arg(long, conflicts_with_all = ["keep", "batch"])]
    pub largest_batch: bool,
    /// With --largest-batch: run an update of it on --backend in a process of its own, and step down if that takes
    /// more than was predicted.
    #[arg(long, requires = "largest_batch")]
    pub confirm: bool,

    /// Print one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

/// What `--keep` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lever {
    Precision,
    Batch,
    Optimizer,
    Results,
}

impl Args {
    pub fn given<'a>(&self, gpu: Option<&'a Gpu>) -> Given<'a> {
        Given {
            backend: self.backend,
            gpu,
            classes: self.classes,
            tokens: self.tokens,
        }
    }

    pub fn kept(&self) -> Keep {
        let has = |lever| self.keep.contains(&lever) || self.keep.contains(&Lever::Results);
        Keep {
            precision: has(Lever::Precision),
            batch: has(Lever::Batch),
            optimizer: has(Lever::Optimizer),
        }
    }
}

/// The file of `--apply`.
pub fn planned_name(given: &Path, config: Option<&Path>) -> PathBuf {
    if !given.as_os_str().is_empty() {
        return given.to_owned();
    }
    let Some(config) = config else {
        return "planned.toml".into();
    };
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}-planned.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_recipe_stands_beside_its_origin() {
        let name = |given: &str, config: Option<&str>| {
            planned_name(Path::new(given), config.map(Path::new))
        };
        assert_eq!(name("a.toml", Some("configs/b.toml")), Path::new("a.toml"));
        assert_eq!(
            name("", Some("configs/b.toml")),
            Path::new("configs/b-planned.toml")
        );
        assert_eq!(name("", None), Path::new("planned.toml"));
    }
}
