//! The network of an image recipe.

use std::path::Path;

use burn::tensor::{DType, Device, Tensor};
use leanburn_data::{Batch, ImageFolder};
use leanburn_levers::Policy;
use leanburn_models::ResNet;

use super::{ImageLoaders, Images};
use crate::task::Builds;
use crate::{Recipe, TrainError};

impl Builds for Images {
    type Network = ResNet;
    /// Classes.
    type Facts = usize;

    fn facts_of(loaders: &ImageLoaders) -> usize {
        loaders.classes()
    }

    fn data_facts(recipe: &Recipe<Self>) -> Result<usize, TrainError> {
        match recipe.data.source.as_str() {
            "digits" | "synthetic" => Ok(10),
            folder => Ok(ImageFolder::classes(Path::new(folder))?.len()),
        }
    }

    fn init(recipe: &Recipe<Self>, classes: &usize, device: &Device) -> Result<ResNet, TrainError> {
        Ok(recipe.resnet(*classes).init(device))
    }

    fn load(recipe: &Recipe<Self>, network: ResNet) -> Result<ResNet, TrainError> {
        let Some(path) = &recipe.model.weights else {
            return Ok(network);
        };
        let (loaded, report) = network.load_weights(path, recipe.model.new_head)?;
        eprintln!("{}: {report}", path.display());
        Ok(loaded)
    }

    fn save(network: &ResNet, path: &Path) -> Result<(), TrainError> {
        Ok(network.save_weights(path)?)
    }

    fn with_levers(recipe: &Recipe<Self>, policy: Policy, network: ResNet) -> ResNet {
        let network = network.with_policy(policy);
        network.with_checkpoint(recipe.checkpoint.clone(), recipe.offload)
    }

    fn blank(recipe: &Recipe<Self>, _classes: &usize, device: &Device) -> Batch {
        let (batch, size) = (recipe.train.batch, recipe.data.image_size);
        Batch {
            images: Tensor::zeros([batch, 3, size, size], (device, DType::F32)),
            targets: Tensor::zeros([batch], (device, DType::I32)),
        }
    }
}
