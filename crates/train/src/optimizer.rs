//! Burn's optimizers, with weight decay kept away from norms and biases.

mod resumable;
mod traced;

use burn::module::{Module, ModuleVisitor, Param, ParamGroup, ParamId};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamWConfig, LionConfig, ModuleOptimizer, SgdConfig};
use burn::tensor::Tensor;
use leanburn_memory::Bytes;
use serde::{Deserialize, Serialize};

use crate::names::names;
use resumable::Resumable;
pub(crate) use traced::Traced;

/// Which optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Stochastic gradient descent with momentum 0.9 (one f32 per parameter).
    #[default]
    Sgd,
    /// Adam with decoupled weight decay (two).
    AdamW,
    /// Lion (one); wants a learning rate three to ten times smaller than AdamW's.
    Lion,
}

names!(
    OptimizerKind,
    "optimizer",
    [Sgd = "sgd", AdamW = "adamw", Lion = "lion"]
);

/// What AdamW has besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment. Trap B57: moments and masters are f32, so that 1e-8 does not
    /// vanish.
    pub epsilon: f64,
}

impl Default for Adam {
    /// Burn's.
    fn default() -> Self {
        Self {
            beta2: 0.999,
            epsilon: 1e-5,
        }
    }
}

impl OptimizerKind {
    /// What it keeps for parameters of these bytes.
    pub fn state_bytes(self, parameters: Bytes) -> Bytes {
        let copies = match self {
            Self::Sgd | Self::Lion => 1,
            Self::AdamW => 2,
        };
        Bytes(parameters.0.saturating_mul(copies))
    }

    fn build(self, decay: f64, adam: Adam) -> ModuleOptimizer {
        match self {
            Self::Sgd => Resumable(sgd(decay).build()).into(),
            Self::AdamW => Resumable(adamw(decay, adam).build()).into(),
            Self::Lion => Resumable(lion(decay).build()).into(),
        }
    }

    fn add_group(
        self,
        optimizer: ModuleOptimizer,
        group: ParamGroup,
        adam: Adam,
    ) -> ModuleOptimizer {
        match self {
            Self::Sgd => optimizer.with_group(group, Resumable(sgd(0.0).build()), None),
            Self::AdamW => optimizer.with_group(group, Resumable(adamw(0.0, adam).build()), None),
            Self::Lion => optimizer.with_group(group, Resumable(lion(0.0).build()), None),
        }
    }

    /// An optimizer for this module, and which parameters it decays.
    pub fn init<M: Module>(
        self,
        module: &M,
        weight_decay: f64,
        adam: Adam,
    ) -> (ModuleOptimizer, DecayGroups) {
        let mut groups = DecayGroups::default();
        module.visit(&mut groups);
        let mut optimizer = self.build(weight_decay, adam);
        if !groups.undecayed_ids.is_empty() {
            optimizer = self.add_group(
                optimizer,
                ParamGroup::from_ids(groups.undecayed_ids.clone()),
                adam,
            );
        }
        (optimizer, groups)
    }
}

fn sgd(decay: f64) -> SgdConfig {
    let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
    let config = SgdConfig::new().with_momentum(Some(momentum));
    if decay > 0.0 {
        config.with_weight_decay(Some(WeightDecayConfig::new(decay as f32)))
    } else {
        config
    }
}

fn adamw(decay: f64, adam: Adam) -> AdamWConfig {
    AdamWConfig::new()
        .with_weight_decay(decay as f32)
        .with_beta_2(adam.beta2 as f32)
        .with_epsilon(adam.epsilon as f32)
}

fn lion(decay: f64) -> LionConfig {
    LionConfig::new().with_weight_decay(decay as f32)
}

/// Which parameters weight decay pulls on: matrices and filters, not norms and biases.
#[derive(Clone, Debug, Default)]
pub struct DecayGroups {
    /// Paths with decay.
    pub decayed: Vec<String>,
    /// Paths without.
    pub undecayed: Vec<String>,
    undecayed_ids: Vec<ParamId>,
    path: Vec<String>,
}

impl DecayGroups {
    /// One line: how many of each, and what the undecayed are called.
    pub fn summary(&self) -> String {
        let mut names: Vec<&str> = self
            .undecayed
            .iter()
            .filter_map(|path| path.rsplit('.').next())
            .collect();
        names.sort_unstable();
        names.dedup();
        format!(
            "weight decay on {} tensors; none on {} ({})",
            self.decayed.len(),
            self.undecayed.len(),
            names.join(", ")
        )
    }
}

impl ModuleVisitor for DecayGroups {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.join(".");
        if path.ends_with("running_mean") || path.ends_with("running_var") {
            return;
        }
        if D > 1 {
            self.decayed.push(path);
        } else {
            self.undecayed.push(path);
            self.undecayed_ids.push(param.id);
        }
    }
}
