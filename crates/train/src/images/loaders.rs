//! Training and validation images.

use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use leanburn_data::{
    Batch, DataError, Digits, HostBatch, ImageFolder, Loader, LoaderConfig, Source, Split,
    Synthetic,
};

use super::Images;
use crate::task::{Loaders, MicroBatch};
use crate::{Recipe, TrainError};

/// Training and validation images.
pub struct ImageLoaders {
    /// In a new random order each epoch.
    pub train: Loader,
    /// In a fixed order, evaluation views.
    pub val: Loader,
}

impl ImageLoaders {
    /// Opens what the recipe names.
    pub fn open(recipe: &Recipe<Images>) -> Result<Self, TrainError> {
        let data = &recipe.data;
        let size = data.image_size;
        let (train, val): (Arc<dyn Source>, Arc<dyn Source>) = match data.source.as_str() {
            "digits" => {
                let load = |split| match data.split_seed {
                    Some(seed) => Digits::load_drawn(split, size, seed),
                    None => Digits::load(split, size),
                };
                (Arc::new(load(Split::Train)?), Arc::new(load(Split::Val)?))
            }
            "synthetic" => (
                Arc::new(Synthetic::new(1024, 10, size, recipe.train.seed)),
                Arc::new(Synthetic::new(
                    256,
                    10,
                    size,
                    recipe.train.seed.wrapping_add(1),
                )),
            ),
            folder => {
                let (train, val) = ImageFolder::open(Path::new(folder), size)?;
                (Arc::new(train), Arc::new(val))
            }
        };
        let config = |training: bool| LoaderConfig {
            batch: recipe.train.batch,
            workers: data.workers,
            seed: recipe.train.seed,
            shuffle: training,
            augment: training && data.augment,
            strict: data.strict,
        };
        Ok(Self {
            train: Loader::new(train, config(true)),
            val: Loader::new(val, config(false)),
        })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.train.source().classes().len()
    }
}

impl Loaders for ImageLoaders {
    type Micro = HostBatch;

    fn train(
        &self,
        epoch: usize,
        skip: usize,
    ) -> impl Iterator<Item = Result<HostBatch, DataError>> {
        self.train.epoch(epoch, skip)
    }

    fn val(&self) -> impl Iterator<Item = Result<HostBatch, DataError>> {
        self.val.epoch(0, 0)
    }

    fn batches(&self) -> usize {
        self.train.batches()
    }

    fn name(&self) -> String {
        self.train.source().name()
    }

    fn describe(&self) -> String {
        format!("{}: {} classes", self.name(), self.classes())
    }

    fn unreadable(&self) -> Vec<String> {
        let mut names = self.train.unreadable();
        names.extend(self.val.unreadable());
        names
    }
}

impl MicroBatch for HostBatch {
    type Batch = Batch;

    fn visited(&self) -> usize {
        self.visited
    }

    fn items(&self) -> usize {
        self.len()
    }

    fn into_device(self, device: &Device) -> Batch {
        self.into_device(device)
    }
}
