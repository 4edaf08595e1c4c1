//! Images larger than memory: the trunk is a convolution, so a tile and the pixels that its outputs see
//! give what the whole image would give there.

use std::ops::Range;

use burn::tensor::{FloatDType, Tensor};

use super::{ResNet, Stem};

/// Why an image cannot be taken in tiles.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TileError {
    /// A tile must begin on the grid of the outputs.
    #[error(
        "tile size {size} must be a multiple of {stride} pixels, the step of the network's outputs"
    )]
    Size {
        /// As asked.
        size: usize,
        /// Pixels from output to output.
        stride: usize,
    },
    /// Batch statistics of a tile are not those of the image.
    #[error("the model is in training: norms would see tiles; take model.valid()")]
    Training,
    /// There is nothing to look at.
    #[error("the image is empty: {0} x {1} pixels")]
    Empty(usize, usize),
}

/// One tile's outputs and where they belong.
pub struct Tile {
    /// Rows of the feature map.
    pub rows: Range<usize>,
    /// Columns of the feature map.
    pub columns: Range<usize>,
    /// `[batch, channels, rows, columns]`, f32.
    pub features: Tensor<4>,
}

impl ResNet {
    /// The feature map behind the last block, `[batch, channels, height / stride, width / stride]` rounded up,
    /// in f32, for images `[batch, 3, height, width]`.
    pub fn feature_map(&self, images: Tensor<4>) -> Tensor<4> {
        self.chain.run(&self.pieces(), images).cast(FloatDType::F32)
    }

    /// Pixels from one output to the next, and how many pixels an output sees beside its own, each way.
    pub fn receptive_field(&self) -> (usize, usize) {
        let (mut stride, mut radius) = match self.stem() {
            Stem::Imagenet => (4, 3 + 2),
            Stem::Small => (1, 1),
        };
        for block in self.blocks() {
            for convolution in block.convolutions() {
                radius += convolution.kernel_size[0] / 2 * stride;
                stride *= convolution.stride[0];
            }
        }
        (stride, radius)
    }

    /// [`Self::feature_map`] of an image of `height` and `width` pixels, `tile` pixels high and wide at a time.
    ///
    /// `read` gives rows and columns of the pixels, `[batch, 3, rows, columns]`; `write` takes the tiles, row by
    /// row. Each tile is read with the pixels around it that its outputs see, so the result is that of the whole
    /// image, and memory depends on the tile only.
    pub fn features_tiled(
        &self,
        [height, width]: [usize; 2],
        tile: usize,
        mut read: impl FnMut(Range<usize>, Range<usize>) -> Tensor<4>,
        mut write: impl FnMut(Tile),
    ) -> Result<(), TileError> {
        let (stride, radius) = self.receptive_field();
        if tile == 0 || !tile.is_multiple_of(stride) {
            return Err(TileError::Size { size: tile, stride });
        }
        if height == 0 || width == 0 {
            return Err(TileError::Empty(height, width));
        }
        if self.conv1.weight.lazy_device().is_autodiff() {
            return Err(TileError::Training);
        }
        let halo = radius.next_multiple_of(stride);
        let (rows, columns) = (parts(height, tile, halo), parts(width, tile, halo));
        for row in &rows {
            for column in &columns {
                let map = self.feature_map(read(row.read.clone(), column.read.clone()));
                let [batch, channels, ..] = map.dims();
                let (rows, columns) = (row.outputs(stride), column.outputs(stride));
                let within = |part: &Part, outputs: &Range<usize>| {
                    let first = part.read.start / stride;
                    outputs.start - first..outputs.end - first
                };
                let inside = [
                    0..batch,
                    0..channels,
                    within(row, &rows),
                    within(column, &columns),
                ];
                write(Tile {
                    features: map.slice(inside),
                    rows,
                    columns,
                });
            }
        }
        Ok(())
    }
}

/// Pixels of one tile in one direction.
struct Part {
    /// Whose outputs are wanted.
    core: Range<usize>,
    /// What they see.
    read: Range<usize>,
}

impl Part {
    fn outputs(&self, stride: usize) -> Range<usize> {
        self.core.start / stride..self.core.end.div_ceil(stride)
    }
}

fn parts(length: usize, tile: usize, halo: usize) -> Vec<Part> {
    let starts = (0..length).step_by(tile);
    starts
        .map(|start| {
            let end = (start + tile).min(length);
            Part {
                core: start..end,
                read: start.saturating_sub(halo)..(end + halo).min(length),
            }
        })
        .collect()
}
