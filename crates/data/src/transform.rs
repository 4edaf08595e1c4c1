//! From a decoded image to a sample, as torchvision does it for ImageNet.

use image::RgbImage;
use image::imageops::{FilterType, crop_imm, flip_horizontal_in_place, resize};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// ImageNet's mean and standard deviation per channel, as fractions of white.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const STD: [f32; 3] = [0.229, 0.224, 0.225];
/// Share of the picture that a training crop covers.
const SCALE: (f32, f32) = (0.08, 1.0);
/// Width over height of a training crop.
const RATIO: (f32, f32) = (3.0 / 4.0, 4.0 / 3.0);
const TRIES: usize = 10;
/// Longest side over shortest beyond which a picture's ends are cut off before resizing: a 1 x 60,000 strip would
/// otherwise become 256 x 15,000,000.
const MOST_ELONGATED: u32 = 8;

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crop {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

impl Crop {
    /// The middle `width` x `height` of a `from_width` x `from_height` image.
    fn centre(from_width: u32, from_height: u32, width: u32, height: u32) -> Crop {
        let (x, y) = ((from_width - width) / 2, (from_height - height) / 2);
        Crop {
            x,
            y,
            width,
            height,
        }
    }

    fn resized(self, image: &RgbImage, width: u32, height: u32) -> RgbImage {
        let part = crop_imm(image, self.x, self.y, self.width, self.height);
        // Triangle is bilinear, and antialiased where it shrinks.
        resize(&*part, width, height, FilterType::Triangle)
    }
}

/// The short side resized to `size * 256 / 224`, then the middle `size` x `size`.
pub(crate) fn evaluation(image: &RgbImage, size: u32) -> RgbImage {
    let (width, height) = image.dimensions();
    let short = width.min(height);
    let most = short.saturating_mul(MOST_ELONGATED);
    let picture = Crop::centre(width, height, width.min(most), height.min(most));

    let target = (f64::from(size) * 256.0 / 224.0).round();
    let scaled = |side: u32| (f64::from(side) * target / f64::from(short)) as u32;
    let (width, height) = (
        scaled(picture.width).max(size),
        scaled(picture.height).max(size),
    );
    let resized = picture.resized(image, width, height);
    let middle = Crop::centre(width, height, size, size);
    crop_imm(&resized, middle.x, middle.y, size, size).to_image()
}

/// A random crop resized to `size` x `size`, mirrored half of the time; both drawn from `view`.
pub(crate) fn training(image: &RgbImage, size: u32, view: u64) -> RgbImage {
    let mut random = StdRng::seed_from_u64(view);
    let (width, height) = image.dimensions();
    let mut out = random_crop(width, height, &mut random).resized(image, size, size);
    if random.random() {
        flip_horizontal_in_place(&mut out);
    }
    out
}

/// torchvision's `RandomResizedCrop.get_params`.
fn random_crop(width: u32, height: u32, random: &mut StdRng) -> Crop {
    let area = width as f32 * height as f32;
    for _ in 0..TRIES {
        let target = area * random.random_range(SCALE.0..=SCALE.1);
        let ratio = random.random_range(RATIO.0.ln()..=RATIO.1.ln()).exp();
        let (w, h) = (
            (target * ratio).sqrt().round() as u32,
            (target / ratio).sqrt().round() as u32,
        );
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            let (x, y) = (
                random.random_range(0..=width - w),
                random.random_range(0..=height - h),
            );
            return Crop {
                x,
                y,
                width: w,
                height: h,
            };
        }
    }
    // Too elongated for any: the middle, as much of it as the ratio allows.
    let w = width.min((height as f32 * RATIO.1).round() as u32);
    let h = height.min((width as f32 / RATIO.0).round() as u32);
    Crop::centre(width, height, w, h)
}

/// `[3, height, width]`, normalised with ImageNet's statistics.
pub(crate) fn normalise(image: &RgbImage) -> Vec<f32> {
    let channel = |c: usize| {
        image
            .pixels()
            .map(move |pixel| (f32::from(pixel[c]) / 255.0 - MEAN[c]) / STD[c])
    };
    (0..3).flat_map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// Red grows to the right and green downwards.
    fn gradient(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| {
            Rgb([(x * 255 / width) as u8, (y * 255 / height) as u8, 0])
        })
    }

    #[test]
    fn evaluation_takes_the_middle() {
        // 512 x 256 -> 512 x 256 -> the middle 224 x 224: columns 144..368, rows 16..240.
        let image = gradient(512, 256);
        let out = evaluation(&image, 224);
        assert_eq!(out.dimensions(), (224, 224));
        assert_eq!(out.get_pixel(0, 0), image.get_pixel(144, 16));
        assert_eq!(out.get_pixel(223, 223), image.get_pixel(367, 239));
    }

    #[test]
    fn tiny_and_elongated_pictures_work() {
        for (width, height) in [(1, 1), (3, 2), (1, 60_000), (60_000, 1), (7, 500)] {
            let image = RgbImage::from_pixel(width, height, Rgb([9, 8, 7]));
            for size in [1, 8, 33] {
                assert_eq!(
                    evaluation(&image, size),
                    RgbImage::from_pixel(size, size, Rgb([9, 8, 7]))
                );
                assert_eq!(
                    training(&image, size, 5),
                    RgbImage::from_pixel(size, size, Rgb([9, 8, 7]))
                );
            }
        }
    }

    #[test]
    fn training_crops_follow_the_seed_and_stay_inside() {
        let mut random = StdRng::seed_from_u64(1);
        let mut areas = Vec::new();
        for _ in 0..1000 {
            let Crop {
                x,
                y,
                width,
                height,
            } = random_crop(200, 100, &mut random);
            assert!(x + width <= 200 && y + height <= 100);
            assert!((0.7..1.4).contains(&(width as f32 / height as f32)));
            areas.push(width * height);
        }
        assert!(areas.iter().min().unwrap() < &2200 && areas.iter().max().unwrap() > &11_000);

        let image = gradient(64, 64);
        assert_eq!(training(&image, 16, 3), training(&image, 16, 3));
        assert_ne!(training(&image, 16, 3), training(&image, 16, 4));
        // Red falls to the right where the crop is mirrored.
        let mirrored = |view| {
            let out = training(&image, 16, view);
            out.get_pixel(0, 8)[0] > out.get_pixel(15, 8)[0]
        };
        assert!((350..650).contains(&(0..1000).filter(|&view| mirrored(view)).count()));
    }

    #[test]
    fn normalising_splits_the_channels() {
        let pixels = normalise(&RgbImage::from_pixel(2, 1, Rgb([255, 0, 255])));
        let expected: [f32; 3] = [(1.0 - 0.485) / 0.229, -0.456 / 0.224, (1.0 - 0.406) / 0.225];
        for (got, expected) in pixels.chunks(2).zip(expected) {
            assert!(got.iter().all(|value| (value - expected).abs() < 1e-6));
        }
    }
}
