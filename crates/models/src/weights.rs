//! torchvision state dicts in and out: `.safetensors` and `.pth`, by torchvision's own names.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use burn::store::{
    ApplyError, ApplyResult, BurnToPyTorchAdapter, ModuleSnapshot, ModuleStore,
    PyTorchToBurnAdapter, PytorchStore, SafetensorsStore,
};

use crate::ResNet;

/// Why weights could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file cannot be opened.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Neither safetensors nor a PyTorch file.
    #[error("{}: neither a .safetensors nor a PyTorch .pth file (judged by its first bytes)", .0.display())]
    Format(PathBuf),
    /// The right format, but broken inside.
    #[error("{}: {cause}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        cause: String,
    },
    /// Names or shapes that do not match; nothing was loaded.
    #[error("{}: {}", path.display(), describe(missing, unexpected, shapes))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Names that the model has and the file has not.
        missing: Vec<String>,
        /// Names that the file has and the model has not.
        unexpected: Vec<String>,
        /// Names whose shapes differ, with both.
        shapes: Vec<String>,
    },
}

fn describe(missing: &[String], unexpected: &[String], shapes: &[String]) -> String {
    let part = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{} {what}: {}", names.len(), names.join(", ")))
    };
    let parts = [
        part("missing", missing),
        part("unexpected", unexpected),
        part("of another shape", shapes),
    ];
    let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    if missing.is_empty()
        && unexpected.is_empty()
        && shapes.iter().all(|name| name.starts_with("fc."))
    {
        text += " (another number of classes: --new-head trains a new head)";
    }
    text
}

/// What a load did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Tensors that were loaded.
    pub loaded: usize,
    /// `num_batches_tracked` counters, which Burn's BatchNorm has no use for.
    pub ignored: usize,
    /// Whether the head was left as it was.
    pub new_head: bool,
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} tensors loaded", self.loaded)?;
        if self.ignored > 0 {
            write!(f, ", {} num_batches_tracked counters ignored", self.ignored)?;
        }
        if self.new_head {
            write!(f, ", new head")?;
        }
        Ok(())
    }
}

impl ResNet {
    /// Loads a torchvision state dict; the format is told by the file's first bytes.
    ///
    /// With `new_head` the file's classifier is left out and this model's stays. Names or shapes
    /// that do not match are an error, and then nothing is loaded at all.
    pub fn load_weights(
        mut self,
        path: &Path,
        new_head: bool,
    ) -> Result<(Self, LoadReport), WeightsError> {
        let names = |name: &str, _: &str| !name.starts_with("fc.");
        let result = match Format::of(path)? {
            Format::Safetensors => {
                let mut store = SafetensorsStore::from_file(path)
                    .with_from_adapter(PyTorchToBurnAdapter)
                    .with_key_remapping(r"\.downsample\.0\.", ".downsample.conv.")
                    .with_key_remapping(r"\.downsample\.1\.", ".downsample.bn.")
                    .validate(false)
                    .allow_partial(true);
                if new_head {
                    store = store.with_predicate(names);
                }
                apply(&mut self, &mut store, path)?
            }
            Format::Pytorch => {
                let mut store = PytorchStore::from_file(path)
                    .with_key_remapping(r"\.downsample\.0\.", ".downsample.conv.")
                    .with_key_remapping(r"\.downsample\.1\.", ".downsample.bn.")
                    .validate(false)
                    .allow_partial(true);
                if new_head {
                    store = store.with_predicate(names);
                }
                apply(&mut self, &mut store, path)?
            }
        };
        report(&result, path, new_head).map(|report| (self, report))
    }

    /// Saves the f32 weights as safetensors under torchvision's names; PyTorch loads the file with
    /// `load_state_dict(safetensors.torch.load_file(path), strict=False)`, since the
    /// `num_batches_tracked` counters are absent. An existing file is replaced once the new one is complete.
    pub fn save_weights(&self, path: &Path) -> Result<(), WeightsError> {
        let mut store = SafetensorsStore::from_file(path)
            .with_to_adapter(BurnToPyTorchAdapter)
            .with_key_remapping(r"\.downsample\.conv\.", ".downsample.0.")
            .with_key_remapping(r"\.downsample\.bn\.", ".downsample.1.")
            .overwrite(true);
        self.save_into(&mut store)
            .map_err(|cause| WeightsError::Corrupt {
                path: path.to_owned(),
                cause: cause.to_string(),
            })
    }
}

enum Format {
    Safetensors,
    Pytorch,
}

impl Format {
    fn of(path: &Path) -> Result<Self, WeightsError> {
        let io = |cause| WeightsError::Io {
            path: path.to_owned(),
            cause,
        };
        let mut head = [0; 9];
        let read = File::open(path)
            .and_then(|mut file| file.read(&mut head))
            .map_err(io)?;
        match &head[..read] {
            [b'P', b'K', 3, 4, ..] | [0x80, 2..=5, ..] => Ok(Self::Pytorch),
            [.., b'{'] if read == 9 => Ok(Self::Safetensors),
            _ => Err(WeightsError::Format(path.to_owned())),
        }
    }
}

fn apply<S: ModuleStore>(
    model: &mut ResNet,
    store: &mut S,
    path: &Path,
) -> Result<ApplyResult, WeightsError>
where
    S::Error: std::fmt::Display,
{
    model
        .load_from(store)
        .map_err(|cause| WeightsError::Corrupt {
            path: path.to_owned(),
            cause: cause.to_string(),
        })
}

fn report(result: &ApplyResult, path: &Path, new_head: bool) -> Result<LoadReport, WeightsError> {
    let (ignored, unexpected): (Vec<_>, Vec<_>) = result
        .unused
        .iter()
        .map(|name| torchvision_name(name))
        .partition(|name| name.ends_with("num_batches_tracked"));
    let missing = result
        .missing
        .iter()
        .map(|(name, _)| torchvision_name(name));
    let missing: Vec<_> = missing
        .filter(|name| !(new_head && name.starts_with("fc.")))
        .collect();
    let shapes: Vec<_> = result
        .errors
        .iter()
        .map(|error| match error {
            ApplyError::ShapeMismatch {
                path,
                expected,
                found,
            } => {
                format!(
                    "{} (file {found:?}, model {expected:?})",
                    torchvision_name(path)
                )
            }
            other => other.to_string(),
        })
        .collect();
    if missing.is_empty() && unexpected.is_empty() && shapes.is_empty() {
        Ok(LoadReport {
            loaded: result.applied.len(),
            ignored: ignored.len(),
            new_head,
        })
    } else {
        Err(WeightsError::Mismatch {
            path: path.to_owned(),
            missing,
            unexpected,
            shapes,
        })
    }
}

fn torchvision_name(name: &str) -> String {
    name.replace(".downsample.conv.", ".downsample.0.")
        .replace(".downsample.bn.", ".downsample.1.")
        .replace(".gamma", ".weight")
        .replace(".beta", ".bias")
}
