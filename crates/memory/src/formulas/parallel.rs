//! The devices: tensor, sequence, pipeline and data parallelism.

use std::str::FromStr;

use super::Transformer;
use super::error::{FormulaError, divides, in_range};
use super::notation::Letters;
use super::parse::Entries;

/// How a model is spread over devices. The default is one device.
///
/// Read from `tp=8,pp=8,dp=4,sp`, in any order; what is left out is 1, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Devices that share every layer, `t` in the formulas.
    pub tensor: u64,
    /// Whether those also share the sequence where layers are not split (norms and dropouts).
    pub sequence: bool,
    /// Stages of `L/p` layers, `p`, run 1F1B.
    pub pipeline: u64,
    /// Replicas, `d`: the degree that ZeRO divides by.
    pub data: u64,
}

impl Default for Parallel {
    fn default() -> Self {
        Self {
            tensor: 1,
            sequence: false,
            pipeline: 1,
            data: 1,
        }
    }
}

impl Parallel {
    /// The same split with the replicas that `gpus` have room for, `gpus / (tensor * pipeline)`:
    /// 8 GPUs under tp=8 are one replica.
    ///
    /// # Errors
    ///
    /// [`FormulaError`] where a degree is out of range or the GPUs can't be shared evenly.
    pub fn on_gpus(self, gpus: u64) -> Result<Self, FormulaError> {
        in_range("gpus", gpus)?;
        let replica = in_range("tp", self.tensor)? * in_range("pp", self.pipeline)?;
        divides(("tp*pp", replica), ("gpus", gpus))?;
        let data = gpus / replica;
        Ok(Self { data, ..self })
    }

    /// Whether the degrees are possible for `transformer`.
    pub(super) fn check(&self, transformer: &Transformer) -> Result<(), FormulaError> {
        self.check_degrees()?;
        divides(("tp", self.tensor), ("heads", transformer.heads))?;
        divides(("pp", self.pipeline), ("layers", transformer.layers))?;
        if self.sequence {
            divides(("tp", self.tensor), ("seq", transformer.sequence))?;
        }
        Ok(())
    }

    fn check_degrees(&self) -> Result<(), FormulaError> {
        in_range("tp", self.tensor)?;
        in_range("pp", self.pipeline)?;
        in_range("dp", self.data)?;
        // Alone it would save nothing, and look as if it did.
        if self.sequence && self.tensor == 1 {
            return Err(FormulaError::SequenceParallelAlone);
        }
        Ok(())
    }

    pub(super) fn letters(&self, letters: Letters) -> Letters {
        letters
            .with('t', self.tensor, "tensor")
            .with('p', self.pipeline, "pipeline")
            .with('d', self.data, "data")
    }
}

impl FromStr for Parallel {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        let entries = Entries::read("parallel setup", &["tp", "pp", "dp", "sp"], text)?;
        let parallel = Self {
            tensor: entries.size("tp")?.unwrap_or(1),
            sequence: entries.flag("sp")?,
            pipeline: entries.size("pp")?.unwrap_or(1),
            data: entries.size("dp")?.unwrap_or(1),
        };
        parallel.check_degrees()?;
        Ok(parallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Parallel, FormulaError> {
        text.parse()
    }

    #[test]
    fn reads_degrees_and_the_flag() {
        let wanted = Parallel {
            tensor: 8,
            sequence: true,
            ..Parallel::default()
        };
        assert_eq!(parse("tp=8,sp"), Ok(wanted));
        assert_eq!(parse("sp, tp=8, dp=1"), Ok(wanted));
        assert_eq!(
            parse("sp").unwrap_err().to_string(),
            "sp splits the sequence over the tensor-parallel devices: add tp=2 or more, or drop sp"
        );
        assert_eq!(
            parse("tp=8,cp=2").unwrap_err().to_string(),
            "unknown key `cp` in the parallel setup: use tp, pp, dp, sp"
        );
        assert!(parse("tp").is_err() && parse("dp=0").is_err() && parse("").is_err());
    }

    #[test]
    fn degrees_have_to_fit_the_model() {
        // GPT-2 XL: its 25 heads are the usual stumbling block.
        let model = Transformer {
            layers: 48,
            hidden: 1600,
            heads: 25,
            sequence: 1022,
            vocabulary: 50257,
        };
        let refused = |text| parse(text).unwrap().check(&model).unwrap_err().to_string();
        assert_eq!(
            refused("tp=8"),
            "tp=8 does not divide heads=25: tp must be one of its divisors"
        );
        assert!(refused("pp=5").starts_with("pp=5 does not divide layers=48"));
        assert!(refused("tp=5,sp").starts_with("tp=5 does not divide seq=1022"));
        assert_eq!(parse("tp=5,pp=6").unwrap().check(&model), Ok(()));
    }

    // Trap B75: 8 GPUs under tp=8 are one replica, so ZeRO has nothing to divide by.
    #[test]
    fn replicas_are_what_the_other_degrees_leave() {
        let split = parse("tp=8").unwrap();
        assert_eq!(split.on_gpus(8).unwrap().data, 1);
        assert_eq!(split.on_gpus(64).unwrap().data, 8);
        assert_eq!(
            split.on_gpus(12).unwrap_err().to_string(),
            "tp*pp=8 does not divide gpus=12: tp*pp must be one of its divisors"
        );
    }
}
