//! What several formulas give together.

mod properties;
mod published;

use super::*;
use crate::Bytes;

fn setup(transformer: &str, parallel: &str, recompute: Recompute) -> Setup {
    Setup {
        transformer: transformer.parse().unwrap(),
        parallel: parallel.parse().unwrap(),
        recompute,
        batch: 1,
        states: ModelStates::default(),
    }
}

fn row(setup: &Setup, row: Row) -> Option<Bytes> {
    setup.estimate().unwrap().ledger().get(row)
}

fn figure(setup: &Setup, name: &str) -> u64 {
    let estimate = setup.estimate().unwrap();
    let found = estimate.figures().iter().find(|known| known.name == name);
    match found.unwrap().amount {
        Amount::Count(count) => count,
        Amount::Size(Bytes(bytes)) => bytes,
    }
}

#[test]
fn explain_shows_what_was_evaluated() {
    let mut setup = setup(published::GPT3_175B, "tp=8,sp", Recompute::Full);
    setup.states.zero = Zero::Stage1;
    let estimate = setup.estimate().unwrap();
    let text = estimate.explain().join("\n");
    for line in [
        "L = 96 layers, h = 12288 hidden, a = 96 heads, s = 2048 sequence",
        "activations per layer = 2sbh/t [Korthikanti et al. 2022, section 5, inputs split too] = 6.0 MiB",
        "optimizer state = 12P/d [Rajbhandari et al. 2020, section 3.1: 4 for fp32 parameters, 8 for adam, divided",
        "layer being recomputed = sbh/t(34 + 5as/h) [Korthikanti et al. 2022, eq. 4, one layer] = 342.0 MiB",
        "ZeRO divides by the data-parallel degree only: with dp=1 it saves nothing",
        // Trap B29.
        "not included: allocator (",
        "not included: framework (",
    ] {
        assert!(text.contains(line), "{line}\nis missing from\n{text}");
    }
    let rows = estimate.ledger();
    assert_eq!(rows.known_total(), estimate.total());
    assert_eq!(rows.get(Row::Framework), None);
}
