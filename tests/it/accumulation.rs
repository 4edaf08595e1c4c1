//! k micro-batches are one batch, however the samples fall into them.

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation::gelu};
use leanburn::levers::scaling::Dynamic;
use leanburn::levers::{LossScale, LossScaler, Verdict};
use leanburn::memory::{Bytes, Meter};
use leanburn::train::{Adam, OptimizerKind, Schedule, Score, Settings, Trainable, Trainer};
use proptest::prelude::*;

use crate::support::{alone, devices, is_flex, random, relative_error, values};

/// A feed-forward block as in a Transformer: no statistics over the batch.
#[derive(Module, Debug)]
struct Block {
    norm: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new(device: &Device) -> Self {
        Self {
            norm: LayerNormConfig::new(6).init(device),
            up: LinearConfig::new(6, 12).init(device),
            down: LinearConfig::new(12, 6).init(device),
        }
    }
}

impl Trainable for Block {
    type Batch = (Tensor<2>, Tensor<2>);

    fn samples(batch: &Self::Batch) -> usize {
        batch.0.dims()[0]
    }

    fn input_bytes(_batch: &Self::Batch) -> Bytes {
        Bytes(0)
    }

    fn loss(&self, (x, y): Self::Batch) -> Tensor<1> {
        let hidden = gelu(self.up.forward(self.norm.forward(x.clone())));
        let error = self.down.forward(hidden) + x - y;
        error.powi_scalar(2).mean()
    }

    fn score(&self, _batch: Self::Batch) -> Score {
        Score::default()
    }
}

fn constant(lr: f64) -> ModuleLrScheduler {
    Schedule {
        warmup: 0.0,
        ..Schedule::default()
    }
    .start(lr, 1000, 0)
    .unwrap()
}

fn trainer(model: Block, batch: usize, optimizer: OptimizerKind) -> Trainer<Block> {
    let settings = Settings {
        batch,
        clip_norm: Some(0.5),
        optimizer,
        weight_decay: 1e-3,
        adam: Adam::default(),
        seed: 1,
    };
    let meter = Meter::new(&model.devices()[0]);
    let scaler = LossScaler::new(LossScale::Static(8.0)).unwrap();
    Trainer::new(model, settings, constant(0.05), scaler, meter, Bytes(0))
}

fn parameters(model: &Block) -> Vec<f32> {
    let mut all = values(model.up.weight.val());
    all.extend(values(model.down.weight.val()));
    all.extend(values(model.norm.gamma.val()));
    all.extend(values(model.down.bias.as_ref().unwrap().val()));
    all
}

/// Three updates, each over all rows, cut at `cuts`; also the loss that was reported.
fn train(
    model: &Block,
    x: &Tensor<2>,
    y: &Tensor<2>,
    cuts: &[usize],
    nominal: usize,
) -> (Vec<f32>, f64) {
    let mut trainer = trainer(model.clone(), nominal, OptimizerKind::Sgd);
    let mut loss = 0.0;
    for _ in 0..3 {
        let mut start = 0;
        for end in cuts {
            let rows = start..*end;
            trainer.micro_step((
                x.clone().slice([rows.clone(), 0..6]),
                y.clone().slice([rows, 0..6]),
            ));
            start = *end;
        }
        loss = trainer.update().unwrap().loss;
    }
    (parameters(trainer.model()), loss)
}

/// Traps B07, B09, B10, B12: the mean is over samples, whatever the size of the last micro-batch.
#[test]
fn micro_batches_equal_one_batch() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let model = Block::new(&device);
        let (x, y) = (random([23, 6], &device), random([23, 6], &device));
        let (one, one_loss) = train(&model, &x, &y, &[23], 23);
        let all = [&[8, 16, 23][..], &[1, 23], &[20, 23], &[5, 10, 15, 20, 23]];
        for cuts in &all[..if is_flex(&device) { 4 } else { 1 }] {
            let (many, many_loss) = train(&model, &x, &y, cuts, 8);
            let error = relative_error(&many, &one);
            assert!(error < 1e-6, "{cuts:?}: {error}");
            assert!((many_loss - one_loss).abs() < 1e-5 * one_loss);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_cut_equals_one_batch(mut cuts in prop::collection::btree_set(1usize..17, 0..6), nominal in 1usize..20) {
        let _alone = alone();
        cuts.insert(17);
        let device = Device::flex().autodiff();
        let model = Block::new(&device);
        let (x, y) = (random([17, 6], &device), random([17, 6], &device));
        let (one, _) = train(&model, &x, &y, &[17], 17);
        let cuts: Vec<usize> = cuts.into_iter().collect();
        let (many, _) = train(&model, &x, &y, &cuts, nominal);
        prop_assert!(relative_error(&many, &one) < 1e-6);
    }
}

/// Trap B08: one learning-rate step per update.
#[test]
fn learning_rate_moves_once_per_update() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let mut trainer = trainer(Block::new(&device), 4, OptimizerKind::AdamW);
    let mut expected = constant(0.05);
    for _ in 0..3 {
        for _ in 0..4 {
            trainer.micro_step((random([4, 6], &device), random([4, 6], &device)));
        }
        assert_eq!(trainer.waiting(), 4);
        let update = trainer.update().unwrap();
        assert_eq!(update.lr, expected.step().base());
        assert_eq!(trainer.waiting(), 0);
    }
    assert_eq!(trainer.applied(), 3);
}

/// Losses of tokens of which the first few count, as in text: their mean is 0 / 0 where none does.
#[derive(Module, Debug)]
pub struct Masked {
    weight: Param<Tensor<1>>,
}

impl Masked {
    pub fn new(device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::from_floats([1.0], device)),
        }
    }
}

impl Trainable for Masked {
    type Batch = ([f32; 4], usize);

    fn samples((_, counted): &Self::Batch) -> usize {
        *counted
    }

    fn input_bytes(_batch: &Self::Batch) -> Bytes {
        Bytes(0)
    }

    fn loss(&self, (losses, counted): Self::Batch) -> Tensor<1> {
        let mut mask = [0.0; 4];
        mask[..counted].fill(1.0);
        let weight = self.weight.val();
        let device = weight.device();
        let losses = Tensor::<1>::from_floats(losses, &device);
        let mask = Tensor::<1>::from_floats(mask, &device);
        let count = mask.clone().sum();
        (losses * mask * weight).sum() / count
    }

    fn score(&self, batch: Self::Batch) -> Score {
        let samples = batch.1;
        let loss: f64 = match samples {
            0 => 0.0,
            _ => self.loss(batch).into_scalar(),
        };
        Score {
            samples,
            loss_sum: loss * samples as f64,
            correct: 0,
            ..Score::default()
        }
    }
}

fn masked(optimizer: OptimizerKind) -> Trainer<Masked> {
    let device = Device::flex().autodiff();
    let settings = Settings {
        optimizer,
        ..Settings::plain(4)
    };
    let scaler = LossScaler::new(LossScale::Dynamic(Dynamic::default())).unwrap();
    let meter = Meter::new(&device);
    Trainer::new(
        Masked::new(&device),
        settings,
        constant(0.1),
        scaler,
        meter,
        Bytes(0),
    )
}

/// Trap B12: the mean over the tokens of the window, 4 / 4, and not that of the two means, 2.
#[test]
fn tokens_weigh_by_how_many_count() {
    let _alone = alone();
    let mut trainer = masked(OptimizerKind::Sgd);
    trainer.micro_step(([4.0, 9.0, 9.0, 9.0], 1));
    trainer.micro_step(([0.0, 0.0, 0.0, 9.0], 3));
    let update = trainer.update().unwrap();
    assert!((update.loss - 1.0).abs() < 1e-6, "{}", update.loss);
    assert!((update.norm - 1.0).abs() < 1e-6, "{}", update.norm);
    let weight = values(trainer.model().weight.val())[0];
    assert!((weight - 0.9).abs() < 1e-6, "{weight}");
}

/// Trap B12: a window in which nothing counts is no update, no NaN and no news for the loss scale.
#[test]
fn a_window_in_which_nothing_counts_changes_nothing() {
    let _alone = alone();
    for optimizer in [OptimizerKind::Sgd, OptimizerKind::AdamW] {
        let mut trainer = masked(optimizer);
        let scaler = trainer.scaler().clone();
        for _ in 0..30 {
            trainer.micro_step(([1.0; 4], 0));
            trainer.micro_step(([1.0; 4], 0));
            assert_eq!(trainer.waiting(), 2);
            let update = trainer.update().unwrap();
            assert_eq!((update.verdict, update.loss, update.lr), (None, 0.0, 0.0));
            assert_eq!(trainer.waiting(), 0);
        }
        assert_eq!(*trainer.scaler(), scaler);
        assert_eq!((trainer.applied(), trainer.skipped()), (0, 30));
        assert_eq!(values(trainer.model().weight.val()), [1.0]);

        // Beside micro-batches that count it is as if it were not there.
        trainer.micro_step(([7.0; 4], 0));
        trainer.micro_step(([2.0; 4], 2));
        trainer.micro_step(([7.0; 4], 0));
        let update = trainer.update().unwrap();
        assert_eq!(update.verdict, Some(Verdict::Apply));
        assert!((update.loss - 2.0).abs() < 1e-6, "{}", update.loss);
        let weight = values(trainer.model().weight.val())[0];
        assert!(weight.is_finite() && weight < 1.0, "{weight}");
    }
}
