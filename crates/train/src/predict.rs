//! What a recipe's step will need, before it runs.

use burn::tensor::Device;
use leanburn_levers::{LossScaler, Offload, Policy, captured};
use leanburn_memory::extrapolate::{Sample, extrapolate};
use leanburn_memory::trace::{Runtime, Trace, TraceError, trace};
use leanburn_memory::{Bytes, Known, Meter, Method, Prediction, Record};

use crate::task::Builds;
use crate::{Backend, BackendKind, Recipe, Settings, TrainError, Trainer};

/// Updates that are traced: the first makes the optimizer's state, the second is the one predicted, the third
/// proves what lives on.
const UPDATES: usize = 3;

/// Predicts the step of a recipe on a backend: traces it through the same trainer that runs it.
///
/// Needs neither data nor device. `facts` is what the data would say, see [`Builds::data_facts`]. A network
/// that cannot be traced (it reads values back, or uses Burn's own BatchNorm) is run instead, small and on
/// the CPU, and extended to the batch; [`Prediction::method`] says which it was.
///
/// # Errors
///
/// Where the network cannot be built, and where it can neither be traced nor measured: that needs the
/// [`CountingAllocator`](leanburn_memory::CountingAllocator) in the program.
pub fn predict<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    backend: Backend,
) -> Result<Prediction, TrainError> {
    match traced(recipe, facts, policy, runtime(backend)) {
        Ok((trace, known)) => {
            let prediction = Prediction::of(&trace, &known?, runtime(backend));
            prediction
                .ok_or_else(|| TrainError::Prediction("the trace holds no whole update".into()))
        }
        Err(error @ TraceError::Panicked(_)) => {
            let measured = measured(recipe, facts, policy);
            measured.ok_or_else(|| TrainError::Prediction(error.to_string()))
        }
        Err(error @ TraceError::MixedDtypes { .. }) => Err(TrainError::Dtypes(error.to_string())),
        Err(error) => Err(TrainError::Prediction(error.to_string())),
    }
}

/// How a backend deals with memory.
pub fn runtime(backend: Backend) -> Runtime {
    match backend.kind {
        BackendKind::Auto | BackendKind::Flex => Runtime::Flex,
        BackendKind::Wgpu => Runtime::Wgpu,
        BackendKind::Vulkan | BackendKind::Metal => Runtime::Native,
        BackendKind::Cuda | BackendKind::Rocm => Runtime::Cuda,
    }
}

pub(crate) type Traced = (Trace, Result<Vec<Known>, TrainError>);

pub(crate) fn traced<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    runtime: Runtime,
) -> Result<Traced, TraceError> {
    let mut recipe = recipe.clone();
    if !runtime.has_pool() {
        // The device's memory is the host's, and nothing moves.
        recipe.offload = Offload::None;
        recipe.checkpoint = recipe.checkpoint.unparked();
    }
    let recipe = &recipe;
    trace(|device| {
        let mut trainer = trainer(recipe, facts, policy, device)?;
        let mut known = Vec::new();
        // The second micro-batch finds gradients, and all others of the window are like it.
        let window = recipe.train.accumulate.min(2);
        for _ in 0..UPDATES {
            captured::note_stored(trainer.model());
            for _ in 0..window {
                trainer.micro_step(T::blank(recipe, facts, device));
                known.push(*trainer.known());
            }
            trainer.update()?;
        }
        Ok(known)
    })
}

/// The recipe's trainer with new weights.
fn trainer<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    device: &Device,
) -> Result<Trainer<T::Network>, TrainError> {
    let schedule = recipe.schedule.start(recipe.optimizer.lr, 1000, 0)?;
    let scaler = LossScaler::new(recipe.precision.loss_scale.resolve(policy)?)?;
    let (settings, meter) = (Settings::of(recipe), Meter::new(device));
    let origin = meter.current().unwrap_or(Bytes(0));
    let network = T::with_levers(recipe, policy, T::init(recipe, facts, device)?);
    Ok(Trainer::new(
        network, settings, schedule, scaler, meter, origin,
    ))
}

/// From steps at an eighth and a quarter of the batch, on the CPU: at batch 1 and 2, what a kernel takes whatever
/// the batch hides what grows with it.
fn measured<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts, policy: Policy) -> Option<Prediction> {
    let batch = recipe.train.batch;
    let batches = [(batch / 8).max(1), (batch / 4).max(2)];
    let [one, two] = batches.map(|batch| small_step(recipe, facts, policy, batch));
    let (one, two) = (one?, two?);
    let samples = [(batches[0], &one), (batches[1], &two)].map(|(batch, (record, known))| Sample {
        batch,
        record,
        known,
    });
    let (record, known) = extrapolate(samples, recipe.train.batch)?;
    let measured = record.measurement(&known, Bytes(0))?;
    Some(Prediction {
        method: Method::Measured,
        ..Prediction::from(measured)
    })
}

/// The last micro-step of the second update.
fn small_step<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    policy: Policy,
    batch: usize,
) -> Option<(Record, Known)> {
    let device = cpu()?.autodiff();
    let mut recipe = recipe.clone();
    recipe.train.batch = batch;
    recipe.train.accumulate = recipe.train.accumulate.min(2);
    let mut trainer = trainer(&recipe, facts, policy, &device).ok()?;
    for _ in 0..2 {
        for _ in 0..recipe.train.accumulate {
            trainer.micro_step(T::blank(&recipe, facts, &device));
        }
        trainer.update().ok()?;
    }
    Some((trainer.record()?.clone(), *trainer.known()))
}

fn cpu() -> Option<Device> {
    #[cfg(feature = "flex")]
    return Some(Device::flex());
    #[cfg(not(feature = "flex"))]
    None
}
