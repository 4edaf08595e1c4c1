//! Techniques that lower the memory of a training step, each usable alone on any Burn module.
//!
//! | lever | where | what it does |
//! |---|---|---|
//! | mixed precision | [`precision`] | f32 master weights, half-precision compute and activations |
//! | loss scaling | [`scaling`] | keeps f16 gradients above the smallest representable number |
//! | lean operations | [`ops`] | convolution and norm + ReLU that keep nothing twice |
//! | block checkpointing | [`checkpoint`](mod@checkpoint) | keeps a block's inputs, runs the block again in the backward |
//! | chunking | [`chunk`] | attention without queries x keys, cross-entropy without tokens x vocabulary |
//! | accumulation | [`accumulate`] | k micro-batches, one update, the mean over all samples |
//! | clipping | [`gradients`] | unscale, check, global-norm clip in f32 |
//! | 8-bit layers | [`int8`] | for inference: int8 weights, uint8 inputs |

pub mod accumulate;
pub mod captured;
pub mod checkpoint;
pub mod chunk;
pub mod gradients;
pub mod int8;
pub mod ops;
pub mod precision;
pub mod scaling;

pub use accumulate::Accumulator;
pub use checkpoint::random::seed;
pub use checkpoint::{
    Checkpoint, CheckpointError, CheckpointPolicy, Offload, checkpoint, recompute,
};
pub use chunk::{Attention, CrossEntropy};
pub use gradients::{GradientCheck, first_non_finite};
pub use int8::{Affine, Int8, embedding};
pub use ops::{
    Activation, Gelu, Output, Rotary, conv2d, gelu, layer_norm, linear, norm_act, probe, rms_norm,
    swiglu,
};
pub use precision::{CastTo, Policy, PolicyError, Precision};
pub use scaling::{LossScale, LossScaleError, LossScaler, Verdict};
