use std::fs;

use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;
use crate::{Loader, LoaderConfig};

/// A folder with one image for every path; its red channel is the length of the path.
fn folder(images: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for image in images {
        let path = root.path().join(image);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        RgbImage::from_pixel(6, 5, Rgb([image.len() as u8, 0, 0]))
            .save(path)
            .unwrap();
    }
    root
}

fn open_error(root: &TempDir) -> DataError {
    ImageFolder::open(root.path(), 8).err().expect("an error")
}

/// Trap B80: the classes come from training, so a class that validation lacks shifts nothing.
#[test]
fn a_class_missing_from_validation_keeps_the_labels() {
    let root = folder(&[
        "train/a/1.png",
        "train/b/1.png",
        "train/c/1.png",
        "val/a/1.png",
        "val/c/1.png",
    ]);
    let (train, val) = ImageFolder::open(root.path(), 8).unwrap();
    assert_eq!(
        (train.classes(), val.classes()),
        (&["a", "b", "c"].map(String::from)[..], train.classes())
    );
    assert_eq!((train.len(), val.len()), (3, 2));
    assert_eq!(val.sample(1, None).unwrap().label, 2);
}

/// Trap B80: an empty class is named.
#[test]
fn an_empty_class_is_an_error() {
    for (filled, empty) in [("val", "train"), ("train", "val")] {
        let root = folder(&[
            "train/a/1.png",
            "val/a/1.png",
            &format!("{filled}/b/1.png"),
            "train/c/1.png",
        ]);
        let hole = root.path().join(empty).join("b");
        fs::create_dir_all(&hole).unwrap();
        fs::write(hole.join("notes.txt"), "no image").unwrap();
        assert!(matches!(open_error(&root), DataError::EmptyClass { path } if path == hole));
    }
}

#[test]
fn a_class_that_training_lacks_is_an_error() {
    let root = folder(&["train/a/1.png", "val/a/1.png", "val/z/1.png"]);
    let error = open_error(&root);
    assert!(matches!(&error, DataError::UnknownClass { path, .. } if path.ends_with("val/z")));
    assert_eq!(error.to_string().lines().count(), 1);
}

#[test]
fn missing_and_classless_folders_are_errors() {
    let root = folder(&["train/a/1.png"]);
    assert!(matches!(open_error(&root), DataError::Listing { path, .. } if path.ends_with("val")));
    fs::create_dir(root.path().join("val")).unwrap();
    assert!(matches!(open_error(&root), DataError::NoClasses { path } if path.ends_with("val")));
    assert!(matches!(
        ImageFolder::open(root.path(), 0),
        Err(DataError::ImageSize { .. })
    ));
}

#[test]
fn files_are_sorted_and_strangers_ignored() {
    let root = folder(&[
        "train/a/b.PNG",
        "train/a/a.JpEg",
        "train/a/c.webp",
        "train/a/d.bmp",
        "val/a/1.jpg",
    ]);
    for stranger in [
        "train/.hidden/x.png",
        "train/a/.hidden.png",
        "train/a/notes.txt",
        "train/readme.png",
    ] {
        let path = root.path().join(stranger);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let (train, _) = ImageFolder::open(root.path(), 8).unwrap();
    let names: Vec<PathBuf> = train
        .files
        .iter()
        .map(|file| PathBuf::from(&*file.name))
        .collect();
    assert_eq!(
        names,
        ["a.JpEg", "b.PNG", "c.webp", "d.bmp"].map(PathBuf::from)
    );
    assert_eq!(train.classes(), ["a"]);
    assert_eq!(
        train.name(),
        format!("image folder {}", root.path().join("train").display())
    );
}

#[test]
fn samples_are_normalised_and_follow_the_view() {
    let root = folder(&["train/a/1.png", "val/a/1.png"]);
    let (train, _) = ImageFolder::open(root.path(), 8).unwrap();
    let sample = train.sample(0, None).unwrap();
    assert_eq!(sample.pixels.len(), 3 * 8 * 8);
    let red = ("train/a/1.png".len() as f32 / 255.0 - 0.485) / 0.229;
    assert!(
        sample.pixels[..64]
            .iter()
            .all(|value| (value - red).abs() < 1e-5)
    );
    assert_eq!(
        train.sample(0, Some(3)).unwrap(),
        train.sample(0, Some(3)).unwrap()
    );
    assert!(matches!(
        train.sample(1, None),
        Err(DataError::Index { index: 1, .. })
    ));
}

/// Trap B79, through the whole chain: real files on a disk.
#[test]
fn broken_files_are_skipped_with_their_names() {
    let root = tempfile::tempdir().unwrap();
    let jpeg = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests-assets/exif-rotated.jpg");
    let jpeg = fs::read(jpeg).unwrap();
    for (file, content) in [
        ("train/a/1.jpg", &jpeg[..]),
        ("train/a/cut.jpg", &jpeg[..jpeg.len() - 54]),
        ("train/a/text.jpg", &b"this is no picture"[..]),
        ("val/a/1.jpg", &jpeg[..]),
    ] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let train: Arc<dyn Source> = Arc::new(ImageFolder::open(root.path(), 16).unwrap().0);
    let plain = LoaderConfig {
        batch: 2,
        workers: 1,
        seed: 0,
        shuffle: false,
        augment: true,
        strict: false,
    };
    let loader = Loader::new(train.clone(), plain.clone());
    let batches = loader.epoch(0, 0).map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(
        (batches.len(), batches[0].len(), batches[0].visited),
        (1, 1, 2)
    );
    let names = ["cut.jpg", "text.jpg"]
        .map(|name| root.path().join("train/a").join(name).display().to_string());
    assert_eq!(loader.unreadable(), names);

    let strict = Loader::new(
        train,
        LoaderConfig {
            strict: true,
            ..plain
        },
    );
    let error = strict.epoch(0, 0).next().unwrap().unwrap_err();
    assert!(error.to_string().contains(&names[0]), "{error}");
}
