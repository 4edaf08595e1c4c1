//! A trunk in tiles gives what it gives for the whole image, in memory that does not grow with it.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use leanburn::memory::heap;
use leanburn::models::resnet::TileError;
use leanburn::models::{Depth, ResNet, ResNetConfig, Stem};

use crate::support::{alone, on_one_thread, random, relative_error, values};

fn trunk(depth: Depth, stem: Stem) -> ResNet {
    let config = ResNetConfig::new(depth, 10).with_width(4).with_stem(stem);
    let model = config.init(&Device::flex().autodiff());
    // One forward in training, so that the running statistics are not those of a new network.
    model.forward(random([2, 3, 64, 64], &Device::flex().autodiff()));
    model.valid()
}

fn in_tiles(model: &ResNet, image: &Tensor<4>, tile: usize) -> Tensor<4> {
    let [batch, _, height, width] = image.dims();
    let mut rows: Vec<Vec<Tensor<4>>> = Vec::new();
    model
        .features_tiled(
            [height, width],
            tile,
            |rows, columns| image.clone().slice([0..batch, 0..3, rows, columns]),
            |tile| {
                if tile.columns.start == 0 {
                    rows.push(Vec::new());
                }
                rows.last_mut().unwrap().push(tile.features);
            },
        )
        .unwrap();
    Tensor::cat(rows.into_iter().map(|row| Tensor::cat(row, 3)).collect(), 2)
}

/// PyTorch's figure for ResNet-18 is a field of 435 pixels: 217 each way.
#[test]
fn receptive_fields_are_the_known_ones() {
    let _alone = alone();
    let field = |depth| {
        let config = ResNetConfig::new(depth, 10).with_width(4);
        config.init(&Device::flex()).receptive_field()
    };
    assert_eq!(field(Depth::R18), (32, 217));
    assert_eq!(field(Depth::R50), (32, 213));
}

#[test]
fn tiles_equal_the_whole_image() {
    let _alone = alone();
    for (depth, stem, size, tiles) in [
        (Depth::R18, Stem::Imagenet, [530, 327], &[64, 256][..]),
        (Depth::R50, Stem::Imagenet, [290, 300], &[128]),
        (Depth::R18, Stem::Small, [130, 41], &[40]),
    ] {
        let model = trunk(depth, stem);
        let image = random([1, 3, size[0], size[1]], &Device::flex());
        let whole = model.feature_map(image.clone());
        for tile in tiles {
            let tiled = in_tiles(&model, &image, *tile);
            assert_eq!(tiled.dims(), whole.dims());
            let error = relative_error(&values(tiled), &values(whole.clone()));
            assert!(error <= 1e-4, "{depth} {stem:?} tile {tile}: {error}");
        }
    }
}

#[test]
fn peak_does_not_grow_with_the_height() {
    let _alone = alone();
    let model = trunk(Depth::R18, Stem::Imagenet);
    let peak = |height: usize| {
        heap::reset_peak();
        let before = heap::current();
        let mut outputs = 0;
        let read = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            Tensor::ones([1, 3, rows.len(), columns.len()], &Device::flex())
        };
        let write = |tile: leanburn::models::resnet::Tile| outputs += tile.rows.len();
        model
            .features_tiled([height, 128], 128, read, write)
            .unwrap();
        assert_eq!(outputs, height / 32);
        heap::peak() - before
    };
    let (small, large) = on_one_thread(|| {
        peak(1024);
        (peak(1024), peak(8192))
    });
    let growth = large as f64 / small as f64;
    assert!(growth < 1.01, "{small} to {large} bytes");
}

#[test]
fn what_cannot_be_tiled_is_refused() {
    let _alone = alone();
    let model = trunk(Depth::R18, Stem::Imagenet);
    let run = |model: &ResNet, size, tile| {
        let read = |_, _| unreachable!("nothing is read");
        model.features_tiled(size, tile, read, |_| ()).unwrap_err()
    };
    let size = |size| TileError::Size { size, stride: 32 };
    assert_eq!(run(&model, [64, 64], 50), size(50));
    assert_eq!(run(&model, [64, 64], 0), size(0));
    assert_eq!(run(&model, [0, 64], 64), TileError::Empty(0, 64));
    assert_eq!(run(&model.train(), [64, 64], 64), TileError::Training);
}
