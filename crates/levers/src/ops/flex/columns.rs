//! A convolution as a matrix product: the geometry, and patches gathered into columns.
//!
//! The columns of all output positions of all images are numbered `image * positions + position`;
//! a tile is any range of them, so that small images still make large products.

use std::ops::Range;

use burn::backend::ops::ConvOptions;
use burn::tensor::Shape;

use super::element::Element;
use super::rows::spread;

/// Bytes that one thread's gathered columns may take.
const TILE_BYTES: usize = 2 << 20;

/// Sizes of one convolution without groups and dilation.
#[derive(Clone, Debug)]
pub struct Geometry {
    pub batch: usize,
    pub channels_in: usize,
    pub channels_out: usize,
    pub input: [usize; 2],
    pub output: [usize; 2],
    pub kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
}

impl Geometry {
    /// `None` where Burn's own kernels have to do it.
    pub fn supported(x: &Shape, weight: &Shape, options: &ConvOptions<2>) -> Option<Self> {
        let [batch, channels_in, height, width] = x.dims();
        let [channels_out, per_group, kernel_h, kernel_w] = weight.dims();
        let plain = options.groups == 1
            && options.dilation == [1, 1]
            && !options.is_asymmetric()
            && per_group == channels_in;
        let padding = options.padding_begin();
        let fits = height + 2 * padding[0] >= kernel_h && width + 2 * padding[1] >= kernel_w;
        (plain && fits && batch > 0).then(|| Self {
            batch,
            channels_in,
            channels_out,
            input: [height, width],
            output: [
                (height + 2 * padding[0] - kernel_h) / options.stride[0] + 1,
                (width + 2 * padding[1] - kernel_w) / options.stride[1] + 1,
            ],
            kernel: [kernel_h, kernel_w],
            stride: options.stride,
            padding,
        })
    }

    /// Output positions of one image.
    pub fn positions(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Values of one input plane.
    pub fn plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    /// Kernel positions.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Rows of a column: every weight of one filter.
    pub fn rows(&self) -> usize {
        self.channels_in * self.taps()
    }

    /// Whether an image is its own matrix of columns.
    fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1, 1] && self.padding == [0, 0]
    }

    /// Columns in a tile of `rows` rows, when `threads` share `columns`.
    pub fn tile(&self, rows: usize, columns: usize, threads: usize) -> usize {
        let by_memory = (TILE_BYTES / 4 / rows.max(1)).max(64);
        by_memory.min(columns.div_ceil(threads).max(32))
    }

    /// The pieces of a range of columns that lie in one image: image, positions, offset in the range.
    pub fn pieces(
        &self,
        columns: Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
        let positions = self.positions();
        let images = columns.start / positions..columns.end.div_ceil(positions);
        images.map(move |image| {
            let start = columns.start.max(image * positions);
            let end = columns.end.min((image + 1) * positions);
            let within = start - image * positions..end - image * positions;
            (image, within, start - columns.start)
        })
    }

    /// For one output row and one tap: the output columns of `range` whose input lies inside the
    /// image, and the input offset of the first. `None` where all of it is padding.
    fn run(
        &self,
        out_row: usize,
        range: Range<usize>,
        tap: usize,
    ) -> Option<(Range<usize>, usize)> {
        let (tap_h, tap_w) = (tap / self.kernel[1], tap % self.kernel[1]);
        let row = (out_row * self.stride[0] + tap_h).checked_sub(self.padding[0])?;
        if row >= self.input[0] {
            return None;
        }
        let first = self.padding[1]
            .saturating_sub(tap_w)
            .div_ceil(self.stride[1]);
        let limit = (self.input[1] + self.padding[1]).checked_sub(tap_w)?;
        let valid = range.start.max(first)..range.end.min(limit.div_ceil(self.stride[1]));
        if valid.is_empty() {
            return None;
        }
        let column = valid.start * self.stride[1] + tap_w - self.padding[1];
        Some((valid, row * self.input[1] + column))
    }

    /// Splits positions into output rows: row, range of output columns, offset in the positions.
    fn output_rows(
        &self,
        positions: Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
        let width = self.output[1];
        (positions.start / width..positions.end.div_ceil(width)).map(move |row| {
            let start = positions.start.max(row * width);
            let end = positions.end.min((row + 1) * width);
            (
                row,
                start - row * width..end - row * width,
                start - positions.start,
            )
        })
    }

    /// Input rows that the positions read.
    fn input_rows(&self, positions: &Range<usize>) -> Range<usize> {
        let first = positions.start / self.output[1] * self.stride[0];
        let last = (positions.end - 1) / self.output[1] * self.stride[0] + self.kernel[0];
        first.saturating_sub(self.padding[0]).min(self.input[0])
            ..last.saturating_sub(self.padding[0]).min(self.input[0])
    }

    /// Gathers a tile: `out` is `[channels * taps, columns]`, row-major, for the given channels.
    pub fn gather<E: Element>(
        &self,
        x: &[E],
        channels: Range<usize>,
        columns: Range<usize>,
        out: &mut [f32],
    ) {
        let width = columns.len();
        let plane = self.plane();
        if self.is_pointwise() {
            self.gather_rows(
                x,
                [self.channels_in, channels.start, channels.end],
                columns,
                out,
            );
            return;
        }
        let mut widened = vec![
            0.0;
            if E::as_f32(&x[..1]).is_some() {
                0
            } else {
                plane
            }
        ];
        for (image, positions, offset) in self.pieces(columns) {
            let rows = self.input_rows(&positions);
            let needed = rows.start * self.input[1]..rows.end.max(rows.start) * self.input[1];
            for (row, channel) in channels.clone().enumerate() {
                let source = &x[(image * self.channels_in + channel) * plane..][..plane];
                let source = match E::as_f32(source) {
                    Some(source) => source,
                    None => {
                        E::widen(&source[needed.clone()], &mut widened[needed.clone()]);
                        &widened[..]
                    }
                };
                for tap in 0..self.taps() {
                    let target =
                        &mut out[(row * self.taps() + tap) * width + offset..][..positions.len()];
                    self.gather_tap(source, positions.clone(), tap, target);
                }
            }
        }
    }

    /// Rows `first..last` of each image's `[all, positions]` into the tile.
    pub fn gather_rows<E: Element>(
        &self,
        values: &[E],
        [all, first, last]: [usize; 3],
        columns: Range<usize>,
        out: &mut [f32],
    ) {
        let (width, length) = (columns.len(), self.positions());
        for (image, positions, offset) in self.pieces(columns) {
            let source = &values[(image * all + first) * length..(image * all + last) * length];
            if positions.len() == length {
                spread(source, length, &mut out[offset..], width);
                continue;
            }
            for (row, source) in source.chunks(length).enumerate() {
                let target = &mut out[row * width + offset..][..positions.len()];
                E::widen(&source[positions.clone()], target);
            }
        }
    }

    fn gather_tap(&self, source: &[f32], positions: Range<usize>, tap: usize, target: &mut [f32]) {
        for (out_row, range, at) in self.output_rows(positions) {
            let target = &mut target[at..][..range.len()];
            let Some((valid, from)) = self.run(out_row, range.clone(), tap) else {
                target.fill(0.0);
                continue;
            };
            let (left, right) = (valid.start - range.start, valid.end - range.start);
            target[..left].fill(0.0);
            target[right..].fill(0.0);
            let target = &mut target[left..right];
            if self.stride[1] == 1 {
                target.copy_from_slice(&source[from..][..target.len()]);
            } else {
                for (to, value) in target
                    .iter_mut()
                    .zip(source[from..].iter().step_by(self.stride[1]))
                {
                    *to = *value;
                }
            }
        }
    }

    /// The reverse of [`gather`](Self::gather) for one image: adds columns onto its planes.
    pub fn scatter_add(
        &self,
        columns: &[f32],
        width: usize,
        positions: Range<usize>,
        image: &mut [f32],
    ) {
        let plane = self.plane();
        if self.is_pointwise() {
            for channel in 0..self.channels_in {
                let target = &mut image[channel * plane..][positions.clone()];
                target.copy_from_slice(&columns[channel * width..][..positions.len()]);
            }
            return;
        }
        for row in 0..self.rows() {
            let (channel, tap) = (row / self.taps(), row % self.taps());
            let source = &columns[row * width..][..positions.len()];
            let target = &mut image[channel * plane..][..plane];
            for (out_row, range, at) in self.output_rows(positions.clone()) {
                let Some((valid, to)) = self.run(out_row, range.clone(), tap) else {
                    continue;
                };
                let source = &source[at + valid.start - range.start..][..valid.len()];
                let target = target[to..].iter_mut().step_by(self.stride[1]);
                for (to, value) in target.zip(source) {
                    *to += *value;
                }
            }
        }
    }
}
