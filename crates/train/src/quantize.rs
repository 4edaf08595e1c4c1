//! A trained network to integers: calibrated on the training data, judged on the validation data.

mod images;
mod judge;
mod keep;
mod side;
mod text;

use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;
use leanburn_compress::{Calibration, Outputs, Quantized, Settings, file, quantize};
use leanburn_levers::Policy;

use crate::task::{Builds, Loaders, MicroBatch};
use crate::trainable::make_parameters;
use crate::{Job, Score, TrainError, Trainable};

pub use judge::Judgement;
pub use keep::{Kept, worst_first};
pub use side::{Side, side_by_side};

/// A task whose networks can be stored in integers.
pub trait Quantizes: Builds<Batch: Clone> {
    /// What a network is judged by: a name for people, its value, and how it is told.
    const MEASURE: Measured;

    /// The network without what evaluation can do without, such as norms behind convolutions.
    fn folded(network: Self::Network) -> Result<Self::Network, TrainError>;

    /// A network of the shape that [`folded`](Self::folded) leaves, whatever its values.
    fn without_norms(network: Self::Network) -> Self::Network;

    /// The network with large activations moved into weights, by what `calibration` saw.
    fn smoothed(
        network: Self::Network,
        calibration: &Calibration,
        alpha: f32,
    ) -> Result<Self::Network, TrainError>;

    /// Layers that multiply, but not their input by [`linear`](leanburn_levers::linear): their inputs stay float.
    fn weight_only(network: &Self::Network) -> Vec<String>;

    /// The most likely answer to every sample, where there are few; `None` where a network is not asked for one.
    fn answers(network: &Self::Network, batch: Self::Batch) -> Option<Vec<i64>>;

    /// Writes the network in f32, as training does it.
    fn save_float(network: &Self::Network, path: &Path) -> Result<(), TrainError>;

    /// How the network is published: the names of its parameters, and how linear weights lie.
    fn published(network: &Self::Network) -> (impl Fn(&str) -> String, bool);
}

/// A number that networks are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Its key in reports.
    pub key: &'static str,
    /// Its value, in [`unit`](Self::unit).
    pub of: fn(&Score) -> f64,
    /// What it is in, with a space before.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
}

impl Measured {
    /// How its value moves from one score to another.
    pub fn change(&self, from: &Score, to: &Score) -> String {
        let told = format!("{:+.3}", (self.of)(to) - (self.of)(from));
        match told == "-0.000" {
            true => "+0.000".into(),
            false => told,
        }
    }

    /// How much worse `now` is than `before`, in [`unit`](Self::unit); negative where it is better.
    pub fn loss(&self, before: &Score, now: &Score) -> f64 {
        let difference = (self.of)(before) - (self.of)(now);
        match self.more_is_better {
            true => difference,
            false => -difference,
        }
    }
}

/// A network in f32, and what was seen of it: what integers are made from.
pub struct Session<'a, T: Quantizes> {
    job: &'a Job<T>,
    /// In f32, folded and smoothed.
    pub float: T::Network,
    /// Samples that calibration saw.
    pub calibrated: usize,
    calibration: Calibration,
}

impl<T: Quantizes> Job<T> {
    /// A trained network of this job without levers and in f32, on the device of inference.
    pub fn in_f32(&self, trained: T::Network) -> Result<T::Network, TrainError> {
        let facts = T::facts_of(&self.loaders);
        let network = T::init(&self.recipe, &facts, &self.device())?.valid();
        // A cast in front of a weight is no part of the record.
        let network = network
            .try_load_record(trained.valid().into_record())
            .map_err(|cause| TrainError::Quantize(cause.to_string()))?;
        Ok(T::with_levers(&self.recipe, Policy::FP32, network))
    }

    /// The network of the recipe with the weights that it names, likewise.
    pub fn trained(&self) -> Result<T::Network, TrainError> {
        let facts = T::facts_of(&self.loaders);
        T::check(&self.recipe, &facts, self.chosen.backend)?;
        let network = T::init(&self.recipe, &facts, &self.device())?;
        let network = T::load(&self.recipe, network)?.valid();
        let network = T::with_levers(&self.recipe, Policy::FP32, network);
        make_parameters(&network);
        Ok(network)
    }

    /// A quantized network from a file, built as the recipe says.
    pub fn load_quantized(&self, path: &Path) -> Result<T::Network, TrainError> {
        let facts = T::facts_of(&self.loaders);
        let network = T::init(&self.recipe, &facts, &self.device())?.valid();
        let network = T::with_levers(&self.recipe, Policy::FP32, network);
        Ok(file::load(T::without_norms(network), path)?.0)
    }

    /// Where networks are judged: the job's device, without autodiff.
    pub fn inference(&self) -> Device {
        self.chosen.device.clone().inner()
    }

    /// Writes a quantized network as safetensors under published names.
    pub fn export(&self, quantized: &Quantized<T::Network>, path: &Path) -> Result<(), TrainError> {
        let (name, out_first) = T::published(&quantized.model);
        let layout = file::Layout {
            name: &name,
            out_first,
        };
        Ok(file::export(
            &quantized.model,
            &quantized.scheme,
            &layout,
            path,
        )?)
    }

    /// Folds a trained network in f32 and shows it `samples` samples of the training data; with `alpha`, smooths
    /// it by what they were, and shows them again.
    ///
    /// # Errors
    ///
    /// Where a norm has no statistics, a network cannot be smoothed, and where there are no samples.
    pub fn calibrate(
        &self,
        network: T::Network,
        samples: usize,
        alpha: Option<f32>,
    ) -> Result<Session<'_, T>, TrainError> {
        let mut float = T::folded(network.valid())?;
        make_parameters(&float);
        let mut calibration = Calibration::new(&float);
        let calibrated = self.show(&calibration.watch(float.clone()), samples)?;
        if let Some(alpha) = alpha {
            float = T::smoothed(float, &calibration, alpha)?;
            calibration = Calibration::new(&float);
            self.show(&calibration.watch(float.clone()), samples)?;
        }
        Ok(Session {
            job: self,
            float,
            calibrated,
            calibration,
        })
    }

    /// Runs training data through a network, at least `samples` samples where there are so many; returns how many.
    fn show(&self, network: &T::Network, samples: usize) -> Result<usize, TrainError> {
        let device = self.inference();
        let mut shown = 0;
        for batch in self.loaders.train(0, 0) {
            if shown >= samples {
                break;
            }
            let batch = batch?;
            shown += batch.visited();
            network.score(batch.into_device(&device));
        }
        Ok(shown)
    }
}

impl<T: Quantizes> Session<'_, T> {
    /// The network in integers.
    pub fn quantize(&self, settings: &Settings) -> Result<Quantized<T::Network>, TrainError> {
        let mut settings = settings.clone();
        settings.weight_only.extend(T::weight_only(&self.float));
        Ok(quantize(
            self.float.clone(),
            &settings,
            Some(&self.calibration),
        )?)
    }

    /// What integers do to the outputs of each layer, on `samples` samples of the training data.
    pub fn outputs(
        &self,
        quantized: &Quantized<T::Network>,
        settings: &Settings,
        samples: usize,
    ) -> Result<Outputs, TrainError> {
        let outputs = Outputs::new(&quantized.scheme, settings.granularity);
        self.job.show(&outputs.watch(self.float.clone()), samples)?;
        Ok(outputs)
    }
}
