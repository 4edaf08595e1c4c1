//! The training step: scaled backward, accumulation, check, clip, update, and what it all held.

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::{ModuleVisitor, Param};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, FloatDType, Tensor};
use leanburn_levers::accumulate::micro_weight;
use leanburn_levers::{
    Accumulator, GradientCheck, LossScaler, Verdict, first_non_finite, gradients,
};
use leanburn_memory::{Bytes, Known, Mark, Measurement, Meter, census, trace};

use crate::saved::Saved;
use crate::{DecayGroups, OptimizerKind, Recipe, TrainError, Trainable};

/// What one update did.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// Mean loss over the samples of the window.
    pub loss: f64,
    /// Global gradient norm before clipping.
    pub norm: f64,
    /// Learning rate used; 0 where the update was skipped.
    pub lr: f64,
    /// Applied, or why not.
    pub verdict: Verdict,
}

/// A model with everything that a step needs; the model moves through the optimizer, never copied.
pub struct Trainer<M: Trainable> {
    model: Option<M>,
    optimizer: ModuleOptimizer,
    schedule: ModuleLrScheduler,
    scaler: LossScaler,
    window: Accumulator<M>,
    window_loss: Option<Tensor<1>>,
    settings: Settings,
    applied: u64,
    tried: u64,
    device: Device,
    memory: StepMemory,
    groups: DecayGroups,
}

/// Settings of a trainer that no part of it owns.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Samples in a full micro-batch.
    pub batch: usize,
    /// Largest global gradient norm.
    pub clip_norm: Option<f64>,
    /// Which optimizer, for its row in the ledger.
    pub optimizer: OptimizerKind,
    /// Weight decay on matrices and filters.
    pub weight_decay: f64,
    /// For the device's random numbers.
    pub seed: u64,
}

impl Settings {
    /// Those of a recipe.
    pub fn of(recipe: &Recipe) -> Self {
        Self {
            batch: recipe.train.batch,
            clip_norm: Some(recipe.optimizer.clip_norm).filter(|norm| *norm > 0.0),
            optimizer: recipe.optimizer.name,
            weight_decay: recipe.optimizer.weight_decay,
            seed: recipe.train.seed,
        }
    }
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
        // Burn creates parameters at first use, which would count as activations of the first step.
        model.visit(&mut Touch);
        let (optimizer, groups) = settings.optimizer.init(&model, settings.weight_decay);
        let device = model.devices().into_iter().next().unwrap_or_default();
        let memory = StepMemory::new(&model, settings.optimizer, meter, origin);
        Self {
            model: Some(model),
            optimizer,
            schedule,
            scaler,
            window: Accumulator::default(),
            window_loss: None,
            settings,
            applied: 0,
            tried: 0,
            device,
            memory,
            groups,
        }
    }

    /// Which parameters are decayed.
    pub fn decay_groups(&self) -> &DecayGroups {
        &self.groups
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        self.model
            .as_ref()
            .expect("the model is away only inside an update")
    }

    /// The model, when training is over.
    pub fn into_model(self) -> M {
        self.model.expect("the model is away only inside an update")
    }

    /// Updates applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Updates tried, skipped ones included.
    pub fn tried(&self) -> u64 {
        self.tried
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
        self.window.micro_batches()
    }

    /// What the most demanding step so far held.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.memory.largest.as_ref()
    }

    /// The meter behind it.
    pub fn meter(&self) -> &Meter {
        &self.memory.meter
    }

    /// Takes up a saved run; `schedule` stands where the run stood.
    pub fn restore(
        &mut self,
        mut saved: Saved,
        schedule: ModuleLrScheduler,
    ) -> Result<(), TrainError> {
        let model = self
            .model
            .take()
            .expect("the model is away only inside an update");
        let model = saved.load_model(model)?;
        // Groups go by parameter ids, and those come with the record.
        let (optimizer, _) = self
            .settings
            .optimizer
            .init(&model, self.settings.weight_decay);
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

    /// Forward and backward of one micro-batch.
    pub fn micro_step(&mut self, batch: M::Batch) {
        if self.window.micro_batches() == 0 {
            // A function of seed and update, so that a resumed run draws the same dropout masks.
            let seed = self.settings.seed ^ self.tried.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            leanburn_levers::seed(&self.device, seed);
        }
        let weight = micro_weight(M::samples(&batch), self.settings.batch);
        self.memory.begin(
            M::input_bytes(&batch),
            self.window.micro_batches() > 0,
            self.applied,
        );
        let model = self
            .model
            .as_ref()
            .expect("the model is away only inside an update");
        let loss = model.loss(batch).mul_scalar(weight);
        self.window_loss = Some(match self.window_loss.take() {
            Some(sum) => sum + loss.clone().detach().inner(),
            None => loss.clone().detach().inner(),
        });
        let scaled = loss.mul_scalar(self.scaler.scale());
        trace::mark(Mark::ForwardEnd, Bytes(0));
        let mut backward = scaled.backward();
        let gradients = GradientsParams::from_module(&mut backward, model);
        drop((backward, scaled));
        trace::mark(Mark::BackwardEnd, Bytes(0));
        self.window.add(model, gradients, weight);
    }

    /// Ends the window: unscale, check, clip, step, in this order.
    pub fn update(&mut self) -> Result<Update, TrainError> {
        let (mut gradients, weight) = self.window.take();
        let model = self
            .model
            .take()
            .expect("the model is away only inside an update");
        let loss = self
            .window_loss
            .take()
            .unwrap_or_else(|| Tensor::zeros([1], &self.device.clone().inner()));
        let unscale = 1.0 / (f64::from(self.scaler.scale()) * weight.max(f64::MIN_POSITIVE));
        let check = GradientCheck::of(&model, &gradients, unscale, loss.cast(FloatDType::F32));
        let loss = check.loss / weight.max(f64::MIN_POSITIVE);
        let scale = self.scaler.scale();
        let verdict = self
            .scaler
            .observe(check.loss_finite(), check.gradients_finite());
        self.tried += 1;
        let mut lr = 0.0;
        let model = if verdict == Verdict::Apply {
            let clip = check.clip_factor(self.settings.clip_norm);
            gradients::scale(&model, &mut gradients, unscale * clip);
            let rates = self.schedule.step();
            lr = rates.base();
            self.applied += 1;
            self.optimizer.step(rates, model, gradients)
        } else {
            if self.scaler.is_stuck() {
                let parameter =
                    first_non_finite(&model, &gradients).unwrap_or_else(|| "none".into());
                let update = self.tried;
                self.model = Some(model);
                return Err(match verdict {
                    Verdict::SkipLoss => TrainError::Loss {
                        update,
                        loss,
                        parameter,
                    },
                    _ => TrainError::Overflow {
                        update,
                        parameter,
                        loss,
                        scale,
                    },
                });
            }
            model
        };
        self.model = Some(model);
        trace::mark(Mark::UpdateEnd, Bytes(0));
        self.memory.close();
        Ok(Update {
            loss,
            norm: check.norm,
            lr,
            verdict,
        })
    }
}

/// Records steps and keeps the one with the highest peak.
struct StepMemory {
    meter: Meter,
    origin: Bytes,
    known: Known,
    optimizer_state: Bytes,
    recorded: u64,
    largest: Option<Measurement>,
}

impl StepMemory {
    fn new<M: Trainable>(model: &M, optimizer: OptimizerKind, meter: Meter, origin: Bytes) -> Self {
        let census = census(model);
        Self {
            meter,
            origin,
            known: Known {
                parameters: Bytes(census.parameters.bytes.0 + census.frozen.bytes.0),
                buffers: census.buffers.bytes,
                gradients: census.parameters.bytes,
                ..Known::default()
            },
            optimizer_state: optimizer.state_bytes(census.parameters.bytes),
            recorded: 0,
            largest: None,
        }
    }

    /// The heap is read at every step. Reading a pool drains the device's queue, so there four steps
    /// must do, from the second update on: the first allocates what later ones keep.
    fn begin(&mut self, inputs: Bytes, accumulating: bool, applied: u64) {
        self.close();
        let wanted = self.meter.is_exact_peak() || (applied > 0 && self.recorded < 4);
        if !wanted || self.meter.current().is_none() {
            return;
        }
        self.known.inputs = inputs;
        self.known.optimizer_state = if applied > 0 {
            self.optimizer_state
        } else {
            Bytes(0)
        };
        self.known.accumulated = if accumulating {
            self.known.gradients
        } else {
            Bytes(0)
        };
        self.meter.reset_peak();
        trace::start(self.meter.clone());
    }

    fn close(&mut self) {
        let Some(trace) = trace::finish() else { return };
        self.recorded += 1;
        let Some(measured) = trace.measurement(&self.known, self.origin) else {
            return;
        };
        let replaces = self
            .largest
            .as_ref()
            .is_none_or(|largest| measured.peak > largest.peak);
        if replaces || self.recorded == 2 {
            self.largest = Some(measured);
        }
    }
}

struct Touch;

impl ModuleVisitor for Touch {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let _ = param.base();
    }
}
