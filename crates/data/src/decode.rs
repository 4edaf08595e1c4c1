use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use crate::DataError;

/// Most bytes that a file, or the image in it, may take: 178 million RGB pixels, where Pillow draws the line as well.
const MOST_BYTES: u64 = 512 << 20;

/// Reads any supported image as 8-bit RGB, upright.
///
/// The format is told by the content, not by the name. Grey is repeated, alpha dropped, palettes looked up, CMYK and
/// YCCK converted, 16 bits reduced to 8, and the EXIF orientation applied.
///
/// # Errors
///
/// [`DataError::Unreadable`] for whatever is wrong with the file: missing, no image, truncated, too large.
pub(crate) fn decode(path: &Path) -> Result<RgbImage, DataError> {
    read(path).map_err(|cause| DataError::Unreadable {
        path: path.to_owned(),
        cause: cause.to_string(),
    })
}

fn read(path: &Path) -> Result<RgbImage, Box<dyn Error>> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        return Err("the file is larger than 512 MiB".into());
    }
    let bytes = fs::read(path)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    let mut reader = ImageReader::new(Cursor::new(bytes.as_slice())).with_guessed_format()?;
    reader.limits(limits);

    // The decoder fills what is missing with grey and says nothing.
    if reader.format() == Some(ImageFormat::Jpeg) && !jpeg_is_complete(&bytes) {
        return Err("the JPEG is truncated".into());
    }
    let mut decoder = reader.into_decoder()?;
    // Not every decoder holds itself to its limits, so ask before the pixels are allocated.
    if decoder.total_bytes() > MOST_BYTES {
        let (width, height) = decoder.dimensions();
        return Err(format!("{width}x{height} pixels take more than 512 MiB").into());
    }
    // A broken EXIF block is no reason to lose the picture.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    Ok(image.into_rgb8())
}

/// Whether the JPEG's markers lead to an end-of-image marker; bytes after that one are allowed, cameras leave some.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(marker) = rest
            .iter()
            .position(|&byte| byte == 0xFF)
            .map(|found| at + found)
        else {
            return false;
        };
        at = match bytes.get(marker + 1) {
            None => return false,
            Some(0xD9) => return true,
            // Padding in front of a marker.
            Some(0xFF) => marker + 1,
            // Pixel data (a literal FF, a restart) and start of image: no length follows.
            Some(0x00 | 0x01 | 0xD0..=0xD8) => marker + 2,
            // A segment with its length, which may well hold a thumbnail with an end of its own.
            Some(_) => match bytes.get(marker + 2..marker + 4) {
                Some(length) => {
                    marker + 2 + usize::from(u16::from_be_bytes([length[0], length[1]]))
                }
                None => return false,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayAlphaImage, GrayImage, ImageBuffer, Luma, LumaA, Rgb, Rgba, RgbaImage};

    fn asset(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests-assets")
            .join(name)
    }

    /// Writes `image` as a PNG and reads its pixel 1, 1.
    fn through_png(image: impl Into<DynamicImage>) -> [u8; 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.png");
        image.into().save(&path).unwrap();
        decode(&path).unwrap().get_pixel(1, 1).0
    }

    fn assert_near(got: [u8; 3], expected: [u8; 3]) {
        assert!(
            got.iter().zip(expected).all(|(&a, b)| a.abs_diff(b) <= 3),
            "{got:?} instead of {expected:?}"
        );
    }

    #[test]
    fn every_kind_of_png_becomes_rgb() {
        assert_eq!(
            through_png(GrayImage::from_pixel(4, 4, Luma([90]))),
            [90; 3]
        );
        assert_eq!(
            through_png(GrayAlphaImage::from_pixel(4, 4, LumaA([90, 7]))),
            [90; 3]
        );
        assert_eq!(
            through_png(RgbaImage::from_pixel(4, 4, Rgba([1, 2, 3, 0]))),
            [1, 2, 3]
        );
        let deep = ImageBuffer::from_pixel(4, 4, Rgb([65_535u16, 257 * 100, 0]));
        assert_eq!(through_png(DynamicImage::ImageRgb16(deep)), [255, 100, 0]);
        let deep = ImageBuffer::from_pixel(4, 4, Luma([257u16 * 40]));
        assert_eq!(through_png(DynamicImage::ImageLuma16(deep)), [40; 3]);

        let palette = decode(&asset("palette.png")).unwrap();
        assert_eq!(
            (palette.get_pixel(2, 2).0, palette.get_pixel(12, 2).0),
            ([10, 200, 60], [250, 40, 90])
        );
    }

    /// Trap B76; the expected values are Pillow's.
    #[test]
    fn cmyk_and_ycck_jpegs_become_rgb() {
        let cmyk = decode(&asset("cmyk.jpg")).unwrap();
        assert_near(cmyk.get_pixel(4, 4).0, [215, 46, 131]);
        assert_near(cmyk.get_pixel(28, 4).0, [105, 255, 255]);

        // The same data, declared as YCCK in the Adobe segment.
        let mut bytes = fs::read(asset("cmyk.jpg")).unwrap();
        let adobe = bytes
            .windows(5)
            .position(|window| window == b"Adobe")
            .unwrap();
        bytes[adobe + 11] = 2;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ycck.jpg");
        fs::write(&path, bytes).unwrap();
        let ycck = decode(&path).unwrap();
        assert_near(ycck.get_pixel(4, 4).0, [0, 0, 109]);
        assert_near(ycck.get_pixel(28, 4).0, [0, 255, 0]);
    }

    #[test]
    fn exif_orientation_is_applied() {
        let image = decode(&asset("exif-rotated.jpg")).unwrap();
        assert_eq!(image.dimensions(), (24, 48));
        assert_near(image.get_pixel(12, 4).0, [220, 20, 20]);
        assert_near(image.get_pixel(12, 44).0, [21, 20, 220]);
    }

    /// Trap B79: cut anywhere, a JPEG is an error that names the file, never a grey picture and never a panic.
    #[test]
    fn truncated_jpegs_are_unreadable() {
        let whole = fs::read(asset("exif-rotated.jpg")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.jpg");
        for cut in [1, 2, 54, 200, whole.len() - 3, whole.len()] {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let error = decode(&path).unwrap_err().to_string();
            assert!(error.contains("cut.jpg"), "{error}");
        }
        fs::write(&path, [&whole[..], &b"trailing bytes"[..]].concat()).unwrap();
        assert!(decode(&path).is_ok());
    }

    #[test]
    fn text_bombs_and_missing_files_are_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.jpg");
        fs::write(&text, "this is no picture").unwrap();
        for path in [text, asset("bomb.png"), folder.path().join("missing.png")] {
            let error = decode(&path).unwrap_err();
            assert!(matches!(&error, DataError::Unreadable { path: named, .. } if *named == path));
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
