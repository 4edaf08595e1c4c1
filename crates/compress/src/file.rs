//! Networks in integers, on disk.
//!
//! A file is a burnpack of the module's parameters, weights as Burn's packed 8-bit tensors; its metadata holds
//! a [`Manifest`] as JSON under the key `leanburn.int8`.

mod export;

use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, Param};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, DType, Device, Tensor as Floats, TensorData};
use burn_pack::{Reader, Tensor, Writer};
use leanburn_levers::int8::store;
use serde::{Deserialize, Serialize};

use crate::Scheme;
use crate::layers::Walk;
use crate::quantize::prepare;

pub use export::{Layout, export};

/// The key of the metadata.
const KEY: &str = "leanburn.int8";

/// What this version writes, and all that it reads.
const VERSION: u32 = 1;

/// Why a network in integers could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub cause: String,
}

impl FileError {
    fn of(path: &Path, cause: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            cause: cause.to_string(),
        }
    }
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    version: u32,
    /// Which layers are in integers, and how.
    pub layers: Scheme,
    /// What the network is, in the words of who saved it: enough to build it again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub about: Option<String>,
}

impl Manifest {
    /// Reads what a file says of itself, and refuses one that this version does not know.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let failed = |cause: String| FileError::of(path, cause);
        // Burn's reader would look for another file where this one is missing.
        let reader = Reader::from_file_exact(path).map_err(|cause| match path.is_file() {
            true => failed(format!("not a whole burnpack file: {cause}")),
            false => failed(cause.to_string()),
        })?;
        let text = reader.metadata().get(KEY).ok_or_else(|| {
            failed(format!(
                "no network in integers: there is no '{KEY}' in its metadata"
            ))
        })?;
        let version: Versioned = serde_json::from_str(text)
            .map_err(|cause| failed(format!("broken '{KEY}': {cause}")))?;
        if version.version != VERSION {
            return Err(failed(format!(
                "scheme {} is unknown: this version of leanburn reads scheme {VERSION}",
                version.version
            )));
        }
        let manifest: Self = serde_json::from_str(text)
            .map_err(|cause| failed(format!("unknown scheme in '{KEY}': {cause}")))?;
        for (layer, of) in &manifest.layers {
            if let Some(input) = of.input
                && !(input.scale.is_normal() && input.scale > 0.0)
            {
                let scale = input.scale;
                return Err(failed(format!(
                    "the input of {layer} has the scale {scale}"
                )));
            }
        }
        Ok(manifest)
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Writes a quantized network; an existing file is replaced once the new one is complete.
pub fn save<M: Module>(
    model: M,
    scheme: &Scheme,
    about: Option<String>,
    path: &Path,
) -> Result<(), FileError> {
    let manifest = Manifest {
        version: VERSION,
        layers: scheme.clone(),
        about,
    };
    let write = || -> Result<(), Box<dyn std::error::Error>> {
        let manifest = serde_json::to_string(&manifest)?;
        let record = Reader::from_bytes(model.into_record().into_bytes()?)?;
        let packed = |integers, shape: &[usize]| Some(store::pack_for_file(integers, shape));
        Writer::new(repacked(record, packed)?)
            .with_metadata(KEY, &manifest)
            .auto_extension(false)
            .overwrite(true)
            .write_to_file(path)?;
        Ok(())
    };
    write().map_err(|cause| FileError::of(path, cause))
}

/// Loads a quantized network into one that was built alike, whose own weights do not count.
///
/// # Errors
///
/// A scheme that is not known, and parameters that do not match, by name and shape.
pub fn load<M: Module>(model: M, path: &Path) -> Result<(M, Scheme), FileError> {
    let manifest = Manifest::read(path)?;
    let failed = |cause: String| FileError::of(path, cause);
    let found = Walk::over(&model).found;
    let strange = manifest.layers.iter().find(|(name, of)| {
        !found
            .iter()
            .any(|layer| layer.path == **name && layer.kind == of.kind)
    });
    if let Some((name, of)) = strange {
        return Err(failed(format!(
            "{name} is a {:?} in the file, and the network has none of this name",
            of.kind
        )));
    }
    let device = model.devices().into_iter().next().unwrap_or_default();
    let read = || -> Result<M, Box<dyn std::error::Error>> {
        let record = record(path, &device)?;
        Ok(prepare(model.valid(), &manifest.layers)
            .try_load_record(record)?
            .map(&mut Owned))
    };
    let model = read().map_err(|cause| failed(cause.to_string()))?;
    Ok((model, manifest.layers))
}

/// A file's parameters, integers packed as the device has them.
fn record(path: &Path, device: &Device) -> Result<ModuleRecord, Box<dyn std::error::Error>> {
    let packed = |integers, shape: &[usize]| store::pack(integers, shape, device);
    let tensors = repacked(Reader::from_file_exact(path)?, packed)?;
    Ok(ModuleRecord::from_bytes(
        Writer::new(tensors).into_bytes()?,
    )?)
}

/// Gives every float tensor memory of its own: what is loaded shares the file's, which would stay as a whole.
struct Owned;

impl ModuleMapper for Owned {
    fn map_float<const D: usize>(&mut self, param: Param<Floats<D>>) -> Param<Floats<D>> {
        if matches!(param.dtype(), DType::QFloat(_)) {
            return param;
        }
        param.map(|tensor| {
            let (device, dtype) = (tensor.device(), tensor.dtype());
            let data = tensor.into_data();
            let bytes = Bytes::from_bytes_vec(data.as_bytes().to_vec());
            let data = TensorData::from_bytes(bytes, data.shape().clone(), dtype);
            Floats::from_data(data, (&device, dtype))
        })
    }
}

/// All tensors, the packed ones packed anew.
fn repacked(
    reader: Reader,
    pack: impl Fn(Vec<i8>, &[usize]) -> Option<TensorData>,
) -> Result<Vec<Tensor>, Box<dyn std::error::Error>> {
    let each = |tensor: Tensor| {
        let (name, dtype, shape, id, bytes) = tensor.into_parts()?;
        if !matches!(dtype, DType::QFloat(_)) {
            return Ok(Tensor::new(name, dtype, shape, id, bytes));
        }
        let data = TensorData::from_bytes(bytes, shape.clone(), dtype);
        let data = store::unpack(data).and_then(|integers| pack(integers, &shape));
        let data = data.ok_or_else(|| {
            format!("{name}: the device packs four integers into a word, and no axis of {shape:?} is a multiple of four")
        })?;
        let dtype = data.dtype();
        Ok(Tensor::new(name, dtype, shape, id, data.into_bytes()))
    };
    reader.into_tensors()?.into_iter().map(each).collect()
}
