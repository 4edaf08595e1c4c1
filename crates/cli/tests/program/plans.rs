//! Random recipes and budgets: what a plan says of them, a small machine confirms. Each runs in a process of its own
//! whose heap has room for the budget, and what a step does not count.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{leanburn, program};

/// Loading, decoding and printing, which are no part of a step: the most that was seen, doubled.
const BESIDES: u64 = 1 << 20;

/// What two workers of a matrix product keep, which a prediction counts, and a small step may not need.
const WORKERS: u64 = 1 << 20;

/// `LEANBURN_PLANS=50 cargo test --workspace random_plans` takes minutes.
fn count() -> u64 {
    let wanted = std::env::var("LEANBURN_PLANS").ok();
    wanted.map_or(8, |text| text.parse().expect("a number"))
}

/// SplitMix64 (Steele, Lea and Flood 2014): the same plans every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[(self.next() % choices.len() as u64) as usize]
    }
}

fn recipe(random: &mut Random) -> Value {
    let precision = json!({ "policy": random.of(&["fp32", "fp32", "bf16"]) });
    let optimizer = json!({ "name": random.of(&["adamw", "sgd", "lion"]) });
    let train = json!({ "batch": random.of(&[4, 6, 8, 16]), "accumulate": random.of(&[1, 1, 2]) });
    let mut recipe = match random.next() % 2 {
        0 => json!({
            "model": { "depth": random.of(&[18, 50]), "width": random.of(&[16, 32]) },
            "data": { "image_size": random.of(&[32, 48]) },
        }),
        _ => json!({
            "model": {
                "preset": random.of(&["tiny", "small"]), "layers": random.of(&[2, 5]), "heads": 2,
                "width": random.of(&[32, 64]), "vocabulary": 256,
                "attention_chunk": random.of(&[0, 16]), "loss_chunk": random.of(&[0, 64]),
            },
            "data": { "context": random.of(&[64, 128]) },
        }),
    };
    recipe["backend"] = json!("flex");
    for (key, table) in [
        ("precision", precision),
        ("optimizer", optimizer),
        ("train", train),
    ] {
        recipe[key] = table;
    }
    recipe
}

fn write(recipe: &Value, path: &Path) {
    fs::write(path, toml::to_string(recipe).unwrap()).unwrap();
}

fn output(arguments: &[&str]) -> (Option<i32>, Value) {
    let out = leanburn(&[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    let object = serde_json::from_slice(&out.stdout);
    (
        out.status.code(),
        object.unwrap_or_else(|_| panic!("{arguments:?}: {said}")),
    )
}

/// Whether two updates of a recipe get along with so much heap.
fn runs(recipe: &Path, heap: u64) -> bool {
    let out = program()
        .args([
            "probe",
            "--force",
            "--steps",
            "2",
            "--heap",
            &heap.to_string(),
            "--config",
        ])
        .arg(recipe)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    // A process without memory is aborted; all else is a fault.
    let without_memory = said.contains("memory allocation of");
    assert!(out.status.success() || without_memory, "{said}");
    out.status.success()
}

#[test]
fn random_plans_hold_on_a_small_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recipe.toml");
    let path = file.to_str().unwrap();
    let mut random = Random(7);
    for number in 0..count() {
        let recipe = recipe(&mut random);
        write(&recipe, &file);
        let needed = output(&["estimate", "--config", path]).1["needed"]
            .as_u64()
            .unwrap();
        let part = 30 + random.next() % 75;
        let budget = needed * part / 100;
        let memory = budget.to_string();
        let (code, plan) = output(&["plan", "--config", path, "--memory", &memory]);
        let told = format!("plan {number}, {part} % of {needed}: {recipe} {plan}");
        let fits = plan["fits"].as_bool().unwrap();
        assert_eq!(code, Some(if fits { 0 } else { 1 }), "{told}");
        let samples = |recipe: &Value| {
            let train = &recipe["train"];
            train["batch"].as_u64().unwrap() * train["accumulate"].as_u64().unwrap()
        };
        assert_eq!(samples(&recipe), samples(&plan["recipe"]), "{told}");
        write(&plan["recipe"], &file);
        if fits {
            assert!(runs(&file, budget + BESIDES), "{told}");
        } else {
            // The leanest recipe gets along with what it was said to need. Its step takes more than can be used of
            // the budget, as far as a prediction may be off, so that much is not enough.
            let smallest = plan["smallest_budget"].as_u64().unwrap();
            assert!(runs(&file, smallest + BESIDES), "{told}");
            assert!(!runs(&file, budget * 96 / 100 - WORKERS), "{told}");
        }
    }
}
