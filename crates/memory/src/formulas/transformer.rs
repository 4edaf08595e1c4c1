//! The model: a Transformer of the GPT kind, and how many parameters it has.

use std::str::FromStr;

use super::error::{FormulaError, divides, in_range};
use super::notation::{Formula, Letters};
use super::parallel::Parallel;
use super::parse::Entries;

/// The sizes of a GPT-like Transformer: learned positions, biases everywhere, layer norms with
/// scale and shift, a 4x MLP, and an output layer tied to the token embedding.
///
/// Read from `layers=96,hidden=12288,heads=96,seq=2048,vocab=51200`, in any order; all five keys
/// are needed. With tensor parallelism Megatron-LM pads the vocabulary, so give the padded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// Layers, `L` in the formulas.
    pub layers: u64,
    /// Width of the residual stream, `h`.
    pub hidden: u64,
    /// Attention heads, `a`; they divide the width.
    pub heads: u64,
    /// Sequence length in tokens, `s`.
    pub sequence: u64,
    /// Vocabulary size in tokens, `v`.
    pub vocabulary: u64,
}

impl Transformer {
    /// Trainable parameters, the tied embedding counted once.
    ///
    /// `L(12h^2 + 13h) + (v + s)h + 2h`: Narayanan et al. 2021 (arXiv:2104.04473), eq. 2, print the
    /// first two terms as `12Lh^2(1 + 13/(12h) + (v + s)/(12Lh))` and leave out the last, the final
    /// layer norm. With it GPT-2 small has exactly its 124,439,808.
    ///
    /// # Errors
    ///
    /// [`FormulaError`] where a size is out of range, the heads don't divide the width, or the
    /// count exceeds 64 bits.
    pub fn parameters(&self) -> Result<u64, FormulaError> {
        self.check()?;
        let count = whole_model().value(&self.letters());
        count.ok_or_else(|| FormulaError::TooLarge {
            figure: "the number of parameters".to_owned(),
        })
    }

    /// Whether the sizes make a model.
    pub(super) fn check(&self) -> Result<(), FormulaError> {
        in_range("layers", self.layers)?;
        in_range("hidden", self.hidden)?;
        in_range("heads", self.heads)?;
        in_range("seq", self.sequence)?;
        in_range("vocab", self.vocabulary)?;
        divides(("heads", self.heads), ("hidden", self.hidden))
    }

    pub(super) fn letters(&self) -> Letters {
        Letters::default()
            .with('L', self.layers, "layers")
            .with('h', self.hidden, "hidden")
            .with('a', self.heads, "heads")
            .with('s', self.sequence, "sequence")
            .with('v', self.vocabulary, "vocabulary")
    }
}

/// Parameters of the model, on however many devices.
pub(super) fn whole_model() -> Formula {
    Formula::new("L(12h^2 + 13h) + (v + s)h + 2h")
}

/// Parameters on a device of the first stage: its layers and the embeddings, over `t`.
///
/// As in Megatron-LM's `theoretical_memory_usage.py` everything is divided by `t`, though norms,
/// some biases and the positions stay whole on every device (0.13 % of GPT-3 at 8 ways).
pub(super) fn first_stage(parallel: &Parallel) -> Formula {
    Formula::new(match (parallel.pipeline > 1, parallel.tensor > 1) {
        (false, false) => "L(12h^2 + 13h) + (v + s)h + 2h",
        (false, true) => "(L(12h^2 + 13h) + (v + s)h + 2h)/t",
        // The final layer norm is on the last stage, the embeddings on the first.
        (true, false) => "L/p(12h^2 + 13h) + (v + s)h",
        (true, true) => "(L/p(12h^2 + 13h) + (v + s)h)/t",
    })
}

impl FromStr for Transformer {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        let keys = ["layers", "hidden", "heads", "seq", "vocab"];
        let entries = Entries::read("transformer", &keys, text)?;
        let transformer = Self {
            layers: entries.required("layers")?,
            hidden: entries.required("hidden")?,
            heads: entries.required("heads")?,
            sequence: entries.required("seq")?,
            vocabulary: entries.required("vocab")?,
        };
        transformer.check()?;
        Ok(transformer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Transformer, FormulaError> {
        text.parse()
    }

    #[test]
    fn reads_the_keys_in_any_order() {
        let wanted = Transformer {
            layers: 12,
            hidden: 768,
            heads: 12,
            sequence: 1024,
            vocabulary: 50257,
        };
        for text in [
            "layers=12,hidden=768,heads=12,seq=1024,vocab=50257",
            "vocab=50257, seq=1024, heads=12, hidden=768, layers=12",
        ] {
            assert_eq!(parse(text), Ok(wanted));
        }
    }

    #[test]
    fn refuses_what_makes_no_model() {
        for (text, message) in [
            (
                "layers=12,hidden=768,heads=12,seq=1024",
                "the transformer has no `vocab`: add vocab=N, a whole number from 1 to 4294967295",
            ),
            (
                "layers=12,hidden=768,heads=7,seq=1024,vocab=50257",
                "heads=7 does not divide hidden=768: heads must be one of its divisors",
            ),
            (
                "layers=0,hidden=768,heads=12,seq=1024,vocab=50257",
                "layers can't be `0`: layers is a whole number from 1 to 4294967295",
            ),
            (
                "layers=12,depth=3",
                "unknown key `depth` in the transformer: use layers, hidden, heads, seq, vocab",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }

    // Public fields can hold what the text can't.
    #[test]
    fn sizes_are_checked_again_before_use() {
        let most = u64::from(u32::MAX);
        let huge = Transformer {
            layers: most,
            hidden: most,
            heads: 1,
            sequence: 1,
            vocabulary: 1,
        };
        assert!(matches!(
            huge.parameters(),
            Err(FormulaError::TooLarge { .. })
        ));
        let empty = Transformer { heads: 0, ..huge };
        assert!(matches!(
            empty.parameters(),
            Err(FormulaError::Size { key: "heads", .. })
        ));
    }
}
