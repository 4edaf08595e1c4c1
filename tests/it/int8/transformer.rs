//! Language models in integers.

use burn::module::Param;
use burn::tensor::{Device, Int, Tensor, TensorData};
use leanburn::compress::{Calibration, Granularity, Method, Outputs, Settings, quantize, smooth};
use leanburn::models::Gpt;
use leanburn::models::transformer::{Arch, GptConfig};

use super::w8a8;
use crate::support::{alone, devices, relative_error, values};

fn new(arch: Arch, device: &Device) -> Gpt {
    let config = match arch {
        Arch::Gpt2 => GptConfig::gpt2(2, 4, 32),
        Arch::Llama => GptConfig::llama(2, 4, 32),
    };
    let config = config.with_vocabulary(50).with_context(16);
    config.init(device).unwrap()
}

/// New weights are small, and norms all alike: a trained network is neither.
fn loud(arch: Arch, device: &Device) -> Gpt {
    leanburn::seed(device, 0);
    let mut gpt = new(arch, device);
    for mut pair in gpt.norms_and_readers() {
        let width = pair.gamma.lazy_shape()[0];
        let uneven = (0..width).map(|j| if j % 7 == 3 { 20.0 } else { 1.0 });
        let uneven = TensorData::new(uneven.collect::<Vec<f32>>(), [width]);
        *pair.gamma = pair
            .gamma
            .clone()
            .map(|_| Tensor::from_data(uneven, device));
        for (_, reader) in &mut pair.readers {
            reader.weight = reader.weight.clone().map(|weight| weight * 4.0);
        }
    }
    gpt
}

fn tokens(device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = (0..32).map(|i| (i * 37 + i * i * 11) % 50).collect();
    Tensor::from_data(TensorData::new(tokens, [2, 16]), device)
}

#[test]
fn weights_and_tables_become_integers() {
    let _alone = alone();
    for device in devices() {
        let gpt = new(Arch::Gpt2, &device);
        let wanted = values(gpt.forward(tokens(&device), None));
        let int8 = quantize(gpt, &Settings::default(), None).unwrap();
        assert_eq!(
            int8.layers.len(),
            2 + 2 * 4,
            "two tables, four layers a block"
        );
        let error = relative_error(&values(int8.model.forward(tokens(&device), None)), &wanted);
        assert!(error < 0.02, "{error}");
    }
}

/// Smoothing is exact in real numbers, and helps where some channels are loud.
#[test]
fn smoothing_changes_nothing_but_the_rounding() {
    let _alone = alone();
    let device = Device::flex();
    for arch in [Arch::Gpt2, Arch::Llama] {
        let gpt = loud(arch, &device);
        let wanted = values(gpt.forward(tokens(&device), None));
        let settings = Settings {
            weight_only: match arch {
                Arch::Gpt2 => Vec::new(),
                Arch::Llama => vec!["lm_head".into()],
            },
            ..w8a8(Method::MinMax)
        };
        let judge = |gpt: &Gpt| {
            let calibration = Calibration::new(gpt);
            let watched = calibration.watch(gpt.clone());
            watched.forward(tokens(&device), None);
            let int8 = quantize(gpt.clone(), &settings, Some(&calibration)).unwrap();
            let outputs = Outputs::new(&int8.scheme, Granularity::Channel);
            outputs.watch(gpt.clone()).forward(tokens(&device), None);
            let first = match arch {
                Arch::Gpt2 => "h.0.Gpt2.c_attn",
                Arch::Llama => "h.0.Llama.q_proj",
            };
            (calibration, outputs.noise(first).unwrap().sqnr())
        };
        let (calibration, before) = judge(&gpt);
        let mut smoothed = gpt.clone();
        for pair in smoothed.norms_and_readers() {
            let largest = calibration.largest(&pair.readers[0].0).unwrap();
            let mut readers: Vec<_> = pair.readers.into_iter().map(|(_, layer)| layer).collect();
            smooth(pair.gamma, pair.beta, &mut readers, &largest, 0.5).unwrap();
        }
        let error = relative_error(&values(smoothed.forward(tokens(&device), None)), &wanted);
        assert!(error < 1e-5, "{arch:?}: {error}");
        let (_, after) = judge(&smoothed);
        assert!(after > before + 4.0, "{arch:?}: {before} dB, {after} dB");
    }
}

#[test]
fn smoothing_refuses_what_does_not_fit() {
    let device = Device::flex();
    let mut gamma = Param::from_tensor(Tensor::<1>::ones([4], &device));
    assert!(smooth(&mut gamma, None, &mut [], &[1.0; 4], 1.5).is_err());
    assert!(smooth(&mut gamma, None, &mut [], &[1.0; 3], 0.5).is_err());
    smooth(&mut gamma, None, &mut [], &[0.0; 4], 0.5).unwrap();
    assert_eq!(values(gamma.val()), [1.0; 4]);
}
