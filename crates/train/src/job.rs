//! A recipe with its device and its data: everything around the model.

use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;
use leanburn_data::DataError;
use leanburn_levers::{LossScaler, Policy};
use leanburn_memory::{Bytes, Measurement, Meter, Prediction, census};

use crate::saved::Saved;
use crate::task::{Builds, Loaders, MicroBatch};
use crate::trainable::make_parameters;
use crate::{
    Chosen, Outcome, Progress, Recipe, Report, Settings, Start, Task, TrainError, Trainable,
    Trainer, choose, environment, fit, predict, room,
};

/// A run, ready to build its model.
pub struct Job<T: Task> {
    /// What to do.
    pub recipe: Recipe<T>,
    /// Where.
    pub chosen: Chosen,
    /// On what.
    pub loaders: T::Loaders,
    /// Dtypes on this device.
    pub policy: Policy,
    /// Updates of the whole run.
    pub updates: u64,
    /// Start even a step that is predicted not to fit.
    pub force: bool,
    /// Play a machine whose heap has room for so many bytes besides what is there before the model.
    pub heap: Option<Bytes>,
    /// The window that every update sees, where it is to learn that by heart.
    by_heart: Option<Vec<Micro<T>>>,
}

/// A micro-batch of a task, on the host.
type Micro<T> = <<T as Task>::Loaders as Loaders>::Micro;

impl<T: Task> Job<T> {
    /// Chooses the device and opens the data. For tasks whose steps cannot be predicted; the others
    /// [`open`](Self::open).
    pub fn open_as_is(recipe: Recipe<T>) -> Result<Self, TrainError> {
        let chosen = choose(recipe.backend)?;
        Self::on(chosen, recipe)
    }

    fn on(chosen: Chosen, recipe: Recipe<T>) -> Result<Self, TrainError> {
        let policy = recipe.policy(&chosen.device)?;
        let loaders = T::open(&recipe)?;
        Ok(Self {
            updates: recipe.updates(loaders.batches()),
            recipe,
            chosen,
            loaders,
            policy,
            force: false,
            heap: None,
            by_heart: None,
        })
    }

    /// Makes every update see the first window of the first epoch, and judges on that: a loss that does not go to
    /// nothing then is a mistake in model, data or learning rate.
    pub fn learn_by_heart(&mut self) -> Result<(), TrainError> {
        let window = self.loaders.train(0, 0).take(self.recipe.train.accumulate);
        let window: Vec<_> = window.collect::<Result<_, _>>()?;
        if window.is_empty() {
            let why = "there is no batch to learn by heart: the data have fewer samples";
            return Err(TrainError::Recipe(why.into()));
        }
        self.by_heart = Some(window);
        Ok(())
    }

    /// An epoch of training micro-batches, after the first `skip` samples of it.
    pub fn train(
        &self,
        epoch: usize,
        skip: usize,
    ) -> Box<dyn Iterator<Item = Result<Micro<T>, DataError>> + '_> {
        match &self.by_heart {
            Some(window) => {
                let left = self.loaders.batches()
                    - self.loaders.batches().min(skip / self.recipe.train.batch);
                let again = window.iter().cycle().take(left);
                Box::new(again.cloned().map(Ok))
            }
            None => Box::new(self.loaders.train(epoch, skip)),
        }
    }

    /// What to judge on.
    pub fn val(&self) -> Box<dyn Iterator<Item = Result<Micro<T>, DataError>> + '_> {
        match &self.by_heart {
            Some(window) => Box::new(window.iter().cloned().map(Ok)),
            None => Box::new(self.loaders.val()),
        }
    }

    /// The device to train on.
    pub fn device(&self) -> Device {
        self.chosen.device.clone().autodiff()
    }

    /// Puts the model that `build` makes in training; its memory counts from here on.
    pub fn trainer<M: Trainable>(
        &self,
        build: impl FnOnce(&Self) -> Result<M, TrainError>,
    ) -> Result<Trainer<M>, TrainError> {
        let meter = Meter::new(&self.chosen.device);
        let origin = meter.current().unwrap_or(Bytes(0));
        leanburn_levers::seed(&self.device(), self.recipe.train.seed);
        let rule = self.recipe.precision.loss_scale.resolve(self.policy)?;
        let scaler = LossScaler::new(rule)?;
        let lr = self.recipe.optimizer.lr;
        let schedule = self.recipe.schedule.start(lr, self.updates, 0)?;
        let model = build(self)?;
        let settings = Settings::of(&self.recipe);
        Ok(Trainer::new(
            model, settings, schedule, scaler, meter, origin,
        ))
    }

    /// Takes up a saved run; returns where it stands.
    pub fn resume<M: Trainable>(
        &self,
        trainer: &mut Trainer<M>,
        saved: Saved<T>,
    ) -> Result<Start, TrainError> {
        let start = Start {
            epoch: saved.state.epoch,
            samples: saved.state.samples,
        };
        let (lr, applied) = (self.recipe.optimizer.lr, saved.state.applied);
        let schedule = self.recipe.schedule.start(lr, self.updates, applied)?;
        trainer.restore(saved, schedule)?;
        Ok(start)
    }

    /// Progress of this run from where a trainer stands.
    pub fn progress<M: Trainable>(&self, trainer: &Trainer<M>) -> Progress {
        Progress::new(T::ITEMS, self.updates, trainer.tried())
    }

    /// What will be run, in four lines.
    pub fn describe<M: Trainable>(&self, trainer: &Trainer<M>) -> String {
        format!(
            "{} on {} ({}), {}, checkpoint {}\n{}\n{}, {} updates\n{}",
            T::model_name(&self.recipe.model),
            self.chosen.backend,
            self.chosen.why,
            self.policy.compute.name(),
            self.recipe.checkpoint,
            self.loaders.describe(),
            self.recipe.window(),
            self.updates,
            trainer.decay_groups().summary(),
        )
    }

    /// What came of it.
    pub fn report<M: Trainable>(
        &self,
        trainer: &Trainer<M>,
        outcome: Outcome,
        progress: &Progress,
    ) -> Report<T> {
        Report {
            recipe: self.recipe.clone(),
            backend: self.chosen.backend,
            precision: self.policy.compute.name(),
            data: self.loaders.name(),
            parameters: census(trainer.model()).parameters.elements,
            steps: trainer.applied(),
            skipped_steps: trainer.skipped(),
            seconds: progress.seconds(),
            items_per_second: progress.items_per_second(),
            score: outcome.score,
            unreadable: self.loaders.unreadable(),
            interrupted: outcome.interrupted,
            memory: trainer.measurement().cloned(),
            predicted: None,
            environment: environment(Some(&self.chosen)),
        }
    }
}

impl<T: Builds> Job<T> {
    /// Chooses the device, plans the step where the recipe says how much memory there is, and opens the data.
    ///
    /// # Errors
    ///
    /// Among others, where no recipe fits into that memory.
    pub fn open(recipe: Recipe<T>) -> Result<Self, TrainError> {
        let chosen = choose(recipe.backend)?;
        let recipe = room::planned(recipe, &chosen)?;
        Self::on(chosen, recipe)
    }

    /// The network of the recipe on this job's device. Its weights are made on the CPU, where that is compiled
    /// in, so that a seed means the same weights on every backend.
    pub fn network(&self) -> Result<T::Network, TrainError> {
        let facts = T::facts_of(&self.loaders);
        T::check(&self.recipe, &facts, self.chosen.backend)?;
        let nursery = nursery(&self.chosen.device).autodiff();
        leanburn_levers::seed(&nursery, self.recipe.train.seed);
        let network = T::init(&self.recipe, &facts, &nursery)?;
        let network = T::load(&self.recipe, network)?;
        let network = match nursery == self.device() {
            true => network,
            false => {
                make_parameters(&network);
                // Like Burn's own initializers: pages of the exact size, out of the way of what comes and goes.
                let device = self.device();
                let fork = |network: T::Network| network.fork(&device);
                device.memory_persistent_allocations(network, fork)
            }
        };
        Ok(T::with_levers(&self.recipe, self.policy, network))
    }

    /// What a step will take; a run goes on where that cannot be said.
    pub fn predict(&self) -> Result<Prediction, TrainError> {
        let facts = T::facts_of(&self.loaders);
        predict(&self.recipe, &facts, self.policy, self.chosen.backend)
    }

    /// Whether the device has room for a step; says which levers would make it, where it has not.
    pub fn check_room(&self, predicted: &Prediction) -> Result<(), TrainError> {
        room::check(self, predicted)
    }

    /// The same, told; a step that does not fit is refused, unless it is to start anyway.
    pub(crate) fn predicted(&self) -> Result<Option<Prediction>, TrainError> {
        match self.predict() {
            Ok(predicted) => {
                eprintln!("peak of {} predicted", predicted.peak);
                if !self.force {
                    self.check_room(&predicted)?;
                }
                Ok(Some(predicted))
            }
            Err(error @ TrainError::Dtypes(_)) => Err(error),
            Err(error) => {
                eprintln!("{error}");
                Ok(None)
            }
        }
    }

    /// The whole run: says what it does, resumes, trains, and leaves `report.json` in `output`.
    pub fn run(
        &self,
        output: &Path,
        resumed: Option<Saved<T>>,
    ) -> Result<(Report<T>, T::Network), TrainError> {
        let predicted = self.predicted()?;
        let mut trainer = self.trainer(Self::network)?;
        eprintln!("{}", self.describe(&trainer));
        let start = match resumed {
            Some(saved) => {
                let (path, tried) = (saved.path.clone(), saved.state.tried);
                eprintln!("resuming {} after update {tried}", path.display());
                self.resume(&mut trainer, saved)?
            }
            None => Start::default(),
        };
        let mut progress = self.progress(&trainer);
        let outcome = fit(&mut trainer, self, output, start, &mut progress)?;
        progress.finish();
        let mut report = self.report(&trainer, outcome, &progress);
        report.predicted = predicted;
        report.save(&output.join("report.json"))?;
        Ok((report, trainer.into_model()))
    }

    /// The memory of the same step in f32, from two updates of a model of its own; the job is one in f32 then.
    pub fn measure_in_f32(&mut self) -> Result<Measurement, TrainError> {
        self.policy = Policy::FP32;
        self.recipe.precision.loss_scale = Default::default();
        let mut trainer = self.trainer(Self::network)?;
        let accumulate = self.recipe.train.accumulate;
        for batch in self.loaders.train(0, 0).take(2 * accumulate) {
            trainer.micro_step(batch?.into_device(&self.device()));
            if trainer.waiting() == accumulate {
                trainer.update()?;
            }
        }
        let missing = || TrainError::Device("this backend does not report its memory".into());
        trainer.measurement().cloned().ok_or_else(missing)
    }
}

/// Where weights are made.
fn nursery(_device: &Device) -> Device {
    #[cfg(feature = "flex")]
    return Device::flex();
    #[cfg(not(feature = "flex"))]
    _device.clone()
}
