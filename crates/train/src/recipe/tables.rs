//! The recipe's tables that all tasks share; some of their defaults are the task's.

use leanburn_levers::scaling::Dynamic;
use leanburn_levers::{LossScale, Policy, Precision};
use serde::{Deserialize, Serialize};

use crate::{OptimizerKind, Schedule, TrainError};

/// Values of the keys that a recipe leaves out, where tasks differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// `[train]`
    pub train: TrainRecipe,
    /// `[optimizer]`
    pub optimizer: OptimizerRecipe,
    /// `[schedule]`
    pub schedule: Schedule,
}

/// A table whose keys, where left out, take the task's defaults: serde's own are one set per type.
macro_rules! table {
    (
        $(#[$about:meta])*
        $name:ident = $table:ident {
            $($(#[$meta:meta])* $key:ident: $type:ty,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub struct $name {
            $($(#[$meta])* pub $key: $type,)+
        }

        impl $name {
            /// Reads the keys that are there over the task's defaults.
            pub(crate) fn over<'de, T, D>(keys: D) -> Result<Self, D::Error>
            where
                T: $crate::Task,
                D: serde::Deserializer<'de>,
            {
                // Of the same name, which is what errors show.
                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields)]
                struct $name {
                    $($key: Option<$type>,)+
                }
                let keys = <$name as serde::Deserialize>::deserialize(keys)?;
                let defaults = T::defaults().$table;
                Ok(Self {
                    $($key: keys.$key.unwrap_or(defaults.$key),)+
                })
            }
        }
    };
}

pub(crate) use table;

table! {
    /// `[train]`
    TrainRecipe = train {
        /// Samples of a micro-batch.
        batch: usize,
        /// Micro-batches of an update.
        accumulate: usize,
        /// Passes over the data.
        epochs: usize,
        /// Updates after which to stop, whatever the epoch.
        #[serde(skip_serializing_if = "Option::is_none")]
        steps: Option<u64>,
        /// Decides weights, order of the data, views and dropout.
        seed: u64,
        /// Save every so many updates, besides the end of each epoch; 0 only there.
        save_every: u64,
        /// Give the pool's free pages back where training and evaluation take turns: for a GPU that others use
        /// too. The next phase asks the driver for them again.
        cleanup: bool,
    }
}

table! {
    /// `[optimizer]`
    OptimizerRecipe = optimizer {
        /// `sgd`, `adamw` or `lion`.
        name: OptimizerKind,
        /// Largest learning rate.
        lr: f64,
        /// Pull towards zero, on matrices and filters only.
        weight_decay: f64,
        /// Largest global gradient norm; 0 does not clip.
        clip_norm: f64,
        /// Decay of AdamW's second moment.
        beta2: f64,
        /// Added to the root of AdamW's second moment.
        epsilon: f64,
    }
}

/// `[precision]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrecisionRecipe {
    /// `auto`, `fp32`, `f16`, `bf16`, or `params=f32,compute=bf16,output=f32`.
    pub policy: String,
    /// `auto`, `none`, `dynamic`, a number, or a table with the rule of a dynamic scale.
    pub loss_scale: LossScaleRecipe,
}

impl Default for PrecisionRecipe {
    fn default() -> Self {
        Self {
            policy: "auto".into(),
            loss_scale: LossScaleRecipe::default(),
        }
    }
}

/// A loss scale as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LossScaleRecipe {
    /// A static scale.
    Number(f32),
    /// `auto`, `none` or `dynamic`.
    Word(String),
    /// The rule of a dynamic scale.
    Rule(Dynamic),
}

impl Default for LossScaleRecipe {
    fn default() -> Self {
        Self::Word("auto".into())
    }
}

impl LossScaleRecipe {
    /// `auto` is dynamic for f16, whose range is small, and none otherwise.
    pub fn resolve(&self, policy: Policy) -> Result<LossScale, TrainError> {
        let scale = match self {
            Self::Number(scale) => LossScale::Static(*scale),
            Self::Rule(rule) => LossScale::Dynamic(*rule),
            Self::Word(word) if word == "auto" => match policy.compute {
                Precision::F16 => LossScale::Dynamic(Dynamic::default()),
                _ => LossScale::None,
            },
            Self::Word(word) => word.parse()?,
        };
        Ok(scale.validate()?)
    }
}
