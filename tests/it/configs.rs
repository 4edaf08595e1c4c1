//! The recipes that ship parse, and say what they claim.

use leanburn::train::{Images, Recipe};

#[test]
fn shipped_recipes_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/configs");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let recipe = Recipe::<Images>::load(&path).unwrap();
        recipe.validate().unwrap();
        let window = recipe.train.batch * recipe.train.accumulate;
        assert_eq!(window, 256, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 2);
}
