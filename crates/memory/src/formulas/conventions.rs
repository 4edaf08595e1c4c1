//! Bytes per parameter: the published conventions, the optimizers and the stages of ZeRO.

use super::parse::names;

/// Which copies of a parameter and its gradient are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Convention {
    /// The 16 bytes of ZeRO: 2 parameter + 2 gradient, and an fp32 copy of 4 beside Adam's 8 in the
    /// optimizer (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1).
    #[default]
    Zero,
    /// The 18 bytes of Megatron-LM: bf16 parameters of 2, but fp32 main gradients of 4; the fp32
    /// copy of 4 and Adam's 8 are in the optimizer (its `dist_optimizer.md`, second row).
    Megatron,
    /// The 18 bytes of Hugging Face: fp32 and fp16 weights, 6 in all, fp32 gradients of 4, and
    /// Adam's 8 (its `model_memory_anatomy`). Same sum as Megatron's, other rows; and the fp32
    /// weights are divided with the parameters, not with the optimizer state.
    HuggingFace,
    /// No mixed precision: 4 + 4, and Adam's 8 (Megatron-LM's `dist_optimizer.md`, third row).
    Fp32,
}

names!(
    Convention,
    "convention",
    [
        Zero = "zero",
        Megatron = "megatron",
        HuggingFace = "hugging-face",
        Fp32 = "fp32",
    ]
);

impl Convention {
    /// Bytes per element of the parameters that compute, and so of the activations.
    pub(super) fn element(self) -> u64 {
        match self {
            Convention::Zero | Convention::Megatron | Convention::HuggingFace => 2,
            Convention::Fp32 => 4,
        }
    }

    pub(super) fn parameter_and_gradient(self) -> (u64, u64) {
        match self {
            Convention::Zero => (2, 2),
            Convention::Megatron => (2, 4),
            Convention::HuggingFace => (6, 4),
            Convention::Fp32 => (4, 4),
        }
    }

    /// Bytes of the fp32 parameter that the optimizer holds beside the one that computes.
    pub(super) fn fp32_copy(self) -> u64 {
        match self {
            Convention::Zero | Convention::Megatron => 4,
            Convention::HuggingFace | Convention::Fp32 => 0,
        }
    }

    pub(super) fn source(self) -> &'static str {
        match self {
            Convention::Zero => "Rajbhandari et al. 2020, section 3.1",
            Convention::Megatron => "Megatron-LM dist_optimizer.md, bf16 with fp32 gradients",
            Convention::HuggingFace => "Hugging Face model_memory_anatomy, fp32 and fp16 weights",
            Convention::Fp32 => "Megatron-LM dist_optimizer.md, all fp32",
        }
    }
}

/// What the optimizer keeps per parameter, besides an fp32 copy of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Optimizer {
    /// Adam or AdamW: two fp32 moments.
    #[default]
    Adam,
    /// Adam with two moments of one byte (Dettmers et al. 2022, arXiv:2110.02861); the scales of
    /// its blocks are left out.
    Adam8Bit,
    /// Lion: one fp32 momentum (Chen et al. 2023, arXiv:2302.06675).
    Lion,
    /// SGD with one fp32 momentum.
    SgdMomentum,
    /// Plain SGD: nothing.
    Sgd,
}

names!(
    Optimizer,
    "optimizer",
    [
        Adam = "adam" | "adamw",
        Adam8Bit = "adam8bit",
        Lion = "lion",
        SgdMomentum = "sgd-momentum",
        Sgd = "sgd",
    ]
);

impl Optimizer {
    /// Bytes of all moments of a parameter.
    pub(super) fn moments(self) -> u64 {
        match self {
            Optimizer::Adam => 8,
            Optimizer::Lion | Optimizer::SgdMomentum => 4,
            Optimizer::Adam8Bit => 2,
            Optimizer::Sgd => 0,
        }
    }
}

/// What is divided among the data-parallel replicas instead of kept by each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Zero {
    /// Nothing.
    #[default]
    Stage0,
    /// Optimizer state (P_os).
    Stage1,
    /// Gradients too (P_os+g).
    Stage2,
    /// Parameters too (P_os+g+p).
    Stage3,
}

names!(
    Zero,
    "ZeRO stage",
    [Stage0 = "0", Stage1 = "1", Stage2 = "2", Stage3 = "3"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for convention in Convention::ALL {
            assert_eq!(convention.name().parse(), Ok(*convention));
        }
        for optimizer in Optimizer::ALL {
            assert_eq!(optimizer.name().parse(), Ok(*optimizer));
        }
        for zero in Zero::ALL {
            assert_eq!(zero.name().parse(), Ok(*zero));
        }
        assert_eq!("adamw".parse(), Ok(Optimizer::Adam));
        assert_eq!(
            "4".parse::<Zero>().unwrap_err().to_string(),
            "unknown ZeRO stage `4`: use 0, 1, 2, 3"
        );
    }
}
