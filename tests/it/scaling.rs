//! Overflow, loss that is no number, unscale before clip, masters that move.

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use leanburn::levers::scaling::{Dynamic, MAX_CONSECUTIVE_SKIPS};
use leanburn::levers::{LossScale, LossScaler, Policy, Precision, Verdict};
use leanburn::memory::{Bytes, Meter};
use leanburn::train::{
    Adam, OptimizerKind, Schedule, Score, Settings, TrainError, Trainable, Trainer,
};

use crate::support::{alone, values};

/// One weight, used in f16: the scaled gradient is `scale * batch`, which f16 holds up to 65,504.
#[derive(Module, Debug)]
struct Half {
    weight: Param<Tensor<1>>,
}

impl Half {
    fn new(weight: f32) -> Self {
        let device = Device::flex().autodiff();
        Self {
            weight: Param::from_tensor(Tensor::from_floats([weight], &device)),
        }
    }
}

impl Trainable for Half {
    type Batch = f32;

    fn samples(_batch: &f32) -> usize {
        1
    }

    fn input_bytes(_batch: &f32) -> Bytes {
        Bytes(4)
    }

    fn loss(&self, factor: f32) -> Tensor<1> {
        self.weight
            .val()
            .cast(FloatDType::F16)
            .mul_scalar(factor)
            .cast(FloatDType::F32)
    }

    fn score(&self, _batch: f32) -> Score {
        Score::default()
    }
}

fn warm_up() -> ModuleLrScheduler {
    Schedule {
        warmup: 0.2,
        ..Schedule::default()
    }
    .start(0.1, 10, 0)
    .unwrap()
}

fn trainer(
    weight: f32,
    rule: LossScale,
    optimizer: OptimizerKind,
    clip_norm: Option<f64>,
) -> Trainer<Half> {
    let model = Half::new(weight);
    let meter = Meter::new(&Device::flex());
    let settings = Settings {
        batch: 1,
        clip_norm,
        optimizer,
        weight_decay: 0.0,
        adam: Adam::default(),
        seed: 0,
    };
    Trainer::new(
        model,
        settings,
        warm_up(),
        LossScaler::new(rule).unwrap(),
        meter,
        Bytes(0),
    )
}

fn weight(trainer: &Trainer<Half>) -> f32 {
    values(trainer.model().weight.val())[0]
}

/// Traps B03, B04: a skipped update changes nothing, and the warm-up waits for the first applied one.
#[test]
fn overflow_skips_the_update_and_nothing_else() {
    let _alone = alone();
    let mut trainer = trainer(
        1.0,
        LossScale::Dynamic(Dynamic::default()),
        OptimizerKind::Sgd,
        None,
    );
    for scale in [65536.0, 32768.0, 16384.0] {
        assert_eq!(trainer.scaler().scale(), scale);
        trainer.micro_step(4.0);
        let update = trainer.update().unwrap();
        assert_eq!(
            (update.verdict, update.lr, update.loss),
            (Some(Verdict::SkipOverflow), 0.0, 4.0)
        );
        assert_eq!(weight(&trainer), 1.0);
    }
    trainer.micro_step(4.0);
    let update = trainer.update().unwrap();
    let first = warm_up().step().base();
    assert_eq!((update.verdict, update.lr), (Some(Verdict::Apply), first));
    assert!((weight(&trainer) - (1.0 - 4.0 * first as f32)).abs() < 1e-6);
    assert_eq!(
        (trainer.applied(), trainer.tried(), trainer.skipped()),
        (1, 4, 3)
    );
}

/// Trap B02: a loss that is NaN is told apart from an overflow, and the run ends with a reason.
#[test]
fn a_nan_loss_stops_with_the_reason() {
    let _alone = alone();
    let mut trainer = trainer(
        1.0,
        LossScale::Dynamic(Dynamic::default()),
        OptimizerKind::Sgd,
        None,
    );
    for _ in 1..MAX_CONSECUTIVE_SKIPS {
        trainer.micro_step(f32::NAN);
        assert_eq!(trainer.update().unwrap().verdict, Some(Verdict::SkipLoss));
    }
    trainer.micro_step(f32::NAN);
    let error = trainer.update().unwrap_err();
    assert!(
        matches!(error, TrainError::Loss { update: 25, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("'weight'"), "{error}");
    assert_eq!(trainer.scaler().scale(), 65536.0);
}

#[test]
fn an_overflow_that_no_scale_cures_stops_with_the_parameter() {
    let _alone = alone();
    let rule = Dynamic {
        min: 4.0,
        ..Dynamic::default()
    };
    let mut trainer = trainer(1.0, LossScale::Dynamic(rule), OptimizerKind::Sgd, None);
    let error = loop {
        trainer.micro_step(60_000.0);
        if let Err(error) = trainer.update() {
            break error;
        }
    };
    assert!(
        matches!(
            error,
            TrainError::Overflow {
                update: 25,
                scale: 4.0,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("'weight'"), "{error}");
    assert!(!error.is_wrong_use());
}

/// Trap B06: a norm of 0.5 under a limit of 1 is not touched, whatever the scale.
#[test]
fn clipping_sees_unscaled_gradients() {
    let _alone = alone();
    for (factor, moved) in [(0.5, 0.5), (8.0, 1.0)] {
        let mut trainer = trainer(
            1.0,
            LossScale::Static(1024.0),
            OptimizerKind::Sgd,
            Some(1.0),
        );
        trainer.micro_step(factor);
        let update = trainer.update().unwrap();
        assert!((update.norm - f64::from(factor)).abs() < 1e-3);
        let expected = 1.0 - update.lr as f32 * moved;
        assert!((weight(&trainer) - expected).abs() < 1e-5);
    }
}

/// Trap B57: no gradient, no NaN.
#[test]
fn zero_gradients_leave_adam_finite() {
    let _alone = alone();
    let mut trainer = trainer(1.0, LossScale::None, OptimizerKind::AdamW, None);
    for _ in 0..3 {
        trainer.micro_step(0.0);
        trainer.update().unwrap();
    }
    assert_eq!(weight(&trainer), 1.0);
}

/// Trap B58: updates that bf16 would round away move the f32 master.
#[test]
fn small_updates_reach_the_master() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let layer = burn::nn::LinearConfig::new(1, 1)
        .with_bias(false)
        .init(&device);
    let layer = Policy::computing(Precision::Bf16).attach(layer, &[]);
    let before = values(layer.weight.base())[0];
    let (mut optimizer, _) = OptimizerKind::Sgd.init(&layer, 0.0, Adam::default());
    let x = Tensor::<2>::ones([1, 1], &device).cast(FloatDType::BF16);
    let gradients = layer.forward(x).cast(FloatDType::F32).sum().backward();
    let gradients = burn::optim::GradientsParams::from_grads(gradients, &layer);
    let layer = optimizer.step(1e-5, layer, gradients);
    let after = values(layer.weight.base())[0];
    assert!((before - after - 1e-5).abs() < 1e-7, "{before} {after}");
    assert_eq!(
        FloatDType::from(layer.weight.val().dtype()),
        FloatDType::BF16
    );
}
