//! Published state dicts in and out: `.safetensors` and `.pth`, by the names of torchvision and Hugging Face.

mod names;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use burn::store::{
    ApplyError, ApplyResult, BurnToPyTorchAdapter, FloatCastAdapter, ModuleAdapter, ModuleSnapshot,
    ModuleStore, PyTorchToBurnAdapter, PytorchStore, SafetensorsStore,
};

use burn::module::Module;
use burn::tensor::DType;

use names::Names;

use crate::transformer::Arch;
use crate::{Encoder, Gpt, ResNet};

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
    /// GPT-2's layers are stored as Burn stores them, and the `.pth` reader would turn them.
    #[error("{}: GPT-2 weights are read from .safetensors; save the model again with safe_serialization", .0.display())]
    OnlySafetensors(PathBuf),
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
    let of_head = |name: &String| name.starts_with("fc.") || name.starts_with("classifier.");
    if missing.is_empty() && unexpected.is_empty() && shapes.iter().all(of_head) {
        text += " (another number of classes: --new-head trains a new head)";
    }
    text
}

/// What a load did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Tensors that were loaded.
    pub loaded: usize,
    /// Tensors of the file that the model has no use for, such as `num_batches_tracked` counters, stored
    /// masks, and heads of another task.
    pub ignored: Vec<String>,
    /// Whether the head was left as it was.
    pub new_head: bool,
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} tensors loaded", self.loaded)?;
        if let [first, ..] = self.ignored.as_slice() {
            write!(f, ", {} not needed (such as {first})", self.ignored.len())?;
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
        self,
        path: &Path,
        new_head: bool,
    ) -> Result<(Self, LoadReport), WeightsError> {
        load(self, path, &names::RESNET, new_head)
    }

    /// Saves the f32 weights as safetensors under torchvision's names; PyTorch loads the file with
    /// `load_state_dict(safetensors.torch.load_file(path), strict=False)`, since the
    /// `num_batches_tracked` counters are absent. An existing file is replaced once the new one is complete.
    pub fn save_weights(&self, path: &Path) -> Result<(), WeightsError> {
        save(self, path, &names::RESNET)
    }
}

impl ResNet {
    /// What torchvision calls a parameter of this path.
    pub fn published_name(&self, path: &str) -> String {
        names::RESNET.in_file(path)
    }
}

impl Gpt {
    /// What Hugging Face calls a parameter of this path.
    pub fn published_name(&self, path: &str) -> String {
        self.names().in_file(path)
    }

    /// Whether linear weights are `[out, in]` where this network is published, not `[in, out]`.
    pub fn published_out_first(&self) -> bool {
        self.names().transposed
    }

    fn names(&self) -> &'static Names {
        match (self.config().arch, self.config().tied) {
            (Arch::Gpt2, _) => &names::GPT2,
            (Arch::Llama, true) => &names::LLAMA_TIED,
            (Arch::Llama, false) => &names::LLAMA,
        }
    }

    /// Loads GPT-2 or Llama weights by Hugging Face's names, from one `.safetensors` or `.pth` file, with or
    /// without the `transformer.` prefix; half-precision weights are widened.
    ///
    /// Names or shapes that do not match are an error, and then nothing is loaded at all.
    pub fn load_weights(self, path: &Path) -> Result<(Self, LoadReport), WeightsError> {
        let names = self.names();
        load(self, path, names, false)
    }

    /// Saves the f32 weights as safetensors under Hugging Face's names; a tied head is not repeated.
    pub fn save_weights(&self, path: &Path) -> Result<(), WeightsError> {
        save(self, path, self.names())
    }
}

impl Encoder {
    /// What Hugging Face calls a parameter of this path.
    pub fn published_name(&self, path: &str) -> String {
        self.names().in_file(path)
    }

    fn names(&self) -> &'static Names {
        match self.transform.is_some() {
            true => &names::BERT_MASKED,
            false => &names::BERT,
        }
    }

    /// Loads BERT weights by Hugging Face's names, with or without the `bert.` prefix. With `new_head` the
    /// file's classifier is left out and this model's stays.
    pub fn load_weights(
        self,
        path: &Path,
        new_head: bool,
    ) -> Result<(Self, LoadReport), WeightsError> {
        let names = self.names();
        load(self, path, names, new_head)
    }

    /// Saves the f32 weights as safetensors under Hugging Face's names.
    pub fn save_weights(&self, path: &Path) -> Result<(), WeightsError> {
        save(self, path, self.names())
    }
}

fn load<M: Module>(
    mut model: M,
    path: &Path,
    names: &Names,
    new_head: bool,
) -> Result<(M, LoadReport), WeightsError> {
    // Masters are f32, whatever the file stores.
    let to_f32 = FloatCastAdapter::to(DType::F32);
    macro_rules! read {
        ($store:expr) => {{
            let mut store = $store.validate(false).allow_partial(true);
            for (from, to) in names.patterns() {
                store = store.with_key_remapping(from, to);
            }
            if new_head {
                store = store.with_predicate(names.not_head);
            }
            apply(&mut model, &mut store, path)?
        }};
    }
    let result = match (Format::of(path)?, names.transposed) {
        (Format::Safetensors, true) => {
            let adapter = PyTorchToBurnAdapter.chain(to_f32);
            read!(SafetensorsStore::from_file(path).with_from_adapter(adapter))
        }
        (Format::Safetensors, false) => {
            read!(SafetensorsStore::from_file(path).with_from_adapter(to_f32))
        }
        (Format::Pytorch, true) => read!(PytorchStore::from_file(path)),
        (Format::Pytorch, false) => return Err(WeightsError::OnlySafetensors(path.to_owned())),
    };
    report(&result, path, names, new_head).map(|report| (model, report))
}

fn save<M: Module>(model: &M, path: &Path, names: &Names) -> Result<(), WeightsError> {
    let mut store = SafetensorsStore::from_file(path).overwrite(true);
    if names.transposed {
        store = store.with_to_adapter(BurnToPyTorchAdapter);
    }
    for (from, to) in names.patterns_to_file() {
        store = store.with_key_remapping(from, to);
    }
    model
        .save_into(&mut store)
        .map_err(|cause| WeightsError::Corrupt {
            path: path.to_owned(),
            cause: cause.to_string(),
        })
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

fn apply<M: Module, S: ModuleStore>(
    model: &mut M,
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

fn report(
    result: &ApplyResult,
    path: &Path,
    names: &Names,
    new_head: bool,
) -> Result<LoadReport, WeightsError> {
    let unused = result.unused.iter().map(|name| names.in_file(name));
    let (ignored, unexpected): (Vec<_>, Vec<_>) = unused.partition(|name| names.is_extra(name));
    let missing = result.missing.iter().map(|(name, _)| names.in_file(name));
    let missing: Vec<_> = missing
        .filter(|name| !(new_head && name.starts_with(names.head)))
        .collect();
    let shapes = result.errors.iter().map(|error| match error {
        ApplyError::ShapeMismatch {
            path,
            expected,
            found,
        } => format!(
            "{} (file {found:?}, model {expected:?})",
            names.in_file(path)
        ),
        other => other.to_string(),
    });
    let shapes: Vec<_> = shapes.collect();
    if missing.is_empty() && unexpected.is_empty() && shapes.is_empty() {
        Ok(LoadReport {
            loaded: result.applied.len(),
            ignored,
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
