//! Activations: what the forward keeps for the backward, on a device of the first stage.

use super::notation::Formula;
use super::parallel::Parallel;
use super::parse::names;

/// What the backward computes again instead of keeping it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recompute {
    /// Nothing: all activations are kept.
    #[default]
    None,
    /// The attention core (scores, softmax, dropout, weighted sum), which holds everything that
    /// grows with the square of the sequence. Fused attention keeps about as little.
    Selective,
    /// Every layer: only its input is kept.
    Full,
}

names!(
    Recompute,
    "recompute policy",
    [None = "none", Selective = "selective", Full = "full"]
);

/// What the devices of one tensor-parallel group share of a layer's activations.
#[derive(Clone, Copy)]
enum Shared {
    Nothing,
    /// What is inside attention and MLP.
    Inside,
    /// The sequence outside of them too.
    Everything,
}

/// The formulas of Korthikanti et al. 2022 (arXiv:2205.05198), for elements of any width.
///
/// A layer keeps 16 elements per token and channel, 12 of them inside attention and MLP, and two
/// dropout masks of one byte; attention keeps two elements and a mask per head and pair of tokens.
/// With 2 bytes per element those are the paper's 34 = 10 + 24, and 5.
pub(super) struct Activations<'a> {
    pub(super) parallel: &'a Parallel,
    pub(super) recompute: Recompute,
    /// Bytes per element.
    pub(super) element: u64,
}

impl Activations<'_> {
    /// One layer of one micro-batch.
    pub(super) fn per_layer(&self) -> (Formula, String) {
        let (text, place) = self.layer("sbh", self.recompute);
        (Formula::new(text), self.source(place))
    }

    /// All layers: 1F1B keeps `p` micro-batches of `L/p` layers on the first stage, `L` in all.
    pub(super) fn layers(&self) -> (Formula, String) {
        let (text, place) = self.layer("sbhL", self.recompute);
        let source = self.source(&format!("{place}, and section 4.2.3"));
        (Formula::new(text), source)
    }

    /// Around the layers: embedding dropout and, where first and last stage are one, the inputs of
    /// the last norm and of the output layer, and the logits in fp32.
    pub(super) fn around(&self) -> (Formula, String) {
        // The paper gives the case with sequence parallelism; without it nothing but the logits is
        // split, by the argument of its eq. 2.
        let shared = match self.shared() {
            Shared::Everything => "/t",
            Shared::Nothing | Shared::Inside => "",
        };
        let inputs = 2 * self.element;
        let text = if self.parallel.pipeline == 1 {
            format!("sbhp{shared} + {inputs}sbh{shared} + 4sbv/t")
        } else {
            format!("sbhp{shared}")
        };
        (Formula::new(text), self.source("section 4.3"))
    }

    /// What is alive of the one layer that is computed again; `None` without recomputation.
    pub(super) fn recomputed(&self) -> Option<(Formula, String)> {
        match self.recompute {
            Recompute::None => None,
            Recompute::Selective => {
                let scores = self.scores();
                let text = match self.shared() {
                    Shared::Nothing => format!("{scores}as^2b"),
                    Shared::Inside | Shared::Everything => format!("{scores}as^2b/t"),
                };
                Some((Formula::new(text), self.source("section 4.1, one layer")))
            }
            Recompute::Full => {
                let (text, place) = self.layer("sbh", Recompute::None);
                let source = self.source(&format!("{place}, one layer"));
                Some((Formula::new(text), source))
            }
        }
    }

    /// The layers' activations in units of `size`, and where the paper says so.
    fn layer(&self, size: &str, recompute: Recompute) -> (String, &'static str) {
        let inside = 12 * self.element;
        let outside = 4 * self.element + 2;
        let all = inside + outside;
        let scores = self.scores();
        let input = self.element;
        match (recompute, self.shared()) {
            (Recompute::None, Shared::Nothing) => {
                (format!("{size}({all} + {scores}as/h)"), "eq. 1")
            }
            (Recompute::None, Shared::Inside) => (
                format!("{size}({outside} + {inside}/t + {scores}as/(ht))"),
                "eq. 2",
            ),
            (Recompute::None, Shared::Everything) => {
                (format!("{size}/t({all} + {scores}as/h)"), "eq. 4")
            }
            (Recompute::Selective, Shared::Nothing) => (format!("{all}{size}"), "table 2 at t = 1"),
            (Recompute::Selective, Shared::Inside) => {
                (format!("{size}({outside} + {inside}/t)"), "table 2")
            }
            (Recompute::Selective, Shared::Everything) => (format!("{all}{size}/t"), "eq. 6"),
            (Recompute::Full, Shared::Nothing | Shared::Inside) => {
                (format!("{input}{size}"), "table 2")
            }
            (Recompute::Full, Shared::Everything) => {
                (format!("{input}{size}/t"), "section 5, inputs split too")
            }
        }
    }

    fn scores(&self) -> u64 {
        2 * self.element + 1
    }

    fn shared(&self) -> Shared {
        match (self.parallel.tensor, self.parallel.sequence) {
            (1, _) => Shared::Nothing,
            (_, false) => Shared::Inside,
            (_, true) => Shared::Everything,
        }
    }

    fn source(&self, place: &str) -> String {
        let width = match self.element {
            2 => String::new(),
            other => format!(", with {other} bytes per element instead of 2"),
        };
        format!("Korthikanti et al. 2022, {place}{width}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(parallel: &str, recompute: Recompute, element: u64) -> String {
        let parallel = parallel.parse().unwrap();
        let activations = Activations {
            parallel: &parallel,
            recompute,
            element,
        };
        activations.per_layer().0.to_string()
    }

    #[test]
    fn every_row_of_table_2() {
        use Recompute::{Full, None, Selective};
        for (parallel, recompute, text) in [
            ("tp=1", None, "sbh(34 + 5as/h)"),
            ("tp=8", None, "sbh(10 + 24/t + 5as/(ht))"),
            ("tp=8,sp", None, "sbh/t(34 + 5as/h)"),
            ("tp=8", Selective, "sbh(10 + 24/t)"),
            ("tp=8,sp", Selective, "34sbh/t"),
            ("tp=8", Full, "2sbh"),
            ("tp=8,sp", Full, "2sbh/t"),
        ] {
            assert_eq!(layer(parallel, recompute, 2), text);
        }
    }

    #[test]
    fn fp32_doubles_all_but_the_masks() {
        assert_eq!(layer("tp=1", Recompute::None, 4), "sbh(66 + 9as/h)");
        assert_eq!(layer("tp=1", Recompute::Full, 4), "4sbh");
    }

    #[test]
    fn policies_are_named() {
        for policy in Recompute::ALL {
            assert_eq!(policy.name().parse(), Ok(*policy));
        }
        assert_eq!(
            "partial".parse::<Recompute>().unwrap_err().to_string(),
            "unknown recompute policy `partial`: use none, selective, full"
        );
    }
}
