//! The recipes that ship parse, and say what they claim.

use std::path::Path;

use leanburn::train::{Images, Recipe, Task, Text};

fn load<T: Task>(name: &str) -> Recipe<T> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/configs");
    let recipe = Recipe::load(&Path::new(folder).join(name)).unwrap();
    recipe.validate().unwrap();
    recipe
}

#[test]
fn shipped_recipes_are_valid() {
    for name in ["resnet50.toml", "resnet50-amp.toml"] {
        let recipe = load::<Images>(name);
        assert_eq!(recipe.train.batch * recipe.train.accumulate, 256, "{name}");
    }
    let tokens = |name| {
        let recipe = load::<Text>(name);
        Text::micro_batch(&recipe) * recipe.train.accumulate
    };
    assert_eq!(tokens("gpt-tiny.toml"), 2_048);
    assert_eq!(tokens("gpt-small.toml"), 491_520);
    assert_eq!(tokens("bert-base.toml"), 256 * 512);
    let all = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/configs")).unwrap();
    assert_eq!(all.count(), 5, "each is checked here");
}
