//! Whole images, without gathering columns.
//!
//! A quantized image is laid out padded and split by the stride's phases, so that what one weight
//! meets at all output positions is one slice of it. Positions are counted in rows of the padded
//! width; the few that are no output are dropped.

use std::ops::Range;

use rayon::prelude::*;

use super::{Conv, Layer};
use crate::int8::Affine;
use crate::int8::kernel::levels::levels;
use crate::int8::kernel::product::{Bytes, product};
use crate::ops::flex::product::Shared;

/// Positions below which the weights of a layer cost more to read than its products.
const FEW: usize = 192;

/// Along one axis: which phases of the stride the kernel meets, and where in them.
struct Phases {
    /// Distinct offsets below the stride.
    offsets: Vec<usize>,
    /// Length of each phase.
    len: usize,
    /// Phase (as an index) and place of each tap.
    taps: Vec<(usize, usize)>,
}

impl Phases {
    fn of(conv: &Conv, axis: usize) -> Self {
        let stride = conv.stride[axis];
        let (mut offsets, mut taps) = (Vec::new(), Vec::new());
        for tap in 0..conv.kernel[axis] {
            let (place, offset) = (
                tap * conv.dilation[axis] / stride,
                tap * conv.dilation[axis] % stride,
            );
            let known = offsets.iter().position(|known| *known == offset);
            let phase = known.unwrap_or_else(|| {
                offsets.push(offset);
                offsets.len() - 1
            });
            taps.push((phase, place));
        }
        let len = (conv.input[axis] + 2 * conv.padding[axis]).div_ceil(stride);
        Self { offsets, len, taps }
    }
}

/// How a quantized image lies in memory: `[channels, phases, phases, height, width]`.
pub struct Layout<'c> {
    conv: &'c Conv,
    axes: [Phases; 2],
    /// Of each tap, from the start of a channel.
    taps: Vec<usize>,
    output: [usize; 2],
}

impl<'c> Layout<'c> {
    pub fn of(conv: &'c Conv, output: [usize; 2]) -> Self {
        let axes = [Phases::of(conv, 0), Phases::of(conv, 1)];
        let (across, plane) = (axes[1].offsets.len(), axes[0].len * axes[1].len);
        let mut taps = Vec::with_capacity(conv.taps());
        for (phase_h, row) in &axes[0].taps {
            for (phase_w, column) in &axes[1].taps {
                taps.push((phase_h * across + phase_w) * plane + row * axes[1].len + column);
            }
        }
        Self {
            conv,
            axes,
            taps,
            output,
        }
    }

    /// Whether images are large enough to be taken one by one, and little of them is padding.
    pub fn suits(&self, batch: usize) -> bool {
        let (outputs, positions) = (self.output[0] * self.output[1], self.positions());
        let many = positions >= FEW || batch == 1;
        many && 4 * outputs >= 3 * positions
    }

    fn width(&self) -> usize {
        self.axes[1].len
    }

    /// Codes of one channel.
    fn channel(&self) -> usize {
        let phases = self.axes[0].offsets.len() * self.axes[1].offsets.len();
        phases * self.axes[0].len * self.axes[1].len
    }

    /// Positions from the first output to the last, in rows of [`width`](Self::width).
    fn positions(&self) -> usize {
        (self.output[0] - 1) * self.width() + self.output[1]
    }

    /// One channel `[height, width]` into its codes; `row` is for one padded row.
    fn fill(&self, x: &[f32], with: Affine, row: &mut Vec<u8>, codes: &mut [u8]) {
        let ([height, width], [top, left]) = (self.conv.input, self.conv.padding);
        let [down, across] = self.conv.stride;
        codes.fill(with.zero_point);
        row.clear();
        row.resize(width + 2 * left, with.zero_point);
        let mut rows = codes.chunks_mut(self.width());
        for phase_h in &self.axes[0].offsets {
            for phase_w in &self.axes[1].offsets {
                for index in 0..self.axes[0].len {
                    let target = rows.next().expect("a row a line of a phase");
                    let source = (index * down + phase_h).checked_sub(top);
                    let Some(source) = source.filter(|source| *source < height) else {
                        continue;
                    };
                    let source = &x[source * width..][..width];
                    if across == 1 {
                        levels(with, source, &mut target[left..left + width]);
                        continue;
                    }
                    levels(with, source, &mut row[left..left + width]);
                    for (to, code) in target
                        .iter_mut()
                        .zip(row[*phase_w..].iter().step_by(across))
                    {
                        *to = *code;
                    }
                }
            }
        }
    }

    /// Splits positions into the outputs among them: first output, and where it is in the range.
    fn pieces(&self, positions: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (wide, width) = (self.width(), self.output[1]);
        (positions.start / wide..positions.end.div_ceil(wide)).filter_map(move |row| {
            let start = positions.start.max(row * wide);
            let end = positions.end.min(row * wide + width);
            let first = row * width + start - row * wide;
            (start < end).then(|| (first, start - positions.start..end - positions.start))
        })
    }
}

/// Every image for itself.
pub fn run(layer: &Layer, layout: &Layout, x: &[f32], y: &mut [f32]) {
    let [before, after] = layer.lengths();
    let image = |codes: &mut Vec<u8>, (index, y): (usize, &mut [f32]), parallel: bool| {
        let x = &x[index * before..][..before];
        Image { layer, layout }.run(x, parallel, codes, y);
    };
    // With an image for each, threads meet only at the end.
    if layer.conv.batch >= rayon::current_num_threads() {
        let each = y.par_chunks_mut(after).enumerate();
        each.for_each_init(Vec::new, |codes, y| image(codes, y, false));
    } else {
        let mut codes = Vec::new();
        let each = y.chunks_mut(after).enumerate();
        each.for_each(|y| image(&mut codes, y, true));
    }
}

struct Image<'a, 'c> {
    layer: &'a Layer<'a>,
    layout: &'a Layout<'c>,
}

impl Image<'_, '_> {
    fn run(&self, x: &[f32], parallel: bool, codes: &mut Vec<u8>, y: &mut [f32]) {
        let (layout, conv, input) = (self.layout, self.layer.conv, self.layer.input);
        let (channel, plane) = (layout.channel(), conv.input[0] * conv.input[1]);
        codes.resize(conv.channels_in * channel, 0);
        let fill = |row: &mut Vec<u8>, (index, codes): (usize, &mut [u8])| {
            layout.fill(&x[index * plane..][..plane], input, row, codes);
        };
        if parallel {
            let channels = codes.par_chunks_mut(channel).enumerate();
            channels.for_each_init(Vec::new, fill);
        } else {
            let mut row = Vec::new();
            let channels = codes.chunks_mut(channel).enumerate();
            channels.for_each(|channel| fill(&mut row, channel));
        }
        for group in 0..conv.groups {
            self.group(group, codes, parallel, y);
        }
    }

    fn group(&self, group: usize, codes: &[u8], parallel: bool, y: &mut [f32]) {
        let (layer, layout, conv) = (self.layer, self.layout, self.layer.conv);
        let (taps, channel) = (conv.taps(), layout.channel());
        let (depth, positions) = (conv.depth(), layout.positions());
        let group_in = conv.channels_in / conv.groups;
        let (first, filters) = layer.filters(group);
        let codes = &codes[group * group_in * channel..][..group_in * channel];
        let left = Bytes {
            row: |filter: usize| layer.filter(first + filter),
            zero_point: 0,
        };
        let right = Bytes {
            row: |row: usize| &codes[row / taps * channel + layout.taps[row % taps]..][..positions],
            zero_point: i16::from(layer.input.zero_point),
        };
        let plane = layout.output[0] * layout.output[1];
        let shared = Shared(y.as_mut_ptr());
        let size = [filters, positions, depth];
        product(size, &left, &right, parallel, |filter, start, sums| {
            let filter = first + filter;
            for (output, sums_at) in layout.pieces(start..start + sums.len()) {
                // SAFETY: each position of each filter is handed out once.
                let y = unsafe { shared.region(filter * plane + output, sums_at.len()) };
                layer.write(filter, &sums[sums_at], y);
            }
        });
    }
}
