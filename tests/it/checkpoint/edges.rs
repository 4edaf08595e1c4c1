//! First blocks, frozen blocks, evaluation, several inputs and outputs, and what is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::backend::distributed::{
    DistributedConfig, ReduceOperation, close_distributed_sync_server,
    start_distributed_sync_server,
};
use burn::backend::{Autodiff, AutodiffBackend, Capture, Flex, FlexDevice};
use burn::module::Module;
use burn::nn::{
    BatchNormConfig, Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig,
};
use burn::tensor::activation::relu;
use burn::tensor::{Bool, Device, Int, Tensor};
use leanburn::levers::{LossScale, LossScaler, Offload, Policy, Precision, checkpoint};
use leanburn::memory::{Bytes, Meter};
use leanburn::models::{Depth, ResNetConfig};
use leanburn::train::{Schedule, Settings, Trainer};

use super::blocks::Bottleneck;
use super::{Step, copy};
use crate::memory::batch;
use crate::support::{alone, devices, random, values};

fn linear(device: &Device) -> Linear {
    LinearConfig::new(8, 8).init(device)
}

/// Trap B48: parameters get gradients where the input wants none, and the images get none.
#[test]
fn the_first_block() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = linear(&device);
        let images = random([4, 8], &device);
        let plain = Step::run(&block, &[&images], |block, x| {
            block.forward(x[0].clone()).sum()
        });
        let again = Step::run(&block, &[&images], |block, x| {
            checkpoint::<_, _, Tensor<2>, _>(block, x[0].clone(), |block, x| block.forward(x)).sum()
        });
        assert!(again.gradient("weight").is_some());
        assert_eq!(again.gradient("input 0"), None);
        again.assert_same(&plain, &device, "first block");
    }
}

#[test]
fn token_ids_are_an_input_without_floats() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let embedding = EmbeddingConfig::new(5, 8).init(&device);
        let ids = Tensor::<2, Int>::from_ints([[0, 3, 3], [4, 0, 1]], &device);
        let none: &[&Tensor<2>] = &[];
        let plain = Step::run(&embedding, none, |embedding, _| {
            embedding.forward(ids.clone()).powi_scalar(2).sum()
        });
        let again = Step::run(&embedding, none, |embedding, _| {
            let y: Tensor<3> = checkpoint(embedding, ids.clone(), Embedding::forward);
            y.powi_scalar(2).sum()
        });
        again.assert_same(&plain, &device, "embedding");
    }
}

#[test]
fn frozen_parameters_get_no_gradient_but_the_input_does() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let blocks = vec![linear(&device).freeze(), linear(&device)];
        let x = random([4, 8], &device).require_grad();
        let plain = Step::run(&blocks, &[&x], |blocks, x| {
            blocks[1]
                .forward(relu(blocks[0].forward(x[0].clone())))
                .sum()
        });
        let again = Step::run(&blocks, &[&x], |blocks, x| {
            let y: Tensor<2> = checkpoint(blocks, x[0].clone(), |blocks: &Vec<Linear>, x| {
                blocks[1].forward(relu(blocks[0].forward(x)))
            });
            y.sum()
        });
        assert_eq!(again.gradient("0.weight"), None);
        assert!(again.gradient("1.weight").is_some());
        again.assert_same(&plain, &device, "frozen");
    }
}

/// A block in evaluation mode on the training device stays in it: the recomputation of a frozen
/// norm uses the running statistics, and a frozen dropout drops nothing.
#[test]
fn frozen_and_evaluated_norms_behave_as_plain() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = Bottleneck::new(&device);
        let x = random([3, 4, 5, 5], &device).mul_scalar(3.0);
        // Statistics that differ from those of a batch.
        drop(block.forward(x.clone()));
        let frozen = block.clone().freeze();
        let evaluated = block.valid();
        for (what, block) in [("frozen", frozen), ("valid", evaluated)] {
            let run = |checkpointed: bool| {
                let x = x.clone().require_grad();
                let y: Tensor<4> = match checkpointed {
                    true => checkpoint(&block, x.clone(), Bottleneck::forward),
                    false => block.forward(x.clone()),
                };
                let gradients = y.clone().powi_scalar(2).sum().backward();
                (values(y), values(x.grad(&gradients).unwrap()))
            };
            let (plain, again) = (run(false), run(true));
            let error = crate::support::relative_error(&again.1, &plain.1);
            assert_eq!(again.0, plain.0, "{what}");
            assert!(error < 1e-6, "{what}: {error}");
        }
        let dropout = DropoutConfig::new(0.5).init().valid();
        let x = Tensor::<2>::ones([4, 8], &device).require_grad();
        let y: Tensor<2> = checkpoint(&dropout, x.clone(), Dropout::forward);
        let gradients = y.sum().backward();
        assert_eq!(values(x.grad(&gradients).unwrap()), vec![1.0; 32]);
    }
}

fn counted(count: &Arc<AtomicUsize>) -> impl Fn(&Linear, Tensor<2>) -> Tensor<2> + use<> {
    let count = count.clone();
    move |block, x| {
        count.fetch_add(1, Ordering::Relaxed);
        block.forward(x)
    }
}

/// Trap B52: with gradients the block runs twice; without, once, and on a plain device too.
#[test]
fn a_block_runs_twice_only_where_gradients_are_wanted() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let x = random([4, 8], &device);
        let runs = |block: &Linear, x: Tensor<2>| {
            let count = Arc::new(AtomicUsize::new(0));
            let y: Tensor<2> = checkpoint(block, x, counted(&count));
            let tracked = y.is_tracked();
            if tracked {
                y.sum().backward();
            }
            (count.load(Ordering::Relaxed), tracked)
        };
        let block = linear(&device);
        assert_eq!(runs(&block, x.clone()), (2, true));
        assert_eq!(runs(&block.clone().freeze(), x.clone()), (1, false));
        assert_eq!(runs(&block.valid(), x.clone().inner()), (1, false));
        assert_eq!(runs(&block.freeze(), x.require_grad()), (2, true));
    }
}

type Streams = (
    Tensor<2>,
    Option<Tensor<2>>,
    Tensor<2, Bool>,
    Vec<Tensor<2>>,
);

#[allow(clippy::ptr_arg, reason = "a slice is no module")]
fn cross(blocks: &Vec<Linear>, (x, memory, mask, more): Streams) -> (Tensor<2>, [Tensor<2>; 2]) {
    let memory = memory.expect("given");
    let x = blocks[0].forward(x).mask_fill(mask, 0.5);
    let y = blocks[1].forward(memory.clone()) * x.clone();
    let rest = more.into_iter().fold(memory, |sum, x| sum + x);
    (y, [x, rest])
}

/// Residual streams and cross-attention memory: every input gets its gradient, every output's
/// gradient counts, also where only some of them are used.
#[test]
fn several_inputs_and_outputs() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let blocks = vec![linear(&device), linear(&device)];
        let inputs: Vec<_> = (0..4)
            .map(|_| random([4, 8], &device).require_grad())
            .collect();
        let mask = random([4, 8], &device).greater_elem(1.0);
        for used in ["all", "first", "last"] {
            let run = |checkpointed: bool| {
                let mask = mask.clone();
                Step::run(&blocks, &inputs.iter().collect::<Vec<_>>(), |blocks, x| {
                    // Behind other operations, so that the inputs are no leaves.
                    let [a, b, c, d] = std::array::from_fn(|i| x[i].clone().mul_scalar(1.5));
                    let streams = (a, Some(b), mask, vec![c, d.detach()]);
                    let (y, [z, rest]) = match checkpointed {
                        true => checkpoint(blocks, streams, cross),
                        false => cross(blocks, streams),
                    };
                    match used {
                        "all" => y.sum() + z.powi_scalar(2).sum() + rest.powi_scalar(2).sum(),
                        "first" => y.sum(),
                        _ => rest.powi_scalar(2).sum(),
                    }
                })
            };
            let (plain, again) = (run(false), run(true));
            match used {
                // An input that the used outputs do not depend on gets zeros instead of nothing.
                "last" => {
                    assert!(again.gradient("input 0").unwrap().iter().all(|g| *g == 0.0));
                    assert_eq!(again.gradient("input 1"), plain.gradient("input 1"));
                    assert_eq!(again.gradient("0.weight"), None);
                }
                "first" => {
                    assert_eq!(again.gradient("1.weight"), plain.gradient("1.weight"));
                    assert!(again.gradient("input 2").unwrap().iter().all(|g| *g == 0.0));
                }
                _ => again.assert_same(&plain, &device, used),
            }
            assert_eq!(again.gradient("input 3"), None);
        }
    }
}

/// The same layer in two blocks, and twice inside one: its gradients add up.
#[test]
fn tied_weights_accumulate() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = linear(&device);
        let x = random([4, 8], &device);
        let run = |checkpointed: bool| {
            Step::run(&block, &[] as &[&Tensor<2>], |block, _| {
                let tied = vec![block.clone(), block.clone()];
                let pass = |tied: &Vec<Linear>, x: Tensor<2>| {
                    tied.iter().fold(x, |x, block| relu(block.forward(x)))
                };
                let y = (0..2).fold(x.clone(), |x, _| match checkpointed {
                    true => checkpoint(&tied, x, pass),
                    false => pass(&tied, x),
                });
                y.sum()
            })
        };
        // Four contributions, added in another order.
        run(true).assert_close(&run(false), 1e-6, "tied");
    }
}

/// Burn's own strategy goes on inside the block; nothing is mixed.
#[test]
fn balanced_strategy_on_the_same_device() {
    let _alone = alone();
    for device in devices() {
        let (plain_device, device) = (
            device.clone().autodiff(),
            device.autodiff().gradient_checkpointing(),
        );
        let values_of = random([3, 4, 5, 5], &plain_device).into_data();
        let run = |device: &Device, checkpointed: bool, block: &Bottleneck| {
            let x = Tensor::<4>::from_data(values_of.clone(), device).require_grad();
            let y: Tensor<4> = match checkpointed {
                true => checkpoint(block, x.clone(), Bottleneck::forward),
                false => block.forward(x.clone()),
            };
            let gradients = (relu(y) * x.clone()).sum().backward();
            values(x.grad(&gradients).unwrap())
        };
        let block = Bottleneck::new(&device);
        let plain = run(&device, false, &block);
        let again = run(&device, true, &block);
        let error = crate::support::relative_error(&again, &plain);
        assert!(error < 1e-6, "{error}");
    }
}

#[derive(Module, Debug)]
struct Moody {
    linear: Linear,
}

/// A panic in the recomputation is the panic that `backward` ends with, and training can go on.
#[test]
fn a_panic_in_the_recomputation_comes_out() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = Moody {
            linear: linear(&device),
        };
        let x = random([4, 8], &device);
        let run = |fails: bool| {
            let count = AtomicUsize::new(0);
            let y: Tensor<2> = checkpoint(&block, x.clone(), move |block: &Moody, x| {
                let run = count.fetch_add(1, Ordering::Relaxed);
                assert!(!fails || run == 0, "the second time goes wrong");
                block.linear.forward(x)
            });
            y.sum().backward()
        };
        let panic = catch_unwind(AssertUnwindSafe(|| run(true))).err().unwrap();
        let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        assert_eq!(text, "the second time goes wrong");
        assert!(block.linear.weight.grad(&run(false)).is_some());
    }
}

fn refusal(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("refused");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .expect("a text")
}

#[test]
fn tensors_from_outside_are_refused() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let block = linear(&device);
        let x = random([4, 8], &device);
        let outside = random([4, 8], &device).require_grad();
        let captured = outside.clone();
        let text = refusal(|| {
            let y: Tensor<2> = checkpoint(&block, x.clone(), move |block: &Linear, x| {
                block.forward(x) + captured.clone()
            });
            drop(y);
        });
        assert!(text.contains("pass it as an input"), "{text}");

        let mut computed = block;
        computed.weight = computed.weight.map(|weight| weight.mul_scalar(2.0));
        let text = refusal(|| {
            let y: Tensor<2> = checkpoint(&computed, x, |block, x| block.forward(x));
            drop(y);
        });
        assert!(
            text.contains("'weight' is the result of a computation"),
            "{text}"
        );
    }
}

/// The all-reduce of a `DistributedContext` knows nothing of gradients inside a block.
#[test]
fn a_distributed_context_is_refused() {
    let _alone = alone();
    // What `DistributedContext::init` does, which refuses backends without a transport.
    let config = DistributedConfig {
        all_reduce_op: ReduceOperation::Mean,
    };
    start_distributed_sync_server::<Flex>(&[FlexDevice], config);
    let device = Device::flex();
    let device = device.autodiff();
    let block = linear(&device);
    let x = random([4, 8], &device);
    let text = refusal(|| {
        let y: Tensor<2> = checkpoint(&block, x.clone(), |block, x| block.forward(x));
        drop(y);
    });
    assert!(text.contains("ExecutionStrategy::multi"), "{text}");
    close_distributed_sync_server::<Flex>();
    let y: Tensor<2> = checkpoint(&block, x, |block, x| block.forward(x));
    assert!(block.weight.grad(&y.sum().backward()).is_some());
}

/// Trap B47: three steps move the statistics three times, whatever is recomputed.
#[test]
fn running_statistics_move_once_a_step() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let plain = BatchNormConfig::new(4).init(&device);
        let again = copy(&plain);
        for _ in 0..3 {
            let x = random([8, 4, 2, 2], &device);
            plain.forward(x.clone()).sum().backward();
            let y: Tensor<4> = checkpoint(&again, x, |norm, x: Tensor<4>| norm.forward(x));
            y.sum().backward();
        }
        for (plain, again) in [
            (&plain.running_mean, &again.running_mean),
            (&plain.running_var, &again.running_var),
        ] {
            assert_eq!(values(again.value_sync()), values(plain.value_sync()));
        }
    }
}

/// Through the trainer: two micro-batches, a scaled f16 loss, one update.
#[test]
fn accumulation_and_loss_scaling_see_no_difference() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let model = ResNetConfig::new(Depth::R18, 5).with_width(4).init(&device);
    let update = |policy: &str| {
        let model = copy(&model)
            .with_policy(Policy::computing(Precision::F16))
            .with_checkpoint(policy.parse().unwrap(), Offload::None);
        let settings = Settings {
            clip_norm: Some(1.0),
            ..Settings::plain(4)
        };
        let schedule = Schedule::default().start(0.01, 100, 0).unwrap();
        let scaler = LossScaler::new(LossScale::Static(1024.0)).unwrap();
        let meter = Meter::new(&device);
        let mut trainer = Trainer::new(model, settings, schedule, scaler, meter, Bytes(0));
        trainer.micro_step(batch(4, 16));
        trainer.micro_step(batch(3, 16));
        let update = trainer.update().unwrap();
        let weights = values(trainer.model().fc.weight.val());
        (update.loss, update.norm, weights)
    };
    let plain = update("none");
    assert!(plain.1 > 0.0);
    for policy in ["cheap", "every-block", "sqrt+cheap"] {
        assert_eq!(update(policy), plain, "{policy}");
    }
}

/// The operations of a step are recorded as on any device: forward, recomputation and backward.
#[test]
fn a_capturing_device_records_the_recomputation() {
    let _alone = alone();
    let operations = |checkpointed: bool| {
        let capture = Device::capture();
        let captured = capture.capture_scope(|scope| {
            let device = capture.clone().autodiff();
            let blocks: Vec<Linear> = (0..3).map(|_| linear(&device)).collect();
            let x = Tensor::<2>::zeros([4, 8], &device);
            let step = |block: &Linear, x: Tensor<2>| relu(block.forward(x));
            let y = blocks.iter().fold(x, |x, block| match checkpointed {
                true => checkpoint(block, x, step),
                false => step(block, x),
            });
            let loss = y.sum().try_into_primitive::<Autodiff<Capture>>().unwrap();
            drop(<Autodiff<Capture> as AutodiffBackend>::backward(loss));
            scope.complete([], [])
        });
        captured.unwrap().graph.operations.len()
    };
    let (plain, again) = (operations(false), operations(true));
    assert!(again > plain + 5, "{again} against {plain} operations");
}
