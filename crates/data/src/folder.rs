mod scan;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decode::decode;
use crate::transform::{evaluation, normalise, training};
use crate::{DataError, Sample, Source};

/// One split of an image folder: `ROOT/train/<class>/*` or `ROOT/val/<class>/*`, with the extensions `jpg`, `jpeg`,
/// `png`, `bmp` and `webp` in any case. Names that begin with a dot are ignored.
///
/// Files are decoded when they are asked for; only their names are kept. Whatever the file holds (grey, alpha,
/// palette, CMYK, 16 bits, EXIF orientation), samples are upright RGB with ImageNet's normalisation. A training view
/// is a random crop (8 % to 100 % of the area, ratio 3/4 to 4/3) mirrored half of the time; the evaluation transform
/// resizes the short side to 256/224 of the size and takes the middle. Both are torchvision's.
pub struct ImageFolder {
    folder: PathBuf,
    files: Vec<File>,
    classes: Arc<[String]>,
    image_size: usize,
}

/// A file name, without the folders that all files of a class share: ImageNet has 1.3 million of them.
struct File {
    label: usize,
    name: Box<OsStr>,
}

impl ImageFolder {
    /// The classes alone: the folders of `root/train`, sorted by name.
    ///
    /// # Errors
    ///
    /// A folder that cannot be listed or has no classes.
    pub fn classes(root: &Path) -> Result<Vec<String>, DataError> {
        scan::classes(&root.join("train"))
    }

    /// Lists `root/train` and `root/val`, in this order: (training, validation).
    ///
    /// The classes are the folders of `root/train`, sorted by name; the validation split shares them, so that a class
    /// it lacks shifts no label.
    ///
    /// # Errors
    ///
    /// A folder that cannot be listed, has no classes, or has an empty class; a validation class that training lacks;
    /// an `image_size` of 0. Files are not opened here: see [`DataError::Unreadable`].
    pub fn open(root: &Path, image_size: usize) -> Result<(ImageFolder, ImageFolder), DataError> {
        if image_size == 0 {
            return Err(DataError::ImageSize {
                set: "an image folder",
                size: 0,
                least: 1,
            });
        }
        let (train, val) = (root.join("train"), root.join("val"));
        let classes: Arc<[String]> = scan::classes(&train)?.into();
        let split = |folder: PathBuf, files| ImageFolder {
            folder,
            files,
            classes: classes.clone(),
            image_size,
        };

        let mut train_files = Vec::new();
        for (label, class) in classes.iter().enumerate() {
            train_files.extend(scan::images(&train.join(class), label)?);
        }
        let mut val_files = Vec::new();
        for class in scan::classes(&val)? {
            let path = val.join(&class);
            // The list is sorted.
            let Ok(label) = classes.binary_search(&class) else {
                return Err(DataError::UnknownClass { path, train });
            };
            val_files.extend(scan::images(&path, label)?);
        }
        Ok((split(train.clone(), train_files), split(val, val_files)))
    }
}

impl Source for ImageFolder {
    fn name(&self) -> String {
        format!("image folder {}", self.folder.display())
    }

    fn len(&self) -> usize {
        self.files.len()
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn image_size(&self) -> usize {
        self.image_size
    }

    fn sample(&self, index: usize, view: Option<u64>) -> Result<Sample, DataError> {
        let File { label, name } = self.files.get(index).ok_or_else(|| DataError::Index {
            set: self.name(),
            index,
            len: self.len(),
        })?;
        let image = decode(&self.folder.join(&self.classes[*label]).join(name.as_ref()))?;
        let size = self.image_size as u32;
        let image = match view {
            Some(view) => training(&image, size, view),
            None => evaluation(&image, size),
        };
        Ok(Sample {
            pixels: normalise(&image),
            label: *label,
        })
    }
}
