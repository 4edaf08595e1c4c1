//! What differs between kinds of training: the two tables of the recipe, the data, and how results are told.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use leanburn_data::DataError;
use leanburn_levers::Policy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::recipe::Defaults;
use crate::{Backend, Recipe, Score, TrainError, Trainable};

/// A number that scores are told in: its key in reports and column in `metrics.csv`, and how to take it.
pub type Measure = (&'static str, fn(&Score) -> f64);

/// A kind of training; recipe, job, loop and report are generic over it. The type itself carries nothing.
pub trait Task: Copy + Debug + PartialEq + 'static {
    /// The recipe's `[model]`.
    type Model: Table;
    /// The recipe's `[data]`.
    type Data: Table;
    /// Opened data.
    type Loaders: Loaders<Micro: MicroBatch<Batch = Self::Batch>>;
    /// A micro-batch on the device, which is what the model takes.
    type Batch;

    /// What a run counts, in the plural: speed, sizes and columns are in these.
    const ITEMS: &'static str;
    /// What a score is told in, besides the loss.
    const MEASURES: &'static [Measure];

    /// Values of the keys that a recipe leaves out.
    fn defaults() -> Defaults;

    /// Checks `[model]` and `[data]`; names the key and its range.
    fn validate(recipe: &Recipe<Self>) -> Result<(), TrainError>;

    /// Where `--data` goes.
    fn source(_recipe: &mut Recipe<Self>) -> Option<&mut String> {
        None
    }

    /// Where `--weights` goes.
    fn weights(_recipe: &mut Recipe<Self>) -> Option<&mut Option<PathBuf>> {
        None
    }

    /// Opens what the recipe names.
    fn open(recipe: &Recipe<Self>) -> Result<Self::Loaders, TrainError>;

    /// The model in a word, such as `resnet50`.
    fn model_name(model: &Self::Model) -> String;

    /// Items in a full micro-batch, as [`Trainable::samples`](crate::Trainable::samples) counts them.
    fn micro_batch(recipe: &Recipe<Self>) -> usize {
        recipe.train.batch
    }

    /// What to add where an update has several micro-batches, with a space before it.
    fn window_remark(_recipe: &Recipe<Self>) -> String {
        String::new()
    }

    /// Entries of the report that only this kind has.
    fn facts(_recipe: &Recipe<Self>) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The measures of a score in words, such as `accuracy 97.22 %`.
    fn tell(score: &Score) -> String;
}

/// A lever: its name, its price in words, and what it changes in a recipe.
pub type Lever<T> = (&'static str, &'static str, fn(&mut Recipe<T>));

/// A task whose network follows from the recipe and a few facts of the data: what the programs run and
/// what can be predicted without data or device.
pub trait Builds: Task {
    /// What is trained.
    type Network: Trainable<Batch = Self::Batch>;
    /// What the data decide about the network, such as the number of classes.
    type Facts: Clone + Debug;

    /// The facts of opened data.
    fn facts_of(loaders: &Self::Loaders) -> Self::Facts;

    /// The same without opening more of the data than their description.
    fn data_facts(recipe: &Recipe<Self>) -> Result<Self::Facts, TrainError>;

    /// Checks what only backend, facts and recipe together can tell.
    fn check(
        _recipe: &Recipe<Self>,
        _facts: &Self::Facts,
        _backend: Backend,
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// The network in f32, with new weights.
    fn init(
        recipe: &Recipe<Self>,
        facts: &Self::Facts,
        device: &Device,
    ) -> Result<Self::Network, TrainError>;

    /// The same with the weights that the recipe names, if it names any.
    fn load(recipe: &Recipe<Self>, network: Self::Network) -> Result<Self::Network, TrainError>;

    /// Saves the f32 weights as safetensors, under the names that [`load`](Self::load) reads.
    fn save(network: &Self::Network, path: &Path) -> Result<(), TrainError>;

    /// The same with the recipe's levers: dtypes, chunks, recomputation.
    fn with_levers(recipe: &Recipe<Self>, policy: Policy, network: Self::Network) -> Self::Network;

    /// Levers that only this kind has: name, price, and what they change in a recipe.
    fn levers() -> Vec<Lever<Self>> {
        Vec::new()
    }

    /// A full micro-batch without data.
    fn blank(recipe: &Recipe<Self>, facts: &Self::Facts, device: &Device) -> Self::Batch;
}

/// A table of the recipe. Derive serde's traits with `#[serde(default, deny_unknown_fields)]`.
pub trait Table: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {}

impl<T: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned> Table for T {}

/// Training and validation data.
pub trait Loaders {
    /// What they yield.
    type Micro: MicroBatch;

    /// An epoch of training micro-batches, in its own order, after the first `skip` samples of it.
    fn train(
        &self,
        epoch: usize,
        skip: usize,
    ) -> impl Iterator<Item = Result<Self::Micro, DataError>>;

    /// The validation data, in a fixed order.
    fn val(&self) -> impl Iterator<Item = Result<Self::Micro, DataError>>;

    /// Micro-batches of a whole training epoch.
    fn batches(&self) -> usize;

    /// The training data in a few words.
    fn name(&self) -> String;

    /// The same with what the model must fit, in a line.
    fn describe(&self) -> String {
        self.name()
    }

    /// A loss in words.
    fn tell_loss(&self, loss: f64) -> String {
        format!("loss {loss:.4}")
    }

    /// Files skipped so far.
    fn unreadable(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A micro-batch on the host.
pub trait MicroBatch: Clone {
    /// The same on a device.
    type Batch;

    /// How many samples of the epoch's order it used up, so that a resumed run can skip them.
    fn visited(&self) -> usize;

    /// Items in it, for the speed.
    fn items(&self) -> usize;

    /// Moves it to the device.
    fn into_device(self, device: &Device) -> Self::Batch;
}
