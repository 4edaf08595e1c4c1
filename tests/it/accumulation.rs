//! k micro-batches are one batch, however the samples fall into them.

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation::gelu};
use leanburn::levers::{LossScale, LossScaler};
use leanburn::memory::{Bytes, Meter};
use leanburn::train::{OptimizerKind, Schedule, Score, Settings, Trainable, Trainer};
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
