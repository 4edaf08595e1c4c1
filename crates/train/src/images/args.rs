//! Command-line flags of an image run.

use clap::Args;
use leanburn_models::{Depth, Stem};

use super::Images;
use crate::Recipe;
use crate::args::{Flags, set};

/// Flags over the recipe's `[model]` and `[data]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ImageArgs {
    /// ResNet depth: 18, 34, 50, 101 or 152.
    #[arg(long, value_name = "LAYERS")]
    pub depth: Option<Depth>,
    /// First layers: imagenet (7x7 stride 2, max-pool) or small (3x3 stride 1, for images of 32 pixels
    /// and less); by default small up to 16 pixels.
    #[arg(long, value_name = "STEM", value_parser = parse_stem)]
    pub stem: Option<Stem>,
    /// Leave the classifier of --weights out and train a new one (another number of classes).
    #[arg(long)]
    pub new_head: bool,
    /// Height and width of the images, in pixels (8 to 4096).
    #[arg(long, value_name = "PIXELS")]
    pub image_size: Option<usize>,
    /// Threads that decode images.
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Stop at the first unreadable image instead of skipping it.
    #[arg(long)]
    pub strict_data: bool,
}

fn parse_stem(text: &str) -> Result<Stem, String> {
    match text {
        "imagenet" => Ok(Stem::Imagenet),
        "small" => Ok(Stem::Small),
        _ => Err(format!("unknown stem '{text}': use imagenet or small")),
    }
}

impl Flags<Images> for ImageArgs {
    fn apply(&self, recipe: &mut Recipe<Images>) {
        let (model, data) = (&mut recipe.model, &mut recipe.data);
        set(&mut model.depth, self.depth);
        model.stem = self.stem.or(model.stem);
        model.new_head |= self.new_head;
        set(&mut data.image_size, self.image_size);
        set(&mut data.workers, self.workers);
        data.strict |= self.strict_data;
    }
}
