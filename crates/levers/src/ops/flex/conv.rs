//! Convolution and its two gradients, tile by tile.

use burn_flex::FlexTensor;
use leanburn_memory::trace::gemm::packed;
use rayon::prelude::*;

use super::columns::Geometry;
use super::element::{Element, contiguous, rounded, tensor};
use super::product::{Matrix, Shared, multiply};
use super::rows::collect;

fn tiles(columns: usize, tile: usize) -> Vec<std::ops::Range<usize>> {
    (0..columns)
        .step_by(tile)
        .map(|start| start..(start + tile).min(columns))
        .collect()
}

/// `[batch, channels_out, output]` in `x`'s dtype.
pub fn forward<E: Element>(x: FlexTensor, weight: FlexTensor, geometry: &Geometry) -> FlexTensor {
    let (x, weight) = (contiguous(x), contiguous(weight));
    let x: &[E] = x.storage();
    let weight = rounded::<E>(&weight);
    let (rows, positions) = (geometry.rows(), geometry.positions());
    let out_channels = geometry.channels_out;
    let columns = geometry.batch * positions;
    let tile = geometry.tile(rows, columns, rayon::current_num_threads());

    let mut output = vec![E::zeroed(); columns * out_channels];
    let shared = Shared(output.as_mut_ptr());
    let tiles = tiles(columns, tile);
    // Long runs, so that each thread makes its buffers once.
    let run = tiles.len().div_ceil(2 * rayon::current_num_threads());
    tiles.into_par_iter().with_min_len(run).for_each_init(
        || (Vec::new(), Vec::new()),
        |(gathered, product): &mut (Vec<f32>, Vec<f32>), columns| {
            let width = columns.len();
            gathered.resize(rows * width, 0.0);
            product.resize(out_channels * width, 0.0);
            geometry.gather(x, 0..geometry.channels_in, columns.clone(), gathered);
            multiply(
                [out_channels, width, rows],
                Matrix::rows_of(&weight, rows),
                Matrix::rows_of(gathered, width),
                product,
                width,
                false,
            );
            for (image, within, offset) in geometry.pieces(columns) {
                if within.len() == positions {
                    let image = image * out_channels * positions;
                    // SAFETY: this image belongs to this tile alone.
                    let target = unsafe { shared.region(image, out_channels * positions) };
                    collect(&product[offset..], width, target, positions);
                    continue;
                }
                for channel in 0..out_channels {
                    let start = (image * out_channels + channel) * positions + within.start;
                    // SAFETY: these positions of this image belong to this tile alone.
                    let target = unsafe { shared.region(start, within.len()) };
                    E::narrow(&product[channel * width + offset..][..within.len()], target);
                }
            }
        },
    );
    let [height, width] = geometry.output;
    tensor(output, [geometry.batch, out_channels, height, width])
}

/// `[batch, channels_in, input]` in the gradient's dtype.
pub fn input_grad<E: Element>(
    weight: FlexTensor,
    grad: FlexTensor,
    geometry: &Geometry,
) -> FlexTensor {
    let (weight, grad) = (contiguous(weight), contiguous(grad));
    let grad: &[E] = grad.storage();
    let weight = rounded::<E>(&weight);
    let (rows, positions) = (geometry.rows(), geometry.positions());
    let (out_channels, image_len) = (
        geometry.channels_out,
        geometry.channels_in * geometry.plane(),
    );
    let threads = rayon::current_num_threads();
    let tile = geometry.tile(rows.max(out_channels), geometry.batch * positions, threads);
    let group = (tile / positions).max(1);

    let mut output = vec![E::zeroed(); geometry.batch * image_len];
    let groups = output.par_chunks_mut(group * image_len).enumerate();
    let run = groups.len().div_ceil(2 * threads);
    groups.with_min_len(run).for_each_init(
        || (Vec::new(), Vec::new(), Vec::new()),
        |(outer, product, images): &mut (Vec<f32>, Vec<f32>, Vec<f32>), (index, target)| {
            images.clear();
            images.resize(target.len(), 0.0);
            let first = index * group;
            let last = first + target.len() / image_len;
            for columns in tiles((last - first) * positions, tile) {
                let columns = columns.start + first * positions..columns.end + first * positions;
                let width = columns.len();
                outer.resize(out_channels * width, 0.0);
                product.resize(rows * width, 0.0);
                geometry.gather_rows(
                    grad,
                    [out_channels, 0, out_channels],
                    columns.clone(),
                    outer,
                );
                multiply(
                    [rows, width, out_channels],
                    Matrix::rows_of(&weight, rows).transposed(),
                    Matrix::rows_of(outer, width),
                    product,
                    width,
                    false,
                );
                for (image, within, offset) in geometry.pieces(columns) {
                    let image = &mut images[(image - first) * image_len..][..image_len];
                    geometry.scatter_add(&product[offset..], width, within, image);
                }
            }
            E::narrow(images, target);
        },
    );
    let [height, width] = geometry.input;
    tensor(
        output,
        [geometry.batch, geometry.channels_in, height, width],
    )
}

/// `[channels_out, channels_in, kernel]`, always f32: sums over a batch don't belong in half.
pub fn weight_grad<E: Element>(x: FlexTensor, grad: FlexTensor, geometry: &Geometry) -> FlexTensor {
    let (x, grad) = (contiguous(x), contiguous(grad));
    let (x, grad): (&[E], &[E]) = (x.storage(), grad.storage());
    let (rows, taps) = (geometry.rows(), geometry.taps());
    let (out_channels, columns) = (geometry.channels_out, geometry.batch * geometry.positions());
    let block = geometry.channels_in.div_ceil(rayon::current_num_threads());
    let tile = geometry.tile((block * taps).max(out_channels), columns, 1);

    let mut output = vec![0.0f32; out_channels * rows];
    let shared = Shared(output.as_mut_ptr());
    let blocks = tiles(geometry.channels_in, block);
    blocks.into_par_iter().for_each(|channels| {
        let block_rows = channels.len() * taps;
        let (mut gathered, mut outer) = (Vec::new(), Vec::new());
        let mut sum = vec![0.0; out_channels * block_rows];
        for columns in tiles(columns, tile) {
            let width = columns.len();
            gathered.resize(block_rows * width, 0.0);
            outer.resize(out_channels * width, 0.0);
            geometry.gather(x, channels.clone(), columns.clone(), &mut gathered);
            geometry.gather_rows(grad, [out_channels, 0, out_channels], columns, &mut outer);
            multiply(
                [out_channels, block_rows, width],
                Matrix::rows_of(&outer, width),
                Matrix::rows_of(&gathered, width).transposed(),
                &mut sum,
                block_rows,
                true,
            );
        }
        for (channel, sum) in sum.chunks(block_rows).enumerate() {
            // SAFETY: these input channels belong to this block alone.
            let target =
                unsafe { shared.region(channel * rows + channels.start * taps, block_rows) };
            target.copy_from_slice(sum);
        }
    });
    let [height, width] = geometry.kernel;
    tensor(output, [out_channels, geometry.channels_in, height, width])
}

/// f32 values that [`forward`] holds besides its tensors, with all threads at work.
pub fn forward_floats(geometry: &Geometry) -> usize {
    let (rows, threads) = (geometry.rows(), rayon::current_num_threads());
    let columns = geometry.batch * geometry.positions();
    let tile = geometry.tile(rows, columns, threads);
    let at_work = threads.min(columns.div_ceil(tile));
    let out = geometry.channels_out;
    at_work * ((rows + out) * tile + packed([out, tile, rows], [true; 2]))
}

/// The same for [`input_grad`].
pub fn input_grad_floats(geometry: &Geometry) -> usize {
    let (rows, threads) = (geometry.rows(), rayon::current_num_threads());
    let (out, positions) = (geometry.channels_out, geometry.positions());
    let tile = geometry.tile(rows.max(out), geometry.batch * positions, threads);
    let group = (tile / positions).max(1);
    let at_work = threads.min(geometry.batch.div_ceil(group));
    let images = group.min(geometry.batch);
    let width = tile.min(images * positions);
    let planes = images * geometry.channels_in * geometry.plane();
    at_work * ((rows + out) * width + planes + packed([rows, width, out], [false, true]))
}

/// The same for [`weight_grad`].
pub fn weight_grad_floats(geometry: &Geometry) -> usize {
    let (threads, out) = (rayon::current_num_threads(), geometry.channels_out);
    let block = geometry.channels_in.div_ceil(threads);
    let rows = block * geometry.taps();
    let columns = geometry.batch * geometry.positions();
    let tile = geometry.tile(rows.max(out), columns, 1).min(columns);
    let at_work = geometry.channels_in.div_ceil(block);
    at_work * ((rows + out) * tile + out * rows + packed([out, rows, tile], [true, false]))
}
