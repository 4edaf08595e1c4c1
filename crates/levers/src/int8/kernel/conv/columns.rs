//! Many small images side by side: what a filter meets at each output position, gathered into a column.

use std::ops::Range;

use rayon::prelude::*;

use super::Layer;
use crate::int8::kernel::levels::levels;
use crate::int8::kernel::product::{Bytes, product};
use crate::ops::flex::product::Shared;

/// Columns gathered at a time, where images have fewer.
const COLUMNS: usize = 256;

/// Groups of images.
pub fn run(layer: &Layer, x: &[f32], y: &mut [f32]) {
    let ([before, after], batch) = (layer.lengths(), layer.conv.batch);
    let positions = layer.output[0] * layer.output[1];
    let threads = rayon::current_num_threads();
    let images = COLUMNS.div_ceil(positions).min(batch.div_ceil(threads));
    let group = |buffers: &mut Buffers, (index, y): (usize, &mut [f32]), parallel: bool| {
        let count = y.len() / after;
        let x = &x[index * images * before..][..count * before];
        Gathered { layer, positions }.run(x, parallel, buffers, y);
    };
    let groups = batch.div_ceil(images);
    if groups >= threads {
        let each = y.par_chunks_mut(images * after).enumerate();
        each.for_each_init(Buffers::default, |buffers, y| group(buffers, y, false));
    } else {
        let mut buffers = Buffers::default();
        let each = y.chunks_mut(images * after).enumerate();
        each.for_each(|y| group(&mut buffers, y, true));
    }
}

/// One thread's.
#[derive(Default)]
struct Buffers {
    /// Levels of the images, in their order.
    levels: Vec<u8>,
    /// `[depth, images * positions]`
    columns: Vec<u8>,
}

struct Gathered<'a> {
    layer: &'a Layer<'a>,
    /// Outputs of an image and a filter.
    positions: usize,
}

impl Gathered<'_> {
    fn run(&self, x: &[f32], parallel: bool, buffers: &mut Buffers, y: &mut [f32]) {
        let (layer, conv, positions) = (self.layer, self.layer.conv, self.positions);
        let Buffers {
            levels: of_images,
            columns,
        } = buffers;
        of_images.resize(x.len(), 0);
        levels(layer.input, x, of_images);
        let [before, after] = layer.lengths();
        let width = x.len() / before * positions;
        let depth = conv.depth();
        columns.resize(depth * width, 0);
        let shared = Shared(y.as_mut_ptr());
        for group in 0..conv.groups {
            let (first, filters) = layer.filters(group);
            for (row, columns) in columns.chunks_mut(width).enumerate() {
                self.gather(of_images, group, row, columns);
            }
            let columns = &*columns;
            let left = Bytes {
                row: |filter: usize| layer.filter(first + filter),
                zero_point: 0,
            };
            let right = Bytes {
                row: |row: usize| &columns[row * width..][..width],
                zero_point: i16::from(layer.input.zero_point),
            };
            let size = [filters, width, depth];
            product(size, &left, &right, parallel, |filter, start, sums| {
                let filter = first + filter;
                for (image, within, at) in self.pieces(start..start + sums.len()) {
                    let start = image * after + filter * positions + within.start;
                    // SAFETY: each position of each filter is handed out once.
                    let y = unsafe { shared.region(start, within.len()) };
                    layer.write(filter, &sums[at..at + within.len()], y);
                }
            });
        }
    }

    /// What weight `row` of the group's filters meets at every position of every image.
    fn gather(&self, levels: &[u8], group: usize, row: usize, columns: &mut [u8]) {
        let conv = self.layer.conv;
        let ([height, width], [_, kernel]) = (conv.input, conv.kernel);
        let (channel, tap) = (row / conv.taps(), row % conv.taps());
        let channel = group * (conv.channels_in / conv.groups) + channel;
        let [top, left] = [tap / kernel, tap % kernel];
        let [top, left] = [top * conv.dilation[0], left * conv.dilation[1]];
        let image = conv.channels_in * height * width;
        let images = levels.chunks_exact(image);
        for (levels, columns) in images.zip(columns.chunks_exact_mut(self.positions)) {
            let plane = &levels[channel * height * width..][..height * width];
            let rows = columns.chunks_exact_mut(self.layer.output[1]);
            for (down, target) in rows.enumerate() {
                let source = (down * conv.stride[0] + top).checked_sub(conv.padding[0]);
                match source.filter(|source| *source < height) {
                    Some(source) => {
                        self.gather_row(&plane[source * width..][..width], left, target)
                    }
                    None => target.fill(self.layer.input.zero_point),
                }
            }
        }
    }

    fn gather_row(&self, source: &[u8], left: usize, target: &mut [u8]) {
        let conv = self.layer.conv;
        for (across, target) in target.iter_mut().enumerate() {
            let from = (across * conv.stride[1] + left).checked_sub(conv.padding[1]);
            let level = from.and_then(|from| source.get(from));
            *target = level.copied().unwrap_or(self.layer.input.zero_point);
        }
    }

    /// Splits columns by image: image, its positions, and where they begin in the range.
    fn pieces(&self, columns: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
        let positions = self.positions;
        let images = columns.start / positions..columns.end.div_ceil(positions);
        images.map(move |image| {
            let first = image * positions;
            let start = columns.start.max(first);
            let end = columns.end.min(first + positions);
            (image, start - first..end - first, start - columns.start)
        })
    }
}
