//! Closed formulas for Transformers that are too large to build here, or not ours.
//!
//! They say what a device of the **first pipeline stage** needs in a training step, row by row, in
//! bytes. That is the most loaded stage, unless full recomputation leaves less in it than the
//! logits take in the last.
//!
//! | row | formula | source |
//! |---|---|---|
//! | parameters, gradients, optimizer state | 2 + 2 + 12 bytes per parameter, divided by ZeRO | Rajbhandari et al. 2020, arXiv:1910.02054 |
//! | activations | `sbh(34 + 5as/h)` per layer, less when parallel or recomputed | Korthikanti et al. 2022, arXiv:2205.05198 |
//! | temporaries | the one layer that is recomputed | the same |
//!
//! with the number of parameters after Narayanan et al. 2021, arXiv:2104.04473. The other rows are
//! `None`: no formula knows them. The activations are those of a GPT with dropout, a 4x GELU MLP
//! and attention that stores its scores; with fused attention use [`Recompute::Selective`].
//!
//! Each [`Figure`] carries its formula as text, and that text is what is evaluated:
//! [`Estimate::explain`] can't disagree with the numbers.
//!
//! ```
//! use leanburn_memory::formulas::{ModelStates, Recompute, Setup};
//!
//! let setup = Setup {
//!     transformer: "layers=96,hidden=12288,heads=96,seq=2048,vocab=51200".parse()?,
//!     parallel: "tp=8,pp=8,sp".parse()?,
//!     recompute: Recompute::Selective,
//!     batch: 1,
//!     states: ModelStates::default(),
//! };
//! let estimate = setup.estimate()?;
//! for line in estimate.explain() {
//!     println!("{line}");
//! }
//! assert_eq!(estimate.total().to_string(), "51.5 GiB");
//! # Ok::<(), leanburn_memory::formulas::FormulaError>(())
//! ```

mod activations;
mod conventions;
mod error;
mod estimate;
mod figure;
mod fraction;
mod notation;
mod parallel;
mod parse;
mod reader;
mod states;
#[cfg(test)]
mod tests;
mod transformer;

use activations::Activations;
use error::in_range;
use transformer::{first_stage, whole_model};

use crate::Row;

pub use activations::Recompute;
pub use conventions::{Convention, Optimizer, Zero};
pub use error::FormulaError;
pub use estimate::Estimate;
pub use figure::{Amount, Figure};
pub use notation::Formula;
pub use parallel::Parallel;
pub use states::ModelStates;
pub use transformer::Transformer;

/// A training step of a Transformer, as far as the formulas know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The model.
    pub transformer: Transformer,
    /// How it is spread over devices.
    pub parallel: Parallel,
    /// What the backward computes again.
    pub recompute: Recompute,
    /// Sequences in a micro-batch on one device, `b` in the formulas.
    pub batch: u64,
    /// Bytes per parameter, and what ZeRO divides.
    pub states: ModelStates,
}

impl Setup {
    /// What a device of the first pipeline stage needs.
    ///
    /// # Errors
    ///
    /// [`FormulaError`] where a size is out of range, the model can't be split as asked, or a
    /// figure exceeds 64 bits.
    pub fn estimate(&self) -> Result<Estimate, FormulaError> {
        self.transformer.check()?;
        self.parallel.check(&self.transformer)?;
        in_range("batch", self.batch)?;

        let letters = self.parallel.letters(self.transformer.letters());
        let mut estimate = Estimate::new(letters.with('b', self.batch, "batch"));
        self.add_states(&mut estimate)?;
        self.add_activations(&mut estimate)?;
        Ok(estimate)
    }

    fn add_states(&self, estimate: &mut Estimate) -> Result<(), FormulaError> {
        let count = "Narayanan et al. 2021, eq. 2, and 2h for the last norm".to_owned();
        estimate.count("parameters of the model", (whole_model(), count))?;
        let share = (
            first_stage(&self.parallel),
            "the same, split as in Megatron-LM theoretical_memory_usage.py".to_owned(),
        );
        let here = estimate.count("parameters on the device", share)?;
        estimate.define('P', here, "parameters on the device");

        for (row, formula, source) in self.states.formulas() {
            estimate.size(row.name(), Some(row), (formula, source))?;
        }
        // Trap B75: more tensor-parallel devices are no more replicas.
        if self.states.zero > Zero::Stage0 && self.parallel.data == 1 {
            estimate
                .note("ZeRO divides by the data-parallel degree only: with dp=1 it saves nothing");
        }
        Ok(())
    }

    fn add_activations(&self, estimate: &mut Estimate) -> Result<(), FormulaError> {
        let activations = Activations {
            parallel: &self.parallel,
            recompute: self.recompute,
            element: self.states.convention.element(),
        };
        let row = Some(Row::Activations);
        estimate.size("activations per layer", None, activations.per_layer())?;
        estimate.size("activations of all layers", row, activations.layers())?;
        estimate.size("activations around the layers", row, activations.around())?;
        if let Some(recomputed) = activations.recomputed() {
            estimate.size("layer being recomputed", Some(Row::Temporaries), recomputed)?;
            estimate.note("not included: temporaries other than the layer being recomputed");
        }
        Ok(())
    }
}
