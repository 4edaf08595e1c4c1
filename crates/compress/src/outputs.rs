//! What quantization does to the output of each layer, on its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use leanburn_levers::int8::Watch;

use crate::calibrate::attach;
use crate::quantize::to_integers;
use crate::weights::Granularity;
use crate::{LayerScheme, Noise, Scheme};

/// Computes every layer of a float network a second time, in integers on the same input, and compares.
///
/// The difference is the layer's own: what layers before it do wrong is not in it (the shadow modules of
/// PyTorch's numeric suite do the same).
#[derive(Debug)]
pub struct Outputs {
    shadows: BTreeMap<String, Arc<Shadow>>,
}

impl Outputs {
    /// For the layers of a scheme that multiply.
    pub fn new(scheme: &Scheme, granularity: Granularity) -> Self {
        let multiplying = scheme.iter().filter(|(_, of)| of.kind.has_input());
        let shadows = multiplying.map(|(path, of)| {
            let shadow = Shadow {
                scheme: *of,
                granularity,
                conv2d: OnceLock::new(),
                linear: OnceLock::new(),
                noise: Mutex::default(),
            };
            (path.clone(), Arc::new(shadow))
        });
        Self {
            shadows: shadows.collect(),
        }
    }

    /// The float network, watched: run batches through it.
    pub fn watch<M: Module>(&self, model: M) -> M {
        attach(model, |layer| {
            let shadow = self.shadows.get(layer)?;
            Some(shadow.clone() as Arc<dyn Watch>)
        })
    }

    /// What the outputs of a layer came to; `None` for one that saw no batch.
    pub fn noise(&self, layer: &str) -> Option<Noise> {
        *self.shadows.get(layer)?.lock()
    }
}

#[derive(Debug)]
struct Shadow {
    scheme: LayerScheme,
    granularity: Granularity,
    conv2d: OnceLock<Option<Conv2d>>,
    linear: OnceLock<Option<Linear>>,
    noise: Mutex<Option<Noise>>,
}

impl Shadow {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Noise>> {
        self.noise.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layer in integers; `None` where its weight has none.
    fn quantized<M: Module>(&self, layer: M) -> Option<M> {
        // A layer alone has its weight at the root.
        let scheme = Scheme::from([(String::new(), self.scheme)]);
        let (layer, _) = to_integers(layer.valid(), &scheme, self.granularity).ok()?;
        Some(layer)
    }

    fn compare<const D: usize>(&self, right: &Tensor<D>, got: Tensor<D>) {
        let square = |x: Tensor<D>| x.powi_scalar(2).sum().into_scalar::<f64>();
        let noise = square(right.clone() - got);
        let signal = square(right.clone());
        let batch = Noise { signal, noise };
        self.lock().get_or_insert_default().add(batch);
    }
}

/// The weight as it is stored, without the watch.
fn plain<const D: usize>(weight: &Param<Tensor<D>>) -> Param<Tensor<D>> {
    Param::initialized(weight.id, weight.base())
}

impl Watch for Shadow {
    fn conv2d(&self, layer: &Conv2d, x: &Tensor<4>, y: &Tensor<4>) {
        let make = || {
            let mut layer = layer.clone();
            layer.weight = plain(&layer.weight);
            self.quantized(layer)
        };
        if let Some(layer) = self.conv2d.get_or_init(make) {
            self.compare(y, leanburn_levers::conv2d(layer, x.clone()));
        }
    }

    fn linear(&self, layer: &Linear, x: &Tensor<2>, y: &Tensor<2>) {
        let make = || {
            let mut layer = layer.clone();
            layer.weight = plain(&layer.weight);
            self.quantized(layer)
        };
        if let Some(layer) = self.linear.get_or_init(make) {
            self.compare(y, leanburn_levers::linear(layer, x.clone()));
        }
    }
}
