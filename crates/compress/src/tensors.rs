//! Tensors on the host.

use burn::tensor::Tensor;

/// All elements, in order, as f32.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_to_vec().expect("f32, as converted")
}

/// Signal and noise, to be told in decibels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Sum of the squares of the right values.
    pub signal: f64,
    /// Sum of the squares of what was added to them.
    pub noise: f64,
}

impl Noise {
    /// Of pairs of a right value and what it became.
    pub fn of(pairs: impl Iterator<Item = (f32, f32)>) -> Self {
        let mut all = Self::default();
        for (right, got) in pairs {
            all.signal += f64::from(right).powi(2);
            all.noise += (f64::from(right) - f64::from(got)).powi(2);
        }
        all
    }

    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.signal += other.signal;
        self.noise += other.noise;
    }

    /// Signal-to-quantization-noise ratio `10 log10(signal / noise)`, dB; infinite without noise.
    pub fn sqnr(self) -> f64 {
        match self.noise > 0.0 {
            true => 10.0 * (self.signal / self.noise).log10(),
            false => f64::INFINITY,
        }
    }
}
