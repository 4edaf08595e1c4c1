//! What the inputs of layers look like.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use burn::module::{Module, Param, Reparameterizer};
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use leanburn_levers::int8::{Watch, Watched};

use crate::layers::{layer_of, layers};
use crate::quantize::InputReport;
use crate::tensors::host;
use crate::{Kind, Method, ObserveError, Observer, QuantizeError};

/// The inputs that a network's layers were given.
///
/// ```
/// # use burn::nn::LinearConfig;
/// # use burn::tensor::{Device, Tensor};
/// use leanburn_compress::{Calibration, Method, Settings, quantize};
///
/// # let device = Device::flex();
/// # let model = LinearConfig::new(2, 2).init(&device);
/// # let batches = [Tensor::<2>::ones([4, 2], &device)];
/// let calibration = Calibration::new(&model);
/// let watched = calibration.watch(model.clone());
/// for batch in batches {
///     leanburn_levers::linear(&watched, batch); // a forward of your network
/// }
/// let settings = Settings { method: Some(Method::MinMax), ..Settings::default() };
/// let quantized = quantize(model, &settings, Some(&calibration))?;
/// # Ok::<(), leanburn_compress::QuantizeError>(())
/// ```
#[derive(Debug)]
pub struct Calibration {
    seen: BTreeMap<String, Arc<Inputs>>,
}

impl Calibration {
    /// For the convolutions and linear layers of a network.
    pub fn new<M: Module>(model: &M) -> Self {
        let multiplying = layers(model)
            .into_iter()
            .filter(|layer| layer.kind.has_input());
        let seen = multiplying.map(|layer| {
            let channels = match layer.kind {
                Kind::Linear => layer.shape[0],
                _ => 0,
            };
            let inputs = Inputs(Mutex::new(Seen {
                observer: Observer::new(),
                largest: vec![0.0; channels],
                error: None,
            }));
            (layer.path, Arc::new(inputs))
        });
        Self {
            seen: seen.collect(),
        }
    }

    /// The same network, watched: run batches through it.
    pub fn watch<M: Module>(&self, model: M) -> M {
        attach(model, |layer| {
            let inputs = self.seen.get(layer)?;
            Some(inputs.clone() as Arc<dyn Watch>)
        })
    }

    /// `max|x_j|` of each input channel `j` of a linear layer, `None` for another and before any batch.
    pub fn largest(&self, layer: &str) -> Option<Vec<f32>> {
        let seen = self.seen.get(layer)?.lock();
        (!seen.largest.is_empty() && seen.observer.batches() > 0).then(|| seen.largest.clone())
    }

    /// The range of a layer's input; `None` where nothing was seen of it.
    pub(crate) fn input(
        &self,
        layer: &str,
        method: Method,
    ) -> Result<Option<InputReport>, QuantizeError> {
        let Some(inputs) = self.seen.get(layer) else {
            return Ok(None);
        };
        let seen = inputs.lock();
        let failed = |cause| QuantizeError::Inputs {
            layer: layer.to_owned(),
            cause,
        };
        if let Some(error) = &seen.error {
            return Err(failed(error.clone()));
        }
        let observer = &seen.observer;
        let (Some(least), Some(most)) = (observer.min(), observer.max()) else {
            return Ok(None);
        };
        let range = observer.range(method).map_err(failed)?;
        Ok(Some(InputReport {
            seen: (least, most),
            range,
            saturated: observer.saturated(range),
        }))
    }
}

/// Attaches to each layer the watch that `of` has for it.
pub(crate) fn attach<M: Module>(model: M, of: impl FnMut(&str) -> Option<Arc<dyn Watch>>) -> M {
    struct Attach<F>(F);

    impl<F: FnMut(&str) -> Option<Arc<dyn Watch>>> Reparameterizer for Attach<F> {
        type Reparam = Watched;

        fn reparameterize<const D: usize>(
            &mut self,
            path: &str,
            param: Param<Tensor<D>>,
        ) -> (Param<Tensor<D>>, Option<Watched>) {
            let watch = layer_of(path).and_then(&mut self.0);
            (param, watch.map(Watched::by))
        }
    }
    model.apply_reparameterization(Attach(of))
}

#[derive(Debug)]
struct Inputs(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    observer: Observer,
    /// Per input channel of a linear layer.
    largest: Vec<f32>,
    /// The first batch that no range can contain.
    error: Option<ObserveError>,
}

impl Inputs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, values: &[f32]) {
        let mut seen = self.lock();
        if let Err(error) = seen.observer.see(values) {
            seen.error.get_or_insert(error);
        }
    }
}

impl Watch for Inputs {
    fn conv2d(&self, _layer: &Conv2d, x: &Tensor<4>, _y: &Tensor<4>) {
        self.see(&host(x.clone()));
    }

    fn linear(&self, _layer: &Linear, x: &Tensor<2>, _y: &Tensor<2>) {
        let values = host(x.clone());
        self.see(&values);
        let largest = &mut self.lock().largest;
        for row in values.chunks_exact(largest.len().max(1)) {
            for (largest, value) in largest.iter_mut().zip(row) {
                *largest = largest.max(value.abs());
            }
        }
    }
}
