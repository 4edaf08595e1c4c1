//! Small traces whose bytes can be counted by hand.

use burn::tensor::{Device, Tensor};

use super::{Replay, Runtime};
use crate::trace::{Kernel, Note, as_one, note, trace};
use crate::{Bytes, Mark};

/// A tensor of this many bytes is `[256, 256]`.
const SIZE: u64 = 256 * 256 * 4;

fn square(device: &Device) -> Tensor<2> {
    Tensor::full([256, 256], 2.0, device)
}

/// The most that is alive between two marks, in squares.
fn highest(step: impl FnOnce(&Device)) -> f64 {
    highest_on(Runtime::Flex, step)
}

fn highest_on(runtime: Runtime, step: impl FnOnce(&Device)) -> f64 {
    let (recorded, ()) = trace(|device| {
        let device = &device.clone().inner();
        note(Note::Mark(Mark::Start, Bytes(0)));
        step(device);
        note(Note::Mark(Mark::UpdateEnd, Bytes(0)));
    })
    .unwrap();
    let replay = Replay::of(&recorded, runtime);
    let points = &replay.records[0].points;
    let graph = runtime.graph() * recorded.operations.len() as u64;
    let most = replay.moments.iter().map(|moment| moment.peak).max();
    let above = most.unwrap() - points[0].live;
    // To the nearest hundredth, so that the graph's few bytes do not show.
    assert!(graph < SIZE / 20);
    (above as f64 / SIZE as f64 * 10.0).round() / 10.0
}

#[test]
fn an_operand_that_nobody_else_holds_is_written_to() {
    assert_eq!(highest(|device| drop(square(device).exp())), 1.0);
    let kept = |device: &Device| {
        let x = square(device);
        let y = x.clone().exp();
        drop(x + y);
    };
    assert_eq!(highest(kept), 2.0);
    // Another view of it is another holder.
    let viewed = |device: &Device| {
        let x = square(device);
        let view = x.clone().reshape([65536]);
        drop((x.exp(), view.sum()));
    };
    assert_eq!(highest(viewed), 2.0);
}

#[test]
fn views_share_until_they_have_to_copy() {
    let in_order = |device: &Device| drop(square(device).reshape([128, 512]).sum());
    assert_eq!(highest(in_order), 1.0);
    let turned = |device: &Device| drop(square(device).transpose().reshape([65536]).sum());
    assert_eq!(highest(turned), 2.0);
    let rows = |device: &Device| drop(square(device).slice([0..128, 0..256]).sum());
    assert_eq!(highest(rows), 1.0);
    // A part keeps all of what it is a part of.
    let part = |device: &Device| {
        let part = square(device).slice([0..1, 0..256]);
        let other = square(device);
        drop((part.sum(), other.sum()));
    };
    assert_eq!(highest(part), 2.0);
}

#[test]
fn a_kernel_hides_what_happens_inside() {
    // Three steps of the record, none of which is in place: the input is needed to the end.
    let composed = |device: &Device, kernel: Option<Kernel>| {
        let x = square(device);
        let _one = as_one(|| kernel);
        let y = x.clone().exp();
        let z = y.clone() + x.clone();
        drop(y * z * x);
    };
    assert_eq!(highest(|device| composed(device, None)), 3.0);
    // Nothing of it is read afterwards, so the kernel has no output.
    let kernel = Kernel {
        workspace: SIZE / 2,
        ..Kernel::new("all")
    };
    assert_eq!(highest(|device| composed(device, Some(kernel))), 1.5);
    // A pool has no such kernel.
    let on_pool = highest_on(Runtime::Wgpu, |device| composed(device, Some(kernel)));
    assert_eq!(on_pool, 3.0);
}

#[test]
fn kernels_take_over_or_let_go_of_what_ends_in_them() {
    let run = |kernel: Kernel| {
        move |device: &Device| {
            let x = square(device);
            let y = {
                let _one = as_one(|| Some(kernel));
                // Not in place by itself.
                x.clone().matmul(x)
            };
            drop(y.sum());
        }
    };
    let plain = Kernel::new("product");
    assert_eq!(highest(run(plain)), 2.0);
    let in_place = Kernel {
        in_place: true,
        ..plain
    };
    assert_eq!(highest(run(in_place)), 1.0);
    let consumes = Kernel {
        consumes: true,
        ..plain
    };
    assert_eq!(highest(run(consumes)), 1.0);
}
