//! What has to hold between any two setups.

use super::*;

/// Small, but every degree below divides it.
const SMALL: &str = "layers=8,hidden=512,heads=8,seq=256,vocab=1000";

fn all_setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for parallel in [
        "tp=1",
        "tp=2",
        "tp=8,sp",
        "pp=4",
        "tp=2,pp=2,sp",
        "tp=4,pp=4,dp=2",
        "dp=16",
    ] {
        for recompute in Recompute::ALL {
            for convention in Convention::ALL {
                for optimizer in Optimizer::ALL {
                    let mut setup = setup(SMALL, parallel, *recompute);
                    setup.states.convention = *convention;
                    setup.states.optimizer = *optimizer;
                    setups.push(setup);
                }
            }
        }
    }
    setups
}

// Trap B30: a training figure that is the same for every batch.
#[test]
fn a_larger_batch_needs_more_activations_and_nothing_else() {
    for small in all_setups() {
        let large = Setup { batch: 2, ..small };
        assert!(row(&large, Row::Activations) > row(&small, Row::Activations));
        for states in [Row::Parameters, Row::Gradients, Row::OptimizerState] {
            assert_eq!(row(&large, states), row(&small, states));
        }
    }
}

#[test]
fn a_longer_sequence_needs_more_than_its_share_where_scores_are_kept() {
    let short = setup(SMALL, "tp=2", Recompute::None);
    let mut long = short;
    long.transformer.sequence *= 2;
    let [short, long] = [short, long].map(|setup| figure(&setup, "activations of all layers"));
    assert!(long > 2 * short);
}

#[test]
fn a_higher_stage_never_needs_more() {
    for setup in all_setups() {
        let total = |zero: &Zero| {
            let mut setup = setup;
            setup.states.zero = *zero;
            setup.estimate().unwrap().total()
        };
        let totals: Vec<_> = Zero::ALL.iter().map(total).collect();
        assert!(totals.is_sorted_by(|lower, higher| lower >= higher));
        assert_eq!(totals[0] == totals[3], setup.parallel.data == 1);
    }
}

#[test]
fn recomputing_more_keeps_less() {
    for setup in all_setups() {
        let kept = |recompute| row(&Setup { recompute, ..setup }, Row::Activations);
        assert!(kept(Recompute::Full) < kept(Recompute::Selective));
        assert!(kept(Recompute::Selective) < kept(Recompute::None));
        let temporaries = row(&setup, Row::Temporaries);
        assert_eq!(temporaries.is_some(), setup.recompute != Recompute::None);
    }
}

#[test]
fn more_ways_keep_less_and_a_split_sequence_less_still() {
    for recompute in [Recompute::None, Recompute::Selective] {
        let kept = |parallel| row(&setup(SMALL, parallel, recompute), Row::Activations);
        assert!(kept("tp=8,sp") < kept("tp=8"));
        assert!(kept("tp=8") < kept("tp=2"));
        assert!(kept("tp=2") < kept("tp=1"));
    }
}

#[test]
fn what_does_not_fit_is_an_error_with_its_formula() {
    let model = "layers=4294967295,hidden=4294967295,heads=1,seq=4294967295,vocab=4294967295";
    let setup = setup(model, "tp=1", Recompute::None);
    let error = setup.estimate().unwrap_err().to_string();
    assert!(
        error.starts_with("parameters of the model = L(12h^2 + 13h) + (v + s)h + 2h exceeds"),
        "{error}"
    );
    let batch = Setup { batch: 0, ..setup };
    assert_eq!(
        batch.estimate().unwrap_err().to_string(),
        "batch can't be `0`: batch is a whole number from 1 to 4294967295"
    );
}
