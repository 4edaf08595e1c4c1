//! A convolution on codes, without gathering columns.
//!
//! A quantized image is laid out padded and split by the stride's phases, so that what one weight
//! meets at all output positions is one slice of it. Positions are counted in rows of the padded
//! width; the few that are no output are dropped.

use std::ops::Range;

use rayon::prelude::*;

use super::levels::levels;
use super::product::{Bytes, product};
use crate::int8::Affine;
use crate::ops::flex::product::Shared;

/// Sizes of a convolution, `[height, width]` where there are two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv {
    pub batch: usize,
    pub channels_in: usize,
    pub channels_out: usize,
    pub input: [usize; 2],
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    /// Zeros on both sides.
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

impl Conv {
    /// Size of the output; `None` where the kernel doesn't fit into the padded input or a size that
    /// has to be positive is zero.
    pub fn output(&self) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            let reach = self.dilation[axis] * self.kernel[axis].checked_sub(1)? + 1;
            let room = (self.input[axis] + 2 * self.padding[axis]).checked_sub(reach)?;
            Some(room.checked_div(self.stride[axis])? + 1)
        };
        let divides = |channels: usize| channels.checked_rem(self.groups) == Some(0);
        let valid = divides(self.channels_in)
            && divides(self.channels_out)
            && self.dilation.iter().all(|dilation| *dilation > 0);
        valid.then_some([along(0)?, along(1)?])
    }

    /// Products in one sum.
    pub fn depth(&self) -> usize {
        self.channels_in / self.groups * self.taps()
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }
}

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
struct Layout<'c> {
    conv: &'c Conv,
    axes: [Phases; 2],
    /// Of each tap, from the start of a channel.
    taps: Vec<usize>,
    output: [usize; 2],
}

impl<'c> Layout<'c> {
    fn of(conv: &'c Conv, output: [usize; 2]) -> Self {
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

/// `[batch, channels_out, output]`: each output is `input.scale * scales[o]` times the exact sum of
/// `(level - zero_point) * weight`, plus `bias[o]`.
///
/// `x` is `[batch, channels_in, input]`, `weight` `[channels_out, channels_in / groups, kernel]`,
/// `scales` and `bias` `[channels_out]`.
///
/// # Panics
/// Where a length doesn't fit the sizes, [`Conv::output`] is `None`, or the weights of one filter
/// exceed [`MAX_DEPTH`](super::MAX_DEPTH).
pub fn conv2d(
    conv: &Conv,
    x: &[f32],
    input: Affine,
    weight: &[i8],
    scales: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let output = conv.output().expect("a kernel that fits");
    let image = conv.channels_in * conv.input[0] * conv.input[1];
    let filter = conv.depth();
    let filtered = conv.channels_out * output[0] * output[1];
    assert_eq!(
        x.len(),
        conv.batch * image,
        "x is [batch, channels_in, input]"
    );
    assert_eq!(
        weight.len(),
        conv.channels_out * filter,
        "weight is [channels_out, filter]"
    );
    assert_eq!(scales.len(), conv.channels_out, "a scale an output channel");
    assert!(
        bias.is_none_or(|bias| bias.len() == conv.channels_out),
        "a bias an output channel"
    );
    let mut y = vec![0.0; conv.batch * filtered];
    if y.is_empty() {
        return y;
    }
    let layer = Layer {
        layout: Layout::of(conv, output),
        input,
        weight,
        scales,
        bias,
    };
    let images = |codes: &mut Vec<u8>, (index, y): (usize, &mut [f32]), parallel: bool| {
        layer.image(&x[index * image..][..image], parallel, codes, y);
    };
    // With an image for each, threads meet only at the end.
    if conv.batch >= rayon::current_num_threads() {
        let each = y.par_chunks_mut(filtered).enumerate();
        each.for_each_init(Vec::new, |codes, image| images(codes, image, false));
    } else {
        let mut codes = Vec::new();
        let each = y.chunks_mut(filtered).enumerate();
        each.for_each(|image| images(&mut codes, image, true));
    }
    y
}

struct Layer<'a> {
    layout: Layout<'a>,
    input: Affine,
    weight: &'a [i8],
    scales: &'a [f32],
    bias: Option<&'a [f32]>,
}

impl Layer<'_> {
    fn image(&self, x: &[f32], parallel: bool, codes: &mut Vec<u8>, y: &mut [f32]) {
        let (layout, conv) = (&self.layout, self.layout.conv);
        let (channel, plane) = (layout.channel(), conv.input[0] * conv.input[1]);
        codes.resize(conv.channels_in * channel, 0);
        let fill = |row: &mut Vec<u8>, (index, codes): (usize, &mut [u8])| {
            layout.fill(&x[index * plane..][..plane], self.input, row, codes);
        };
        if parallel {
            let channels = codes.par_chunks_mut(channel).enumerate();
            channels.for_each_init(Vec::new, fill);
        } else {
            let mut row = Vec::new();
            let channels = codes.chunks_mut(channel).enumerate();
            channels.for_each(|channel| fill(&mut row, channel));
        }
        let group_out = conv.channels_out / conv.groups;
        let groups = y.chunks_mut(group_out * layout.output[0] * layout.output[1]);
        for (group, y) in groups.enumerate() {
            self.group(group, codes, parallel, y);
        }
    }

    fn group(&self, group: usize, codes: &[u8], parallel: bool, y: &mut [f32]) {
        let (layout, conv) = (&self.layout, self.layout.conv);
        let (taps, channel) = (conv.taps(), layout.channel());
        let [group_in, group_out] =
            [conv.channels_in, conv.channels_out].map(|all| all / conv.groups);
        let (depth, positions) = (group_in * taps, layout.positions());
        let first = group * group_out;
        let codes = &codes[group * group_in * channel..][..group_in * channel];
        let left = Bytes {
            row: |filter: usize| &self.weight[(first + filter) * depth..][..depth],
            zero_point: 0,
        };
        let right = Bytes {
            row: |row: usize| &codes[row / taps * channel + layout.taps[row % taps]..][..positions],
            zero_point: i16::from(self.input.zero_point),
        };
        let plane = layout.output[0] * layout.output[1];
        let shared = Shared(y.as_mut_ptr());
        let size = [group_out, positions, depth];
        product(size, &left, &right, parallel, |filter, start, sums| {
            let scale = self.input.scale * self.scales[first + filter];
            let bias = self.bias.map_or(0.0, |bias| bias[first + filter]);
            for (output, sums_at) in layout.pieces(start..start + sums.len()) {
                // SAFETY: each position of each filter is handed out once.
                let y = unsafe { shared.region(filter * plane + output, sums_at.len()) };
                for (y, sum) in y.iter_mut().zip(&sums[sums_at]) {
                    *y = *sum as f32 * scale + bias;
                }
            }
        });
    }
}
