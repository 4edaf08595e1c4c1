//! Sources in Burn's own dataloaders.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;

use crate::{Batch, HostBatch, Sample, Source};

/// A source as a Burn [`Dataset`], in the evaluation view: Burn asks for an item by its index alone, without an epoch
/// to draw an augmentation from. Use [`Loader`](crate::Loader) to augment.
pub struct BurnDataset(pub Arc<dyn Source>);

impl Dataset<Sample> for BurnDataset {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        self.0.sample(index, None).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Stacks samples of one size into a [`Batch`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleBatcher;

impl Batcher<Sample, Batch> for SampleBatcher {
    fn batch(&self, items: Vec<Sample>, device: &Device) -> Batch {
        let image_size = items
            .first()
            .map_or(0, |sample| (sample.pixels.len() / 3).isqrt());
        HostBatch {
            labels: items.iter().map(|sample| sample.label as i64).collect(),
            visited: items.len(),
            pixels: items.into_iter().flat_map(|sample| sample.pixels).collect(),
            image_size,
        }
        .into_device(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synthetic;
    use burn::data::dataloader::DataLoaderBuilder;

    #[test]
    fn burns_dataloader_runs_over_a_source() {
        let source: Arc<dyn Source> = Arc::new(Synthetic::new(7, 3, 8, 1));
        let loader = DataLoaderBuilder::new(SampleBatcher)
            .batch_size(4)
            .set_device(Device::flex())
            .build(BurnDataset(source.clone()));
        let batches: Vec<Batch> = loader.iter().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [4, 3]);
        assert_eq!(batches[1].images.dims(), [3, 3, 8, 8]);
        let first = source.sample(0, None).unwrap().pixels;
        assert_eq!(
            batches[0].images.to_data().try_to_vec::<f32>().unwrap()[..first.len()],
            first
        );
        assert!(BurnDataset(source).get(7).is_err());
    }
}
