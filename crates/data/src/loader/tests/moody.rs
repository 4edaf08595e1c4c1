use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{DataError, Sample, Source};

/// A source that misbehaves on chosen images, and counts the visits.
pub struct Moody {
    len: usize,
    unreadable: Vec<usize>,
    panics: Vec<usize>,
    pub visits: AtomicUsize,
    classes: Vec<String>,
}

pub fn moody(len: usize, unreadable: &[usize], panics: &[usize]) -> Arc<Moody> {
    Arc::new(Moody {
        len,
        unreadable: unreadable.to_vec(),
        panics: panics.to_vec(),
        visits: AtomicUsize::new(0),
        classes: vec!["only".into()],
    })
}

impl Source for Moody {
    fn name(&self) -> String {
        "moody".into()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn image_size(&self) -> usize {
        1
    }

    fn sample(&self, index: usize, _view: Option<u64>) -> Result<Sample, DataError> {
        self.visits.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics.contains(&index), "image {index} is cursed");
        if self.unreadable.contains(&index) {
            return Err(DataError::Unreadable {
                path: format!("{index}.jpg").into(),
                cause: "moody".into(),
            });
        }
        Ok(Sample {
            pixels: vec![index as f32; 3],
            label: index,
        })
    }
}
