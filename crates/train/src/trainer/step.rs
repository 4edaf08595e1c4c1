//! The training step: scaled backward, accumulation, check, clip, update.

use burn::tensor::FloatDType;
use leanburn_levers::accumulate::micro_weight;
use leanburn_levers::{GradientCheck, Verdict, captured, first_non_finite, gradients};
use leanburn_memory::trace::is_tracing;
use leanburn_memory::{Bytes, Mark, record};

use super::{AWAY, Trainer};
use crate::{TrainError, Trainable};

/// What one update did.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// Mean loss over the samples of the window; 0 where none counted.
    pub loss: f64,
    /// Global gradient norm before clipping.
    pub norm: f64,
    /// Learning rate used; 0 where the update was skipped.
    pub lr: f64,
    /// Applied, or why not; `None` where no sample of the window counted, which leaves nothing to apply.
    pub verdict: Option<Verdict>,
}

impl<M: Trainable> Trainer<M> {
    /// Forward and backward of one micro-batch; neither where no sample of it counts.
    pub fn micro_step(&mut self, batch: M::Batch) {
        if self.waiting == 0 {
            // A function of seed and update, so that a resumed run draws the same dropout masks.
            let seed = self.settings.seed ^ self.tried.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            leanburn_levers::seed(&self.device, seed);
        }
        self.waiting += 1;
        let samples = M::samples(&batch);
        if samples == 0 {
            // Trap B12: the mean over nothing is no number, and weighing it by 0 does not mend it.
            return;
        }
        let weight = micro_weight(samples, self.settings.batch);
        self.memory.begin(
            M::input_bytes(&batch),
            self.window.micro_batches() > 0,
            self.applied,
        );
        let model = self.model.as_ref().expect(AWAY);
        let loss = model.loss(batch).mul_scalar(weight);
        self.window_loss = Some(match self.window_loss.take() {
            Some(sum) => sum + captured::inner(loss.clone().detach()),
            None => captured::inner(loss.clone().detach()),
        });
        let scaled = loss.mul_scalar(self.scaler.scale());
        record::mark(Mark::ForwardEnd, Bytes(0));
        let gradients = captured::backward(scaled, model);
        record::mark(Mark::BackwardEnd, Bytes(0));
        self.window.add(model, gradients, weight);
    }

    /// Ends the window: unscale, check, clip, step, in this order.
    pub fn update(&mut self) -> Result<Update, TrainError> {
        self.waiting = 0;
        self.tried += 1;
        let (mut gradients, weight) = self.window.take();
        let Some(loss) = self.window_loss.take() else {
            // Nothing counted, so nothing was learnt of the loss scale either.
            return Ok(Update {
                loss: 0.0,
                norm: 0.0,
                lr: 0.0,
                verdict: None,
            });
        };
        let scale = self.scaler.scale();
        let unscale = 1.0 / (f64::from(scale) * weight);
        let model = self.model.as_ref().expect(AWAY);
        let check = GradientCheck::of(model, &gradients, unscale, loss.cast(FloatDType::F32));
        let loss = check.loss / weight;
        let verdict = self
            .scaler
            .observe(check.loss_finite(), check.gradients_finite());
        let mut lr = 0.0;
        if verdict == Verdict::Apply {
            let clip = check.clip_factor(self.settings.clip_norm);
            gradients::scale(model, &mut gradients, unscale * clip);
            let rates = self.schedule.step();
            lr = rates.base();
            self.applied += 1;
            let model = self.model.take().expect(AWAY);
            self.model = Some(match is_tracing() {
                true => self.traced.step(rates, model, gradients),
                false => self.optimizer.step(rates, model, gradients),
            });
        } else if self.scaler.is_stuck() {
            let parameter = first_non_finite(model, &gradients).unwrap_or_else(|| "none".into());
            let update = self.tried;
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
        record::mark(Mark::UpdateEnd, Bytes(0));
        self.memory.close();
        Ok(Update {
            loss,
            norm: check.norm,
            lr,
            verdict: Some(verdict),
        })
    }
}
