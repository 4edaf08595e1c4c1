#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::Read;

use flate2::read::GzDecoder;
use image::imageops::{FilterType, resize};
use image::{ImageBuffer, Luma};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::random::mix;
use crate::{DataError, Sample, Source, Split};

/// Height and width of the originals.
const SIDE: usize = 8;
/// The whitest value of the originals.
const WHITE: f32 = 16.0;
/// Mean and standard deviation of the training split's pixels, as fractions of white.
const MEAN: f32 = 0.305_214_85;
const STD: f32 = 0.376_321_52;
/// The line number of a validation image is a multiple of this.
const VAL_EVERY: usize = 5;
/// All images.
const ROWS: usize = 1797;

/// 1,797 handwritten digits that ship with the crate: no download, and hard enough to see a training run work.
///
/// E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI, 1998 (CC BY 4.0, see `assets/`).
///
/// Every fifth image (0, 5, 10, ...) is validation, 360 in all, and the other 1,437 are training; a seed draws 360
/// others.
/// The 8x8 originals are enlarged bilinearly; the three channels are equal; mean 0 and standard deviation 1 refer to
/// the original pixels of the training split. A training view is shifted by up to 1/8 of the size, one original pixel,
/// each way; nothing is mirrored, since a mirrored digit is another sign.
pub struct Digits {
    images: Vec<[u8; SIDE * SIDE]>,
    labels: Vec<usize>,
    classes: Vec<String>,
    image_size: usize,
}

impl Digits {
    /// One split of the digits as images `[3, image_size, image_size]`.
    ///
    /// # Errors
    ///
    /// [`DataError::ImageSize`] for an `image_size` below 8.
    pub fn load(split: Split, image_size: usize) -> Result<Digits, DataError> {
        let val = |row: usize| row.is_multiple_of(VAL_EVERY);
        Self::read(split, image_size, val)
    }

    /// The same of another split: 360 images drawn by a seed are validation.
    pub fn load_drawn(split: Split, image_size: usize, seed: u64) -> Result<Digits, DataError> {
        let mut rows: Vec<usize> = (0..ROWS).collect();
        rows.shuffle(&mut StdRng::seed_from_u64(mix(seed, 2)));
        let drawn: HashSet<usize> = rows.into_iter().take(ROWS.div_ceil(VAL_EVERY)).collect();
        Self::read(split, image_size, |row| drawn.contains(&row))
    }

    fn read(
        split: Split,
        image_size: usize,
        val: impl Fn(usize) -> bool,
    ) -> Result<Digits, DataError> {
        if image_size < SIDE {
            return Err(DataError::ImageSize {
                set: "digits",
                size: image_size,
                least: SIDE,
            });
        }
        let mut text = String::new();
        GzDecoder::new(include_bytes!("../assets/digits.csv.gz").as_slice())
            .read_to_string(&mut text)
            .map_err(|cause| damaged(cause.to_string()))?;

        let mut digits = Digits {
            images: Vec::new(),
            labels: Vec::new(),
            classes: (0..10).map(|digit| digit.to_string()).collect(),
            image_size,
        };
        for (row, line) in text.lines().enumerate() {
            let (image, label) = parse(line).ok_or_else(|| damaged(format!("line {}", row + 1)))?;
            if val(row) == (split == Split::Val) {
                digits.images.push(image);
                digits.labels.push(label);
            }
        }
        Ok(digits)
    }

    /// The image enlarged to `[image_size, image_size]`, as fractions of white.
    fn enlarged(&self, index: usize) -> Vec<f32> {
        let (side, size) = (SIDE as u32, self.image_size as u32);
        let original = self.images[index];
        // 0..1, because `resize` clamps floats to that range.
        let original = ImageBuffer::from_fn(side, side, |x, y| {
            Luma([f32::from(original[(y * side + x) as usize]) / WHITE])
        });
        resize(&original, size, size, FilterType::Triangle).into_raw()
    }
}

impl Source for Digits {
    fn name(&self) -> String {
        format!("digits ({} images)", self.len())
    }

    fn len(&self) -> usize {
        self.images.len()
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn image_size(&self) -> usize {
        self.image_size
    }

    fn sample(&self, index: usize, view: Option<u64>) -> Result<Sample, DataError> {
        if index >= self.len() {
            return Err(DataError::Index {
                set: self.name(),
                index,
                len: self.len(),
            });
        }
        let mut plane = self.enlarged(index);
        if let Some(view) = view {
            let mut random = StdRng::seed_from_u64(view);
            let reach = (self.image_size / SIDE) as i32;
            let [right, down] = [(); 2].map(|()| random.random_range(-reach..=reach) as isize);
            plane = shifted(&plane, self.image_size, right, down);
        }
        for value in &mut plane {
            *value = (*value - MEAN) / STD;
        }
        Ok(Sample {
            pixels: plane.repeat(3),
            label: self.labels[index],
        })
    }
}

/// 64 pixel values 0..=16 and a label 0..=9, separated by commas.
fn parse(line: &str) -> Option<([u8; SIDE * SIDE], usize)> {
    let values: Vec<u8> = line
        .split(',')
        .map(|value| value.parse().ok())
        .collect::<Option<_>>()?;
    let (&label, pixels) = values.split_last()?;
    let pixels: [u8; SIDE * SIDE] = pixels.try_into().ok()?;
    let valid = label < 10 && pixels.iter().all(|&value| f32::from(value) <= WHITE);
    valid.then_some((pixels, label.into()))
}

/// `plane`, `[size, size]`, moved right and down; what comes in from outside is background (0).
fn shifted(plane: &[f32], size: usize, right: isize, down: isize) -> Vec<f32> {
    let from = |at: usize, by: isize| at.checked_add_signed(-by).filter(|&at| at < size);
    let mut out = vec![0.0; plane.len()];
    for y in 0..size {
        for x in 0..size {
            if let (Some(from_y), Some(from_x)) = (from(y, down), from(x, right)) {
                out[y * size + x] = plane[from_y * size + from_x];
            }
        }
    }
    out
}

fn damaged(cause: String) -> DataError {
    DataError::DamagedDigits { cause }
}
