use crate::page::scale::Scale;
use crate::page::unit::Unit;

fn labels(scale: Scale, unit: Unit, count: usize) -> Vec<String> {
    let ticks = scale.ticks(unit, count);
    ticks.at.into_iter().map(|(_, text)| text).collect()
}

fn over(values: &[f64]) -> impl Iterator<Item = f64> + Clone {
    values.iter().copied()
}

#[test]
fn ticks_are_round() {
    let scale = Scale::tight(over(&[0.0, 199.0])).unwrap();
    assert_eq!(labels(scale, Unit::Number, 4), ["0", "50", "100", "150"]);
    let scale = Scale::roomy(over(&[0.2, 1.0]), Unit::Number).unwrap();
    let tenths = ["0", "0.2", "0.4", "0.6", "0.8", "1.0"];
    assert_eq!(labels(scale, Unit::Number, 5), tenths);
    let scale = Scale::roomy(over(&[0.0, 1e12]), Unit::Number).unwrap();
    let large = ["0", "2e11", "4e11", "6e11", "8e11", "1e12"];
    assert_eq!(labels(scale, Unit::Number, 5), large);
    let scale = Scale::roomy(over(&[-5.5, -3.0]), Unit::Number).unwrap();
    assert_eq!(labels(scale, Unit::Number, 3), ["-5", "-4", "-3"]);
}

#[test]
fn bytes_are_in_binary_units() {
    let scale = Scale::roomy(over(&[7e9]), Unit::Bytes).unwrap();
    let ticks = scale.ticks(Unit::Bytes, 3);
    assert_eq!(ticks.unit, "GiB");
    assert_eq!(ticks.at[1], (2f64.powi(31), "2".to_owned()));
    let scale = Scale::logarithmic(over(&[2e6, 9e9])).unwrap();
    let powers = labels(scale, Unit::Bytes, 5);
    assert!(powers.iter().all(|text| text.ends_with("iB")), "{powers:?}");
}

#[test]
fn a_log_scale_has_powers_of_ten() {
    let scale = Scale::logarithmic(over(&[0.0, -2.0, 1e-3, 500.0])).unwrap();
    let powers = ["0.001", "0.01", "0.1", "1", "10", "100"];
    assert_eq!(labels(scale, Unit::Number, 6), powers);
    assert_eq!(scale.share(0.0), None);
    let scale = Scale::logarithmic(over(&[1.0, 8.0])).unwrap();
    assert_eq!(labels(scale, Unit::Number, 6), ["1", "2", "5"]);
    assert!(Scale::logarithmic(over(&[0.0, f64::NAN])).is_none());
}

#[test]
fn every_number_has_a_place_on_its_scale() {
    for values in [
        &[0.0][..],
        &[5.0, 5.0],
        &[-f64::MAX, f64::MAX],
        &[f64::from_bits(1), f64::MAX],
        &[1e15, 1e15 + 1.0],
    ] {
        let scales = [
            Scale::tight(over(values)),
            Scale::roomy(over(values), Unit::Number),
            Scale::roomy(over(values), Unit::Bytes),
        ];
        let log = Scale::logarithmic(over(values));
        for scale in scales.into_iter().flatten().chain(log) {
            for share in values.iter().filter_map(|value| scale.share(*value)) {
                assert!((-1e-6..=1.0 + 1e-6).contains(&share), "{scale:?} {share}");
            }
            for (value, _) in scale.ticks(Unit::Seconds, 5).at {
                let share = scale.share(value).unwrap();
                assert!((-1e-6..=1.0 + 1e-6).contains(&share), "{scale:?} {value}");
            }
        }
    }
    assert_eq!(Scale::tight(over(&[f64::NAN])), None);
}

#[test]
fn numbers_are_as_long_as_they_need_to_be() {
    for (unit, value, text) in [
        (Unit::Number, 0.482_13, "0.4821"),
        (Unit::Number, 2.0, "2"),
        (Unit::Number, 0.0, "0"),
        (Unit::Number, -12.5, "-12.5"),
        (Unit::Number, 1_234_567.0, "1.235e6"),
        (Unit::Number, 0.000_012, "1.2e-5"),
        (Unit::Seconds, 0.0125, "12.5 ms"),
        (Unit::Seconds, 0.0, "0 s"),
        (Unit::Seconds, 7200.0, "120 min"),
        (Unit::Seconds, 36_000.0, "10 h"),
        (Unit::Bytes, 6.5 * 1073741824.0, "6.50 GiB"),
        (Unit::Bytes, -1536.0, "-1.5 KiB"),
    ] {
        assert_eq!(unit.value(value), text);
    }
}
