//! Which network is quantized, and on which data.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use leanburn_compress::file::Manifest;
use leanburn_train::args::Flags;
use leanburn_train::text::Size;
use leanburn_train::{ImageArgs, Images, Recipe, RunArgs, Task, Text, TextArgs};

use super::Args;
use crate::Wrong;
use crate::step::{Kind, refuse};

/// A recipe of either kind.
pub enum Subject {
    Images(Box<Recipe<Images>>),
    Text(Box<Recipe<Text>>),
}

/// Where a recipe comes from.
enum Origin {
    /// A file, or the defaults.
    File(Option<std::path::PathBuf>),
    /// What a quantized network says of itself.
    Text(String),
}

/// The recipe that the flags amount to.
pub fn of(args: &Args) -> Result<Subject> {
    let origin = match (&args.from, &args.run) {
        (Some(path), _) => Origin::Text(about(path)?),
        (None, Some(run)) => Origin::File(Some(run.join("recipe.toml"))),
        (None, None) => Origin::File(args.config.clone()),
    };
    let named = args.model.as_deref();
    let kind = match (named, &origin) {
        (Some(name), _) if name.starts_with("resnet") => Kind::Images,
        (Some(_), _) => Kind::Text,
        (None, Origin::File(path)) => Kind::of(path.as_deref())?,
        (None, Origin::Text(text)) => Kind::of_text(text).unwrap_or(Kind::Images),
    };
    let weights = match &args.run {
        Some(run) => Some(run.join("model.safetensors")),
        None => args.weights.clone(),
    };
    if let (Kind::Images, Some(_)) = (kind, args.smooth) {
        let why = "--smooth is for Transformers: a ResNet's norms are folded into its convolutions";
        return Err(Wrong(why.into()).into());
    }
    match kind {
        Kind::Images => {
            refuse("--context", "text", args.context.is_some())?;
            let flags = ImageArgs {
                depth: named.map(str::parse).transpose().map_err(Wrong)?,
                image_size: args.image_size,
                ..ImageArgs::default()
            };
            let mut recipe = recipe(args, origin, weights, &flags)?;
            recipe.model.new_head = false;
            require_weights(args, recipe.model.weights.as_deref())?;
            Ok(Subject::Images(Box::new(recipe)))
        }
        Kind::Text => {
            refuse("--image-size", "images", args.image_size.is_some())?;
            let preset = named.map(str::parse::<Size>).transpose();
            let flags = TextArgs {
                preset: preset.map_err(Wrong)?,
                context: args.context,
                ..TextArgs::default()
            };
            let recipe = recipe(args, origin, weights, &flags)?;
            require_weights(args, recipe.model.weights.as_deref())?;
            Ok(Subject::Text(Box::new(recipe)))
        }
    }
}

fn about(path: &Path) -> Result<String> {
    Manifest::read(path)?.about.with_context(|| {
        let path = path.display();
        format!("{path}: does not say what network it is; it was not written by leanburn quantize")
    })
}

fn recipe<T: Task>(
    args: &Args,
    origin: Origin,
    weights: Option<PathBuf>,
    flags: &impl Flags<T>,
) -> Result<Recipe<T>> {
    let run = RunArgs {
        data: args.data.clone(),
        weights,
        batch: args.batch,
        backend: args.backend,
        ..RunArgs::default()
    };
    match origin {
        Origin::File(config) => Ok(RunArgs { config, ..run }.start(flags)?.0),
        Origin::Text(text) => {
            let file = tempfile::NamedTempFile::new()?;
            std::fs::write(file.path(), text)?;
            let config = Some(file.path().to_owned());
            Ok(RunArgs { config, ..run }.start(flags)?.0)
        }
    }
}

fn require_weights(args: &Args, weights: Option<&Path>) -> Result<()> {
    if args.from.is_some() || weights.is_some() {
        return Ok(());
    }
    let why = "an untrained network is not worth quantizing: --weights FILE, or --run DIR for the folder of a training \
               run (cargo run --example resnet_amp leaves runs/last)";
    Err(Wrong(why.into()).into())
}
