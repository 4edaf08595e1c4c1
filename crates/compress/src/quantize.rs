//! A trained network to integers.

use burn::module::{Module, Param, ParamId, Reparameterizer};
use burn::tensor::{Tensor, TensorData};
use leanburn_levers::Int8;
use leanburn_levers::int8::store;

use crate::calibrate::Calibration;
use crate::layers::{Layer, Walk, layer_of};
use crate::tensors::host;
use crate::weights::{self, Granularity};
use crate::{LayerScheme, Method, Noise, QuantizeError, Range, Scheme};

/// What to quantize, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What of a weight has a scale of its own.
    pub granularity: Granularity,
    /// How the ranges of inputs are chosen; `None` quantizes weights only.
    pub method: Option<Method>,
    /// Layers left in float: paths, or beginnings of paths such as `layer4`.
    pub keep_float: Vec<String>,
    /// Layers whose inputs are left in float, likewise.
    pub weight_only: Vec<String>,
}

impl Settings {
    /// Whether every name is one of these layers', and not all are left in float.
    pub fn check(&self, layers: &[Layer]) -> Result<(), QuantizeError> {
        for name in self.keep_float.iter().chain(&self.weight_only) {
            if !layers.iter().any(|layer| within(name, &layer.path)) {
                return Err(QuantizeError::Unknown {
                    name: name.clone(),
                    known: layers.iter().map(|layer| layer.path.clone()).collect(),
                });
            }
        }
        match layers
            .iter()
            .all(|layer| named(&self.keep_float, &layer.path))
        {
            true => Err(QuantizeError::Nothing),
            false => Ok(()),
        }
    }
}

/// A layer's way from f32 to integers.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// The layer.
    pub layer: Layer,
    /// What rounding does to the weight.
    pub weight: Noise,
    /// SQNR of the output channel that has the worst, dB.
    pub worst_channel: f64,
    /// What becomes of the input, where it is rounded.
    pub input: Option<InputReport>,
}

/// A layer's input in calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputReport {
    /// Least and largest value seen.
    pub seen: (f32, f32),
    /// What the 256 levels span.
    pub range: Range,
    /// Share of the values that lie outside of it, 0 to 1.
    pub saturated: f64,
}

/// A network in integers, for inference.
#[derive(Debug)]
pub struct Quantized<M> {
    /// The network, without autodiff.
    pub model: M,
    /// How its layers are stored.
    pub scheme: Scheme,
    /// Every quantized layer, in the network's order.
    pub layers: Vec<LayerReport>,
    /// Layers left in float: those that were to be, and those that the device cannot pack.
    pub float: Vec<Layer>,
}

/// Stores the weights of `model` as integers, layer by layer, and rounds inputs as `calibration` saw them.
///
/// Convolutions, linear layers and embeddings are meant; biases, norms and statistics stay float. Any Burn
/// module computes on the result; [`conv2d`](leanburn_levers::conv2d), [`linear`](leanburn_levers::linear) and
/// [`embedding`](leanburn_levers::embedding) use the integers.
///
/// # Errors
///
/// [`QuantizeError`], which names the layers.
pub fn quantize<M: Module>(
    model: M,
    settings: &Settings,
    calibration: Option<&Calibration>,
) -> Result<Quantized<M>, QuantizeError> {
    let walk = Walk::over(&model);
    if let Some(taken) = walk.reparameterized.first() {
        return Err(QuantizeError::Taken(taken.clone()));
    }
    let (float, chosen) = chosen(&model, walk.found, settings)?;
    let mut inputs = Vec::new();
    for layer in &chosen {
        let weight_only = !layer.kind.has_input() || named(&settings.weight_only, &layer.path);
        inputs.push(match (settings.method, calibration) {
            (Some(method), Some(calibration)) if !weight_only => {
                calibration.input(&layer.path, method)?
            }
            _ => None,
        });
    }
    if settings.method.is_some() {
        let rounded =
            |layer: &&Layer| layer.kind.has_input() && !named(&settings.weight_only, &layer.path);
        let unseen = chosen.iter().zip(&inputs);
        let unseen = unseen.filter(|(layer, input)| input.is_none() && rounded(layer));
        let unseen: Vec<_> = unseen.map(|(layer, _)| layer.path.clone()).collect();
        if !unseen.is_empty() {
            return Err(QuantizeError::Uncalibrated(unseen));
        }
    }
    let scheme = chosen.iter().zip(&inputs).map(|(layer, input)| {
        let input = input.map(|input| input.range.affine());
        let kind = layer.kind;
        (layer.path.clone(), LayerScheme { kind, input })
    });
    let scheme: Scheme = scheme.collect();
    let (model, rounded) = to_integers(model.valid(), &scheme, settings.granularity)?;
    let layers = chosen.into_iter().zip(inputs).zip(rounded);
    let layers = layers.map(|((layer, input), (weight, worst_channel))| LayerReport {
        layer,
        weight,
        worst_channel,
        input,
    });
    Ok(Quantized {
        model,
        scheme,
        layers: layers.collect(),
        float,
    })
}

/// The layers that stay in float, and the others.
fn chosen<M: Module>(
    model: &M,
    found: Vec<Layer>,
    settings: &Settings,
) -> Result<(Vec<Layer>, Vec<Layer>), QuantizeError> {
    settings.check(&found)?;
    let devices = model.devices();
    let packs = |layer: &Layer| {
        devices
            .iter()
            .all(|device| store::packs(&layer.shape, device))
    };
    let kept = |layer: &Layer| named(&settings.keep_float, &layer.path) || !packs(layer);
    let (float, chosen): (Vec<_>, Vec<_>) = found.into_iter().partition(kept);
    match chosen.is_empty() {
        true => Err(QuantizeError::Nothing),
        false => Ok((float, chosen)),
    }
}

fn named(names: &[String], path: &str) -> bool {
    names.iter().any(|name| within(name, path))
}

/// Whether a path is this one or below it.
fn within(name: &str, path: &str) -> bool {
    path.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Stores the layers of `scheme` as integers; returns what that did to each, in the module's order.
pub(crate) fn to_integers<M: Module>(
    model: M,
    scheme: &Scheme,
    granularity: Granularity,
) -> Result<(M, Vec<(Noise, f64)>), QuantizeError> {
    let mut rounding = Rounding {
        scheme,
        granularity,
        rounded: Vec::new(),
        broken: None,
    };
    let model = model.apply_reparameterization(&mut rounding);
    match rounding.broken {
        Some(layer) => Err(QuantizeError::Weight(layer)),
        None => Ok((model, rounding.rounded)),
    }
}

struct Rounding<'a> {
    scheme: &'a Scheme,
    granularity: Granularity,
    rounded: Vec<(Noise, f64)>,
    broken: Option<String>,
}

impl Reparameterizer for &mut Rounding<'_> {
    type Reparam = Int8;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Int8>) {
        let Some((layer, of)) = layer_of(path).and_then(|path| self.scheme.get_key_value(path))
        else {
            return (param, None);
        };
        let (axis, shape, device) = (of.kind.axis(), param.shape(), param.device());
        let values = host(param.base());
        let rounded = match weights::round(&values, &shape, axis, self.granularity) {
            Ok(rounded) => rounded,
            Err(weights::NotFinite) => {
                self.broken.get_or_insert_with(|| layer.clone());
                return (param, None);
            }
        };
        let base = store::pack(rounded.integers, &shape, &device);
        let base = base.expect("only layers that the device packs are chosen");
        self.rounded.push((rounded.noise, rounded.worst_channel));
        let base = Tensor::from_data(base, &device);
        let scale = TensorData::new(rounded.scales, [shape[axis]]);
        let scale = Tensor::from_data(scale, &device);
        (param.map(|_| base), Some(int8(of, scale)))
    }
}

fn int8(of: &LayerScheme, scale: Tensor<1>) -> Int8 {
    Int8 {
        scale: Param::initialized(ParamId::new(), scale),
        axis: of.kind.axis(),
        input: of.input,
    }
}

/// Gives the layers of `scheme` the places of their scales, so that a record in integers can be loaded.
pub(crate) fn prepare<M: Module>(model: M, scheme: &Scheme) -> M {
    struct Places<'a>(&'a Scheme);

    impl Reparameterizer for Places<'_> {
        type Reparam = Int8;

        fn reparameterize<const D: usize>(
            &mut self,
            path: &str,
            param: Param<Tensor<D>>,
        ) -> (Param<Tensor<D>>, Option<Int8>) {
            let of = layer_of(path).and_then(|layer| self.0.get(layer));
            let place = of.map(|of| {
                let channels = param.lazy_shape()[of.kind.axis()];
                int8(of, Tensor::zeros([channels], &param.lazy_device()))
            });
            (param, place)
        }
    }
    model.apply_reparameterization(Places(scheme))
}
