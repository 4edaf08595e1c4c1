use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// One batch on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// `[batch, 3, image_size, image_size]`, row-major, normalised.
    pub pixels: Vec<f32>,
    /// `[batch]`, indices into the source's classes.
    pub labels: Vec<i64>,
    /// Height and width, in pixels.
    pub image_size: usize,
    /// How many samples of the epoch's order this batch used up: its own and the unreadable ones skipped on the way.
    pub visited: usize,
}

impl HostBatch {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Moves the batch to `device`; the pixels are handed over, not copied on the host.
    pub fn into_device(self, device: &Device) -> Batch {
        let (len, size) = (self.len(), self.image_size);
        let pixels = TensorData::new(self.pixels, [len, 3, size, size]);
        Batch {
            // f32 whatever the device's default float: a precision policy casts later, knowingly.
            images: Tensor::from_data(pixels, (device, DType::F32)),
            targets: Tensor::from_data(TensorData::new(self.labels, [len]), device),
        }
    }
}

/// One batch on a device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// `[batch, 3, size, size]`, f32.
    pub images: Tensor<4>,
    /// `[batch]`, class indices.
    pub targets: Tensor<1, Int>,
}

impl Batch {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.targets.dims()[0]
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_its_values_on_the_device() {
        let host = HostBatch {
            pixels: (0..24).map(|value| value as f32).collect(),
            labels: vec![3, 1],
            image_size: 2,
            visited: 2,
        };
        let batch = host.clone().into_device(&Device::flex());
        assert_eq!((batch.len(), batch.images.dims()), (2, [2, 3, 2, 2]));
        assert_eq!(batch.images.dtype(), DType::F32);
        assert_eq!(
            batch.images.into_data().try_into_vec::<f32>().unwrap(),
            host.pixels
        );
        assert_eq!(
            batch.targets.into_data().iter::<i64>().collect::<Vec<_>>(),
            host.labels
        );
    }
}
