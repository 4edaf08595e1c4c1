//! A convolution on levels, of whole images or of many small ones side by side.

mod columns;
mod images;

use images::Layout;

use crate::int8::Affine;

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

/// A convolution with what it multiplies by.
struct Layer<'a> {
    conv: &'a Conv,
    output: [usize; 2],
    input: Affine,
    weight: &'a [i8],
    scales: &'a [f32],
    bias: Option<&'a [f32]>,
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
        conv,
        output,
        input,
        weight,
        scales,
        bias,
    };
    let layout = Layout::of(conv, output);
    match layout.suits(conv.batch) {
        true => images::run(&layer, &layout, x, &mut y),
        false => columns::run(&layer, x, &mut y),
    }
    y
}

impl Layer<'_> {
    /// Values of an image, before and after.
    fn lengths(&self) -> [usize; 2] {
        let ([height, width], [down, across]) = (self.conv.input, self.output);
        [
            self.conv.channels_in * height * width,
            self.conv.channels_out * down * across,
        ]
    }

    /// The filters of a group: the first, and how many.
    fn filters(&self, group: usize) -> (usize, usize) {
        let count = self.conv.channels_out / self.conv.groups;
        (group * count, count)
    }

    fn filter(&self, index: usize) -> &[i8] {
        let depth = self.conv.depth();
        &self.weight[index * depth..][..depth]
    }

    /// Exact sums of a filter as what they stand for.
    fn write(&self, filter: usize, sums: &[i32], y: &mut [f32]) {
        let scale = self.input.scale * self.scales[filter];
        let bias = self.bias.map_or(0.0, |bias| bias[filter]);
        for (y, sum) in y.iter_mut().zip(sums) {
            *y = *sum as f32 * scale + bias;
        }
    }
}
