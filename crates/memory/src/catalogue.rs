//! What a GPU has and what renting one costs, by name: for planning on a machine that isn't here.

mod name;

use std::collections::HashMap;

use serde::Deserialize;
use thiserror::Error;

use crate::Bytes;
use crate::trace::Rates;

const BUILTIN: &str = include_str!("catalogue.toml");

/// A model of GPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// How people call it: `RTX 3090`, `A100 80 GB`.
    pub name: String,
    /// Who made it.
    #[serde(default)]
    pub maker: Maker,
    /// Other names, such as the one its driver reports.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// All its memory in MiB (2^20 bytes) as its driver reports it, often less than what is sold.
    pub memory_mib: u64,
    /// The vendor's memory bandwidth, in GB (10^9 bytes) per second.
    pub bandwidth_gbs: f64,
    /// The vendor's dense peak in f32, in 10^12 operations per second.
    pub f32_tflops: f64,
    /// The same in bf16 summed in f32, or in f16 where it has no bf16.
    pub half_tflops: f64,
    /// Whether it computes in bf16.
    pub bf16: bool,
    /// What its direct links to other GPUs carry, both directions together, in GB per second; `None` without any.
    #[serde(default)]
    pub nvlink_gbs: Option<f64>,
    /// Where the numbers are from.
    pub source: String,
    /// When they were looked up: `2026-12-02`.
    pub date: String,
}

/// Who made a GPU, which says what runs on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// CUDA.
    #[default]
    Nvidia,
    /// ROCm.
    Amd,
    /// Metal.
    Apple,
}

/// A machine to rent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The cloud's name of it: `g5.xlarge`.
    pub name: String,
    /// `AWS`, `Azure`, `GCP`.
    pub cloud: String,
    /// The name of a [`Gpu`] of the same catalogue.
    pub gpu: String,
    /// How many of them.
    pub count: u32,
    /// US dollars an hour, on demand.
    pub price_usd_per_hour: f64,
    /// Where at that price.
    pub region: String,
    /// Who said so.
    pub source: String,
    /// When it was looked up: `2026-12-02`.
    pub date: String,
}

impl Gpu {
    /// Its peaks, for a roofline.
    pub fn rates(&self) -> Rates {
        Rates {
            f32: 1e12 * self.f32_tflops,
            half: 1e12 * self.half_tflops,
            bytes: 1e9 * self.bandwidth_gbs,
        }
    }

    /// The half precision to compute in: `bf16`, or `f16` where it has none.
    pub fn half(&self) -> &'static str {
        if self.bf16 { "bf16" } else { "f16" }
    }

    /// All its memory as its driver reports it.
    pub fn memory(&self) -> Bytes {
        // `Catalogue::parse` refuses what does not fit.
        Bytes(self.memory_mib.saturating_mul(MIB))
    }
}

const MIB: u64 = 1 << 20;

/// Why a catalogue could not be read, or a GPU not be found in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Not the TOML of a catalogue.
    #[error("line {line} of the GPU catalogue: {message}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// What is wrong there, in one line.
        message: String,
    },
    /// An entry that can't be used.
    #[error("`{name}` in the GPU catalogue: {reason}")]
    Invalid {
        /// The entry.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No GPU has this name.
    #[error("no GPU `{name}` in the catalogue; the nearest are {}; or give its memory instead: --memory 24GiB --backend cuda", nearest.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar names, best first.
        nearest: Vec<String>,
    },
    /// The name leaves open which GPU is meant.
    #[error("`{name}` can be {}: write one of them", choices.join(" or "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The names it can mean.
        choices: Vec<String>,
    },
}

/// The GPUs we know the memory of.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    gpus: Vec<Gpu>,
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    gpu: Vec<Gpu>,
    #[serde(default)]
    instance: Vec<Instance>,
}

impl Catalogue {
    /// The catalogue that comes with leanburn.
    pub fn builtin() -> Self {
        Self::parse(BUILTIN).expect("the tests read catalogue.toml")
    }

    /// Reads a catalogue: a TOML table `[[gpu]]` per GPU, with the fields of [`Gpu`], and `[[instance]]` with those
    /// of [`Instance`].
    ///
    /// # Errors
    ///
    /// [`CatalogueError::Malformed`] for what isn't such a TOML, unknown keys included, and
    /// [`CatalogueError::Invalid`] for a size or rate of 0, a name that is given twice, or an instance of a GPU that
    /// is not there.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        let file: File = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        file.gpu.iter().try_for_each(check)?;
        distinct(&file.gpu)?;
        let catalogue = Self {
            gpus: file.gpu,
            instances: file.instance,
        };
        let mut instances = catalogue.instances.iter();
        instances.try_for_each(|instance| catalogue.check(instance))?;
        Ok(catalogue)
    }

    /// The GPU of this name; case, spaces and makers (`NVIDIA GeForce RTX`) don't matter.
    ///
    /// # Errors
    ///
    /// [`CatalogueError::Ambiguous`] where the name fits GPUs with different memories (`A100`), and
    /// [`CatalogueError::Unknown`] where it fits none.
    pub fn find(&self, name: &str) -> Result<&Gpu, CatalogueError> {
        name::find(&self.gpus, name)
    }

    /// Every GPU, in the order of the file.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The machines to rent that have this GPU, in the order of the file.
    pub fn with<'a>(&'a self, gpu: &'a Gpu) -> impl Iterator<Item = &'a Instance> {
        let instances = self.instances.iter();
        instances.filter(move |instance| instance.gpu == gpu.name)
    }

    /// Every machine to rent, in the order of the file.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    fn check(&self, instance: &Instance) -> Result<(), CatalogueError> {
        let reason = if !self.gpus.iter().any(|gpu| gpu.name == instance.gpu) {
            format!("has a GPU `{}`, which no entry names so", instance.gpu)
        } else if instance.count == 0 || !is_positive(instance.price_usd_per_hour) {
            "count and price_usd_per_hour must be above 0".into()
        } else {
            return Ok(());
        };
        Err(invalid(&instance.name, reason))
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

fn malformed(text: &str, error: &toml::de::Error) -> CatalogueError {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.as_bytes().iter().take(start);
    CatalogueError::Malformed {
        line: 1 + before.filter(|byte| **byte == b'\n').count(),
        message: error.message().replace('\n', ", "),
    }
}

fn check(gpu: &Gpu) -> Result<(), CatalogueError> {
    let reason = if name::key(&gpu.name).is_empty() {
        "a name needs more than a maker"
    } else if gpu.memory_mib == 0 || gpu.memory_mib.checked_mul(MIB).is_none() {
        "memory_mib must be above 0 and fit in 2^64 bytes"
    } else if !is_positive(gpu.bandwidth_gbs) {
        "bandwidth_gbs must be above 0"
    } else if !is_positive(gpu.f32_tflops) || !is_positive(gpu.half_tflops) {
        "f32_tflops and half_tflops must be above 0"
    } else {
        return Ok(());
    };
    Err(invalid(&gpu.name, reason))
}

fn invalid(name: &str, reason: impl Into<String>) -> CatalogueError {
    CatalogueError::Invalid {
        name: name.into(),
        reason: reason.into(),
    }
}

fn distinct(gpus: &[Gpu]) -> Result<(), CatalogueError> {
    let mut seen: HashMap<Vec<String>, &Gpu> = HashMap::new();
    for gpu in gpus {
        for key in name::keys(gpu) {
            if let Some(other) = seen.insert(key, gpu)
                && other != gpu
            {
                return Err(invalid(&gpu.name, format!("also names `{}`", other.name)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
