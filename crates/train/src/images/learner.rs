//! The same classifier in Burn's own `Learner`, with its metrics, checkpoints and terminal dashboard.

use std::sync::{Arc, Mutex};

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};
use leanburn_data::Batch;
use leanburn_levers::{GradientCheck, LossScaler, Verdict, gradients};
use leanburn_models::ResNet;

/// A ResNet with loss scaling that burn-train can drive.
///
/// Burn's `Learner` copies the model at each step, accumulates sums and has no global norm; the
/// scale, the check and the clip are ours. [`fit`](crate::fit()) is the leaner loop.
#[derive(Module, Debug)]
pub struct LearnerResNet {
    /// The network.
    pub model: ResNet,
    #[module(skip)]
    scaler: Arc<Mutex<LossScaler>>,
    #[module(skip)]
    clip_norm: Option<f64>,
}

impl LearnerResNet {
    /// Wraps a network.
    pub fn new(model: ResNet, scaler: LossScaler, clip_norm: Option<f64>) -> Self {
        Self {
            model,
            scaler: Arc::new(Mutex::new(scaler)),
            clip_norm,
        }
    }

    fn scaler(&self) -> std::sync::MutexGuard<'_, LossScaler> {
        self.scaler
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn classify(&self, batch: Batch) -> ClassificationOutput {
        let logits = self.model.forward(batch.images);
        let criterion = CrossEntropyLossConfig::new().init(&logits.device());
        let loss = criterion.forward(logits.clone(), batch.targets.clone());
        ClassificationOutput::new(loss, logits, batch.targets)
    }
}

impl TrainStep for LearnerResNet {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        let scale = self.scaler().scale();
        let gradients = output.loss.clone().mul_scalar(scale).backward();
        TrainOutput::new(self, gradients, output)
    }

    fn optimize(
        self,
        optimizer: &mut ModuleOptimizer,
        lr: ModuleLearningRate,
        mut gradients: GradientsParams,
    ) -> Self {
        let unscale = 1.0 / f64::from(self.scaler().scale());
        let device = self.model.fc.weight.lazy_device().inner();
        let no_loss = Tensor::<1>::zeros([1], &device);
        let check = GradientCheck::of(&self, &gradients, unscale, no_loss);
        if self.scaler().observe(true, check.gradients_finite()) != Verdict::Apply {
            return self;
        }
        gradients::scale(
            &self,
            &mut gradients,
            unscale * check.clip_factor(self.clip_norm),
        );
        optimizer.step(lr, self, gradients)
    }
}

impl InferenceStep for LearnerResNet {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}
