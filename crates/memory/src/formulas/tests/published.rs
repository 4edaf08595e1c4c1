//! Equal to what the papers print.

use super::*;

const MODEL_22B: &str = "layers=48,hidden=6144,heads=64,seq=2048,vocab=51200";
pub(super) const GPT3_175B: &str = "layers=96,hidden=12288,heads=96,seq=2048,vocab=51200";
const MT_NLG_530B: &str = "layers=105,hidden=20480,heads=128,seq=2048,vocab=51200";
const MODEL_1T: &str = "layers=128,hidden=25600,heads=160,seq=2048,vocab=51200";

fn per_layer(transformer: &str, parallel: &str, recompute: Recompute) -> u64 {
    let setup = setup(transformer, parallel, recompute);
    figure(&setup, "activations per layer")
}

// Trap B25: tied embeddings once. The number is that of OpenAI's checkpoint.
#[test]
fn gpt2_small_has_124_439_808_parameters() {
    let gpt2: Transformer = "layers=12,hidden=768,heads=12,seq=1024,vocab=50257"
        .parse()
        .unwrap();
    assert_eq!(gpt2.parameters(), Ok(124_439_808));
}

// Narayanan et al. 2021, table 1, in billions.
#[test]
fn the_parameters_of_megatrons_table() {
    for (transformer, billions) in [
        ("layers=24,hidden=2304,heads=24,seq=2048,vocab=51200", "1.7"),
        (
            "layers=40,hidden=6144,heads=48,seq=2048,vocab=51200",
            "18.4",
        ),
        (
            "layers=80,hidden=12288,heads=96,seq=2048,vocab=51200",
            "145.6",
        ),
        (
            "layers=96,hidden=16384,heads=128,seq=2048,vocab=51200",
            "310.1",
        ),
        (MT_NLG_530B, "529.6"),
        (MODEL_1T, "1008.0"),
    ] {
        let model: Transformer = transformer.parse().unwrap();
        let count = model.parameters().unwrap();
        assert_eq!(format!("{:.1}", count as f64 / 1e9), billions);
        // Its eq. 2 as printed, without the last norm.
        let [l, h] = [model.layers as f64, model.hidden as f64];
        let ends = (model.vocabulary + model.sequence) as f64;
        let printed = 12.0 * l * h * h * (1.0 + 13.0 / (12.0 * h) + ends / (12.0 * l * h));
        assert!((printed + 2.0 * h - count as f64).abs() < 1e-12 * printed);
    }
}

// Korthikanti et al. 2022, section 5: 5as/h is 80 and 64, so that part is 70 % and 65 %.
#[test]
fn selective_recomputation_saves_70_and_65_percent() {
    for (transformer, scores, percent) in [(GPT3_175B, 80, 70), (MT_NLG_530B, 64, 65)] {
        let all = per_layer(transformer, "tp=1", Recompute::None);
        let kept = per_layer(transformer, "tp=1", Recompute::Selective);
        assert_eq!(all * 34, kept * (34 + scores));
        assert_eq!((all - kept) * 100 / all, percent);
    }
}

// The rows of its table 2 at t = 8, in bytes: multiples of sbh/8.
#[test]
fn bytes_per_layer_of_175b_and_530b() {
    let [sbh_175b, sbh_530b] = [2048 * 12288, 2048 * 20480];
    for (parallel, recompute, eighths_175b, eighths_530b) in [
        ("tp=1", Recompute::None, 912, 784),
        ("tp=8", Recompute::None, 184, 168),
        ("tp=8,sp", Recompute::None, 114, 98),
        ("tp=8", Recompute::Selective, 104, 104),
        ("tp=8,sp", Recompute::Selective, 34, 34),
        ("tp=8", Recompute::Full, 16, 16),
        ("tp=8,sp", Recompute::Full, 2, 2),
    ] {
        let bytes = |transformer| per_layer(transformer, parallel, recompute);
        assert_eq!(bytes(GPT3_175B), sbh_175b / 8 * eighths_175b);
        assert_eq!(bytes(MT_NLG_530B), sbh_530b / 8 * eighths_530b);
    }
    // And once written out.
    assert_eq!(per_layer(GPT3_175B, "tp=1", Recompute::None), 2_868_903_936);
    assert_eq!(
        per_layer(MT_NLG_530B, "tp=8,sp", Recompute::None),
        513_802_240
    );
}

// Its section 6.1: of what tensor parallelism keeps, sequence parallelism and selective
// recomputation each save nearly half, both about four fifths, and full recomputation leaves 10 %.
#[test]
fn each_technique_saves_about_what_the_paper_says() {
    for transformer in [MODEL_22B, GPT3_175B, MT_NLG_530B, MODEL_1T] {
        let base = per_layer(transformer, "tp=8", Recompute::None) as f64;
        let share = |parallel, recompute| per_layer(transformer, parallel, recompute) as f64 / base;
        assert!((0.58..0.67).contains(&share("tp=8,sp", Recompute::None)));
        assert!((0.49..0.62).contains(&share("tp=8", Recompute::Selective)));
        assert!((0.16..0.21).contains(&share("tp=8,sp", Recompute::Selective)));
        assert!((0.07..0.10).contains(&share("tp=8", Recompute::Full)));
    }
}

// Its section 4.3: sbhL/t(p/L + 4/L(1 + v/h)) in all, and only the first part where p > 1.
#[test]
fn activations_around_the_layers() {
    let around = |parallel| {
        let setup = setup(MODEL_22B, parallel, Recompute::None);
        figure(&setup, "activations around the layers")
    };
    let [sbh, sbv] = [2048 * 6144, 2048 * 51200];
    assert_eq!(around("tp=8,sp"), sbh / 8 + 4 * sbh / 8 + 4 * sbv / 8);
    assert_eq!(around("tp=8"), sbh + 4 * sbh + 4 * sbv / 8);
    assert_eq!(around("tp=8,pp=6,sp"), 6 * sbh / 8);

    // The paper says less than 0.01 % of the layers; its formula says 0.57 %.
    let setup = setup(MODEL_22B, "tp=8,sp", Recompute::None);
    let layers = figure(&setup, "activations of all layers");
    assert_eq!(around("tp=8,sp") * 10_000 / layers, 56);
}

// Its section 4.2.3: the first stage keeps L layers' worth, however many stages there are.
#[test]
fn stages_divide_parameters_but_not_activations() {
    let [one, eight] = ["tp=8,sp", "tp=8,pp=8,sp"].map(|p| setup(GPT3_175B, p, Recompute::None));
    let layers = |setup| figure(setup, "activations of all layers");
    assert_eq!(layers(&one), layers(&eight));
    assert!(row(&eight, Row::Parameters) < row(&one, Row::Parameters));
}
