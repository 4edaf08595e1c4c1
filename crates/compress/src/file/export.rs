//! Integers for other programs.

use std::borrow::Cow;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use leanburn_levers::int8::store;
use safetensors::{Dtype, View};

use super::FileError;
use crate::layers::layer_of;
use crate::{Kind, LayerScheme, Scheme};

/// How the reader of a file names and turns things.
pub struct Layout<'a> {
    /// The published name of a parameter of ours.
    pub name: &'a dyn Fn(&str) -> String,
    /// Linear weights are `[out, in]`, as PyTorch's.
    pub out_first: bool,
}

/// Writes a quantized network as safetensors, for other programs. Of a quantized layer `L` it holds
///
/// | name | dtype | shape | |
/// |---|---|---|---|
/// | `L.weight` | I8 | as in f32 | -127 to 127 |
/// | `L.weight_scale` | F32 | `[channels]` | `weight = L.weight * L.weight_scale` along the output channels |
/// | `L.input_scale` | F32 | `[1]` | where the input is rounded to uint8: |
/// | `L.input_zero_point` | U8 | `[1]` | `input = (level - zero point) * scale` |
///
/// and everything else in f32 by its name. The suffixes are those of the `compressed-tensors` format.
pub fn export<M: Module>(
    model: &M,
    scheme: &Scheme,
    layout: &Layout,
    path: &Path,
) -> Result<(), FileError> {
    let mut collect = Collect {
        path: Vec::new(),
        scheme,
        layout,
        entries: Vec::new(),
    };
    model.visit(&mut collect);
    let about = [("format".to_owned(), "leanburn-int8".to_owned())];
    let write = || -> Result<(), Box<dyn std::error::Error>> {
        let bytes = safetensors::serialize(collect.entries, Some(about.into()))?;
        // Beside the target, so that the rename stays on one file system.
        let partial = path.with_extension("partial");
        std::fs::write(&partial, bytes)?;
        std::fs::rename(&partial, path)?;
        Ok(())
    };
    write().map_err(|cause| FileError::of(path, cause))
}

struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Entry {
    fn f32(shape: Vec<usize>, values: &[f32]) -> Self {
        Self {
            dtype: Dtype::F32,
            shape,
            bytes: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        }
    }
}

impl View for Entry {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

struct Collect<'a> {
    path: Vec<String>,
    scheme: &'a Scheme,
    layout: &'a Layout<'a>,
    entries: Vec<(String, Entry)>,
}

impl Collect<'_> {
    fn push(&mut self, name: String, entry: Entry) {
        self.entries.push((name, entry));
    }

    /// The weight of a layer in integers, and how its input is rounded.
    fn weight(&mut self, name: String, of: LayerScheme, data: TensorData) {
        let shape = data.shape().to_vec();
        let integers = store::unpack(data).expect("layers of a scheme hold integers");
        let turned = of.kind == Kind::Linear && self.layout.out_first;
        let (shape, integers) = match turned {
            true => (vec![shape[1], shape[0]], transposed(&integers, shape[1])),
            false => (shape, integers),
        };
        if let Some(input) = of.input {
            let scale = Entry::f32(vec![1], &[input.scale]);
            self.push(renamed(&name, "input_scale"), scale);
            let zero_point = Entry {
                dtype: Dtype::U8,
                shape: vec![1],
                bytes: vec![input.zero_point],
            };
            self.push(renamed(&name, "input_zero_point"), zero_point);
        }
        let entry = Entry {
            dtype: Dtype::I8,
            shape,
            bytes: integers.into_iter().map(|integer| integer as u8).collect(),
        };
        self.push(name, entry);
    }
}

/// `L.weight` as `L.<suffix>`.
fn renamed(weight: &str, suffix: &str) -> String {
    format!("{}{suffix}", weight.trim_end_matches("weight"))
}

fn transposed(integers: &[i8], columns: usize) -> Vec<i8> {
    let column = |column: usize| integers[column..].iter().step_by(columns);
    (0..columns).flat_map(column).copied().collect()
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.join(".");
        let data = param.val().into_data();
        if let Some(of) = layer_of(&path).and_then(|layer| self.scheme.get(layer)) {
            return self.weight((self.layout.name)(&path), *of, data);
        }
        let name = match path.strip_suffix(".int8.scale") {
            Some(weight) => renamed(&(self.layout.name)(weight), "weight_scale"),
            None => (self.layout.name)(&path),
        };
        let shape = data.shape().to_vec();
        let values = data.convert::<f32>().try_to_vec::<f32>();
        self.push(name, Entry::f32(shape, &values.expect("f32, as converted")));
    }
}
