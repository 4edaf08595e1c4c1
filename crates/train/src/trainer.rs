//! A model in training: everything around its steps.

mod memory;
mod settings;
mod step;

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::ModuleOptimizer;
use burn::tensor::{Device, Tensor};
use leanburn_levers::{Accumulator, LossScale, LossScaler};
use leanburn_memory::{Bytes, Known, Measurement, Meter, Record};

use crate::optimizer::Traced;
use crate::saved::Saved;
use crate::trainable::make_parameters;
use crate::{DecayGroups, Schedule, Task, TrainError, Trainable};
use memory::StepMemory;
pub use settings::Settings;
pub use step::Update;

const AWAY: &str = "the model is away only while the optimizer has it";

/// A model with everything that a step needs; the model moves through the optimizer, never copied.
pub struct Trainer<M: Trainable> {
    model: Option<M>,
    optimizer: ModuleOptimizer,
    traced: Traced,
    schedule: ModuleLrScheduler,
    scaler: LossScaler,
    window: Accumulator<M>,
    waiting: usize,
    window_loss: Option<Tensor<1>>,
    settings: Settings,
    applied: u64,
    tried: u64,
    device: Device,
    memory: StepMemory,
    groups: DecayGroups,
}

impl<M: Trainable> Trainer<M> {
    /// Puts a model, on an autodiff device, in training. `origin` is what the heap held before the
    /// model was built.
    pub fn new(
        model: M,
        settings: Settings,
        schedule: ModuleLrScheduler,
        scaler: LossScaler,
        meter: Meter,
        origin: Bytes,
    ) -> Self {
        // At first use, they would count as activations of the first step.
        make_parameters(&model);
        let (optimizer, groups) =
            settings
                .optimizer
                .init(&model, settings.weight_decay, settings.adam);
        let device = model.devices().into_iter().next().unwrap_or_default();
        let memory = StepMemory::new(&model, settings.optimizer, meter, origin);
        Self {
            model: Some(model),
            optimizer,
            traced: Traced::new(&settings),
            schedule,
            scaler,
            window: Accumulator::default(),
            waiting: 0,
            window_loss: None,
            settings,
            applied: 0,
            tried: 0,
            device,
            memory,
            groups,
        }
    }

    /// Without a recipe, to measure steps with: no loss scale, a small learning rate. The memory of
    /// the model that `build` makes on `device` counts.
    pub fn bare(
        settings: Settings,
        device: &Device,
        build: impl FnOnce() -> M,
    ) -> Result<Self, TrainError> {
        let meter = Meter::new(device);
        let origin = meter.current().unwrap_or(Bytes(0));
        let schedule = Schedule::default().start(0.01, 1000, 0)?;
        let scaler = LossScaler::new(LossScale::None)?;
        Ok(Self::new(
            build(),
            settings,
            schedule,
            scaler,
            meter,
            origin,
        ))
    }

    /// Which parameters are decayed.
    pub fn decay_groups(&self) -> &DecayGroups {
        &self.groups
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        self.model.as_ref().expect(AWAY)
    }

    /// The model, when training is over.
    pub fn into_model(self) -> M {
        self.model.expect(AWAY)
    }

    /// Updates applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Updates tried, skipped ones included.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Updates not applied: overflows, losses that are no number, windows in which no sample counted.
    pub fn skipped(&self) -> u64 {
        self.tried - self.applied
    }

    /// The loss scale and its history.
    pub fn scaler(&self) -> &LossScaler {
        &self.scaler
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &ModuleOptimizer {
        &self.optimizer
    }

    /// Micro-batches waiting for an update.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// What the most demanding step so far held.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.memory.largest.as_ref()
    }

    /// What the marks of the last step saw, if it was recorded.
    pub fn record(&self) -> Option<&Record> {
        self.memory.last.as_ref()
    }

    /// What the marks of a record count besides the step: bytes that were there before the model.
    pub fn origin(&self) -> Bytes {
        self.memory.origin
    }

    /// What is known without measuring of the micro-step that was begun last.
    pub fn known(&self) -> &Known {
        &self.memory.known
    }

    /// The meter behind it.
    pub fn meter(&self) -> &Meter {
        &self.memory.meter
    }

    /// Takes up a saved run; `schedule` stands where the run stood. After an error all is as before.
    pub fn restore<T: Task>(
        &mut self,
        mut saved: Saved<T>,
        schedule: ModuleLrScheduler,
    ) -> Result<(), TrainError> {
        let model = saved.load_model(self.model().clone())?;
        // Groups go by parameter ids, and those come with the record.
        let (optimizer, _) =
            self.settings
                .optimizer
                .init(&model, self.settings.weight_decay, self.settings.adam);
        self.optimizer = saved.load_optimizer(optimizer)?;
        self.model = Some(model);
        self.schedule = schedule;
        // A loss scale that was changed on the command line starts afresh.
        if saved.state.scaler.rule() == self.scaler.rule() {
            self.scaler = saved.state.scaler;
        }
        self.applied = saved.state.applied;
        self.tried = saved.state.tried;
        Ok(())
    }
}
