//! What a recipe's step will need, from its operations alone.

use burn::tensor::Device;
use leanburn_levers::{LossScaler, Policy, captured};
use leanburn_memory::trace::{Runtime, trace};
use leanburn_memory::{Bytes, Known, Meter, Prediction};

use crate::task::Builds;
use crate::{Backend, Recipe, Settings, TrainError, Trainer};

/// Updates that are traced: the first makes the optimizer's state, the second is the one predicted, the third
/// proves what lives on.
const UPDATES: usize = 3;

/// Predicts the step of a recipe on a backend: traces it through the same trainer that runs it.
///
/// Needs neither data nor device. `facts` is what the data would say, see [`Builds::data_facts`].
///
/// # Errors
///
/// Where the recipe's network cannot be built, or its step cannot be traced.
pub fn predict<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    backend: Backend,
) -> Result<Prediction, TrainError> {
    let (traced, known) = trace(|device| updates(recipe, facts, policy, device))
        .map_err(|error| TrainError::Prediction(error.to_string()))?;
    let prediction = Prediction::of(&traced, &known?, runtime(backend));
    prediction.ok_or_else(|| TrainError::Prediction("the trace holds no whole update".into()))
}

/// How a backend deals with memory.
pub fn runtime(backend: Backend) -> Runtime {
    match backend {
        Backend::Auto | Backend::Flex => Runtime::Flex,
        Backend::Wgpu | Backend::Vulkan | Backend::Cuda | Backend::Rocm => Runtime::Pool,
    }
}

fn updates<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    device: &Device,
) -> Result<Vec<Known>, TrainError> {
    let schedule = recipe.schedule.start(recipe.optimizer.lr, 1000, 0)?;
    let scaler = LossScaler::new(recipe.precision.loss_scale.resolve(policy)?)?;
    let network = T::with_levers(recipe, policy, T::init(recipe, facts, device)?);
    let (settings, meter) = (Settings::of(recipe), Meter::new(device));
    let mut trainer = Trainer::new(network, settings, schedule, scaler, meter, Bytes(0));
    let mut known = Vec::new();
    for _ in 0..UPDATES {
        captured::note_stored(trainer.model());
        for _ in 0..recipe.train.accumulate {
            trainer.micro_step(T::blank(recipe, facts, device));
            known.push(*trainer.known());
        }
        trainer.update()?;
    }
    Ok(known)
}
