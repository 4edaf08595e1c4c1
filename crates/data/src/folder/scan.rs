//! Which folders are classes, and which files are images.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::File;
use crate::DataError;

const EXTENSIONS: [&str; 5] = ["jpg", "jpeg", "png", "bmp", "webp"];

/// The class folders in `folder`, sorted; at least one.
pub(super) fn classes(folder: &Path) -> Result<Vec<String>, DataError> {
    let mut classes = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            classes.push(
                name.into_string()
                    .map_err(|_| DataError::ClassName { path })?,
            );
        }
    }
    if classes.is_empty() {
        return Err(DataError::NoClasses {
            path: folder.to_owned(),
        });
    }
    classes.sort_unstable();
    Ok(classes)
}

/// The image files in a class folder, sorted; at least one.
pub(super) fn images(folder: &Path, label: usize) -> Result<Vec<File>, DataError> {
    let mut names = names(folder)?;
    names.retain(|name| is_image(name));
    if names.is_empty() {
        return Err(DataError::EmptyClass {
            path: folder.to_owned(),
        });
    }
    names.sort_unstable();
    let file = |name: OsString| File {
        label,
        name: name.into_boxed_os_str(),
    };
    Ok(names.into_iter().map(file).collect())
}

/// What is in `folder`, hidden names left out.
fn names(folder: &Path) -> Result<Vec<OsString>, DataError> {
    let listing = |cause| DataError::Listing {
        path: folder.to_owned(),
        cause,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(listing)? {
        let name = entry.map_err(listing)?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    Ok(names)
}

fn is_image(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| {
        EXTENSIONS
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}
