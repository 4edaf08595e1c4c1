//! Model states: bytes per parameter, and what ZeRO divides.

use super::conventions::{Convention, Optimizer, Zero};
use super::error::{FormulaError, in_range};
use super::notation::{Formula, Letters};
use crate::{Bytes, Row};

/// Parameters, gradients and optimizer state, the same for any model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelStates {
    /// Which copies are counted.
    pub convention: Convention,
    /// What the optimizer keeps.
    pub optimizer: Optimizer,
    /// What is divided among the replicas.
    pub zero: Zero,
}

impl ModelStates {
    /// Bytes per parameter before ZeRO: 16 for Adam after [`Convention::Zero`].
    pub fn bytes_per_parameter(&self) -> u64 {
        let [parameters, gradients, optimizer] = self.parts();
        parameters.1 + gradients.1 + optimizer.1
    }

    /// What one device holds of `parameters` parameters kept by each of `data_parallel` replicas.
    ///
    /// # Errors
    ///
    /// [`FormulaError`] where the replicas are out of range or the size exceeds 64 bits.
    pub fn per_device(&self, parameters: u64, data_parallel: u64) -> Result<Bytes, FormulaError> {
        in_range("dp", data_parallel)?;
        let letters =
            Letters::default()
                .with('P', parameters, "parameters")
                .with('d', data_parallel, "data");
        let parts = self.formulas();
        let mut sizes = parts.iter().map(|(_, formula, _)| formula.value(&letters));
        let total = sizes.try_fold(0u64, |total, size| total.checked_add(size?));
        total.map(Bytes).ok_or_else(|| FormulaError::TooLarge {
            figure: "the size of the model states".to_owned(),
        })
    }

    /// Row, formula and source of each part, per device: `P` parameters, `d` replicas.
    pub(super) fn formulas(&self) -> [(Row, Formula, String); 3] {
        self.parts().map(|(row, bytes, divided_from)| {
            let mut source = self.convention.source().to_owned();
            if row == Row::OptimizerState {
                source += &self.optimizer_parts();
            }
            let mut text = format!("{bytes}P");
            if self.zero >= divided_from {
                text += "/d";
                source += ", divided as in Rajbhandari et al. 2020, section 5";
            }
            (row, Formula::new(text), source)
        })
    }

    /// `: 4 for fp32 parameters, 8 for adam`
    fn optimizer_parts(&self) -> String {
        let (moments, optimizer) = (self.optimizer.moments(), self.optimizer);
        match self.convention.fp32_copy() {
            0 => format!(": {moments} for {optimizer}"),
            copy => format!(": {copy} for fp32 parameters, {moments} for {optimizer}"),
        }
    }

    /// Row, bytes per parameter, and the first stage that divides them.
    fn parts(&self) -> [(Row, u64, Zero); 3] {
        let (parameter, gradient) = self.convention.parameter_and_gradient();
        let optimizer = self.convention.fp32_copy() + self.optimizer.moments();
        [
            (Row::Parameters, parameter, Zero::Stage3),
            (Row::Gradients, gradient, Zero::Stage2),
            (Row::OptimizerState, optimizer, Zero::Stage1),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(convention: Convention, optimizer: Optimizer) -> u64 {
        let states = ModelStates {
            convention,
            optimizer,
            zero: Zero::Stage0,
        };
        states.bytes_per_parameter()
    }

    #[test]
    fn the_published_bytes_per_parameter() {
        use Optimizer::{Adam, Adam8Bit, Lion, Sgd, SgdMomentum};
        assert_eq!(bytes(Convention::Zero, Adam), 16);
        assert_eq!(bytes(Convention::Megatron, Adam), 18);
        assert_eq!(bytes(Convention::HuggingFace, Adam), 18);
        assert_eq!(bytes(Convention::Fp32, Adam), 16);
        assert_eq!(bytes(Convention::Fp32, SgdMomentum), 12);
        assert_eq!(bytes(Convention::Fp32, Lion), 12);
        assert_eq!(bytes(Convention::Fp32, Sgd), 8);
        assert_eq!(bytes(Convention::Zero, Adam8Bit), 10);
    }

    fn bytes_at(zero: Zero, parameters: u64, data_parallel: u64) -> u64 {
        let states = ModelStates {
            zero,
            ..ModelStates::default()
        };
        states.per_device(parameters, data_parallel).unwrap().0
    }

    // Rajbhandari et al. 2020, figure 1 and table 1, in tenths of a decimal GB (trap B31).
    #[test]
    fn zeros_published_gigabytes() {
        for (parameters, data_parallel, tenths) in [
            (7_500_000_000, 64, [1200, 314, 166, 19]),
            (7_500_000_000, 16, [1200, 356, 216, 75]),
            (7_500_000_000, 4, [1200, 525, 413, 300]),
            (128_000_000_000, 4, [20480, 8960, 7040, 5120]),
        ] {
            for (zero, published) in Zero::ALL.iter().zip(tenths) {
                let bytes = bytes_at(*zero, parameters, data_parallel);
                assert!(bytes.abs_diff(published * 100_000_000) <= 50_000_000);
            }
        }
        let exact = |zero: &Zero| bytes_at(*zero, 7_500_000_000, 64);
        assert_eq!(
            Zero::ALL.iter().map(exact).collect::<Vec<_>>(),
            [
                120_000_000_000,
                31_406_250_000,
                16_640_625_000,
                1_875_000_000
            ]
        );
    }

    // Its `dist_optimizer.md`: 6 + 12/d and 8 + 8/d bytes.
    #[test]
    fn megatrons_distributed_optimizer_is_stage_1() {
        for (convention, bytes) in [(Convention::Megatron, 750), (Convention::Fp32, 900)] {
            let states = ModelStates {
                convention,
                zero: Zero::Stage1,
                ..ModelStates::default()
            };
            assert_eq!(states.per_device(100, 8), Ok(Bytes(bytes)));
        }
    }

    // Trap B75.
    #[test]
    fn zero_saves_nothing_without_replicas() {
        assert_eq!(bytes_at(Zero::Stage3, 1000, 1), 16_000);
        let states = ModelStates::default();
        assert!(states.per_device(1000, 0).is_err());
        assert!(states.per_device(u64::MAX, 2).is_err());
    }

    #[test]
    fn sources_add_up_to_what_is_counted() {
        let [_, _, (_, formula, source)] = ModelStates::default().formulas();
        assert_eq!(formula.to_string(), "12P");
        assert!(
            source.ends_with(": 4 for fp32 parameters, 8 for adam"),
            "{source}"
        );
    }
}
