use crate::random::{mix, signed_unit};
use crate::{DataError, Sample, Source};

/// Images made of numbers alone, for measuring without a disk: noise over a faint pattern of the class, so that a
/// model can learn them. Values lie in -1.5..1.5 with mean 0; a view changes nothing.
pub struct Synthetic {
    len: usize,
    classes: Vec<String>,
    image_size: usize,
    seed: u64,
}

impl Synthetic {
    /// `len` images `[3, image_size, image_size]` of `classes` classes in turn; 0 classes are taken as 1.
    pub fn new(len: usize, classes: usize, image_size: usize, seed: u64) -> Synthetic {
        Synthetic {
            len,
            classes: (0..classes.max(1))
                .map(|class| format!("class {class}"))
                .collect(),
            image_size,
            seed,
        }
    }
}

impl Source for Synthetic {
    fn name(&self) -> String {
        format!("synthetic ({} images)", self.len)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn image_size(&self) -> usize {
        self.image_size
    }

    fn sample(&self, index: usize, _view: Option<u64>) -> Result<Sample, DataError> {
        if index >= self.len {
            return Err(DataError::Index {
                set: self.name(),
                index,
                len: self.len,
            });
        }
        let label = index % self.classes.len();
        let (patterns, noises) = (mix(self.seed, 0), mix(self.seed, 1));
        let (pattern, noise) = (mix(patterns, label as u64), mix(noises, index as u64));
        let values = 3 * self.image_size * self.image_size;
        let pixels = (0..values as u64)
            .map(|at| 0.5 * signed_unit(mix(pattern, at)) + signed_unit(mix(noise, at)))
            .collect();
        Ok(Sample { pixels, label })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_the_seed_and_the_class() {
        let set = Synthetic::new(10, 3, 8, 1);
        let sample = set.sample(4, None).unwrap();
        assert_eq!((sample.pixels.len(), sample.label), (3 * 8 * 8, 1));
        assert_eq!(sample, set.sample(4, Some(9)).unwrap());
        assert_ne!(sample.pixels, set.sample(7, None).unwrap().pixels);
        assert_ne!(sample, Synthetic::new(10, 3, 8, 2).sample(4, None).unwrap());
        assert!(sample.pixels.iter().all(|value| value.abs() <= 1.5));
    }

    #[test]
    fn there_is_nothing_after_the_end() {
        assert!(matches!(
            Synthetic::new(2, 0, 4, 0).sample(2, None),
            Err(DataError::Index { len: 2, .. })
        ));
        assert!(Synthetic::new(0, 2, 4, 0).is_empty());
    }
}
