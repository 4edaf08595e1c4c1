//! Saved runs: one file each, written beside the old one and renamed when complete.
//!
//! Layout: the line `leanburn run 1`, a line of JSON ([`State`], with lengths and checksums), the
//! model's record, the optimizer's record.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::Bytes as RecordBytes;
use leanburn_levers::LossScaler;
use serde::{Deserialize, Serialize};

use crate::{Recipe, Task, TrainError};

const MAGIC: &str = "leanburn run 1\n";
const EXTENSION: &str = "run";
/// Older files than these are removed after a save.
const KEEP: usize = 2;

/// Everything but the tensors. Data order, views and random numbers are functions of the recipe's
/// seed and the position, so the position is all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
pub struct State<T: Task> {
    /// The resolved recipe.
    pub recipe: Recipe<T>,
    /// Epoch, from 0.
    pub epoch: usize,
    /// Samples of this epoch that are behind.
    pub samples: usize,
    /// Updates applied, which is where the learning-rate schedule stands.
    pub applied: u64,
    /// Updates tried.
    pub tried: u64,
    /// Loss scale, growth and skip counters.
    pub scaler: LossScaler,
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
struct Header<T: Task> {
    state: State<T>,
    model: Part,
    optimizer: Part,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    bytes: u64,
    crc32: u32,
}

impl Part {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as u64,
            crc32: crc32(bytes),
        }
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A saved run in memory.
pub struct Saved<T: Task> {
    /// Where it came from.
    pub path: PathBuf,
    /// Position and scale.
    pub state: State<T>,
    model: Vec<u8>,
    optimizer: Vec<u8>,
}

/// Saves into `folder` and removes all but the last two files there; returns the new file.
pub fn save<T: Task, M: Module>(
    folder: &Path,
    state: &State<T>,
    model: &M,
    optimizer: &ModuleOptimizer,
) -> Result<PathBuf, TrainError> {
    let path = folder.join(format!("update-{:08}.{EXTENSION}", state.tried));
    let failed = |cause: String| TrainError::Saved {
        path: path.clone(),
        cause,
    };
    // Burn's running statistics lag by one update until somebody asks for a synchronised copy.
    drop(model.valid());
    let record = model.clone().into_record().into_bytes();
    let model = record.map_err(|cause| failed(cause.to_string()))?;
    let optimizer = optimizer
        .into_bytes()
        .map_err(|cause| failed(cause.to_string()))?;
    let header = Header {
        state: state.clone(),
        model: Part::of(&model),
        optimizer: Part::of(&optimizer),
    };
    let header = serde_json::to_string(&header).map_err(|cause| failed(cause.to_string()))?;
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(MAGIC.as_bytes())?;
        file.write_all(header.as_bytes())?;
        file.write_all(b"\n")?;
        file.write_all(&model)?;
        file.write_all(&optimizer)?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        // The rename itself is durable only once the folder is; Windows opens no folders.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    write().map_err(TrainError::io(&path))?;
    let mut files = list(folder)?;
    files.truncate(files.len().saturating_sub(KEEP));
    for old in files {
        fs::remove_file(&old).map_err(TrainError::io(&old))?;
    }
    Ok(path)
}

/// Removes the saved runs of an earlier run that wrote to the same folder.
pub fn clear(folder: &Path) -> Result<(), TrainError> {
    if folder.is_dir() {
        for old in list(folder)? {
            fs::remove_file(&old).map_err(TrainError::io(&old))?;
        }
    }
    Ok(())
}

/// The saved runs of a folder, oldest first.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, TrainError> {
    let entries = fs::read_dir(folder).map_err(TrainError::io(folder))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == EXTENSION)
        })
        .collect();
    files.sort();
    Ok(files)
}

/// Reads a file, or the newest of a run's folder; with `previous`, the newest that is whole, and
/// then `note` hears of those that are not.
pub fn open<T: Task>(
    path: &Path,
    previous: bool,
    mut note: impl FnMut(&TrainError),
) -> Result<Saved<T>, TrainError> {
    if path.is_file() {
        return read(path);
    }
    let inner = path.join("checkpoints");
    let folder = if inner.is_dir() { &inner } else { path };
    let nothing = TrainError::Saved {
        path: folder.to_owned(),
        cause: format!("no saved run (*.{EXTENSION}) in here"),
    };
    let mut last = nothing;
    for file in list(folder)?.iter().rev() {
        match read(file) {
            Ok(saved) => return Ok(saved),
            Err(error) if previous => {
                note(&error);
                last = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn read<T: Task>(path: &Path) -> Result<Saved<T>, TrainError> {
    let broken = |cause: &str| TrainError::Saved {
        path: path.to_owned(),
        cause: cause.to_owned(),
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(TrainError::io(path))?;
    let rest = bytes
        .strip_prefix(MAGIC.as_bytes())
        .ok_or_else(|| broken("not a run saved by this version of leanburn"))?;
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (header, parts) =
        rest.split_at(end.ok_or_else(|| broken("truncated: the header has no end"))?);
    let header: Header<T> =
        serde_json::from_slice(header).map_err(|cause| broken(&format!("header: {cause}")))?;
    let parts = &parts[1..];
    let wanted = header.model.bytes.saturating_add(header.optimizer.bytes);
    if parts.len() as u64 != wanted {
        return Err(broken(&format!(
            "truncated: {} bytes where the header says {wanted}",
            parts.len()
        )));
    }
    let (model, optimizer) = parts.split_at(header.model.bytes as usize);
    for (part, bytes) in [(&header.model, model), (&header.optimizer, optimizer)] {
        if crc32(bytes) != part.crc32 {
            return Err(broken(
                "damaged: a checksum does not match; --resume-previous takes the one before",
            ));
        }
    }
    Ok(Saved {
        path: path.to_owned(),
        state: header.state,
        model: model.to_vec(),
        optimizer: optimizer.to_vec(),
    })
}

impl<T: Task> Saved<T> {
    /// Puts the saved parameters and statistics into a model of the same shape.
    pub fn load_model<M: Module>(&mut self, model: M) -> Result<M, TrainError> {
        let bytes = RecordBytes::from_bytes_vec(std::mem::take(&mut self.model));
        let record = ModuleRecord::from_bytes(bytes).map_err(|cause| self.error(&cause))?;
        model
            .try_load_record(record)
            .map_err(|cause| self.error(&cause))
    }

    /// Puts the saved moments into an optimizer with the same groups.
    pub fn load_optimizer(
        &mut self,
        optimizer: ModuleOptimizer,
    ) -> Result<ModuleOptimizer, TrainError> {
        let bytes = RecordBytes::from_bytes_vec(std::mem::take(&mut self.optimizer));
        let record = OptimizerRecord::from_bytes(bytes).map_err(|cause| self.error(&cause))?;
        Ok(optimizer.load_record(record))
    }

    fn error(&self, cause: &impl ToString) -> TrainError {
        TrainError::Saved {
            path: self.path.clone(),
            cause: cause.to_string(),
        }
    }
}
