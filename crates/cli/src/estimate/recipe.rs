//! What is predicted: a recipe, with what its data would say.

use std::path::Path;

use anyhow::{Context, Result};
use leanburn_levers::Policy;
use leanburn_memory::Prediction;
use leanburn_memory::trace::Runtime;
use leanburn_train::args::Flags;
use leanburn_train::task::Builds;
use leanburn_train::text::TextFacts;
use leanburn_train::{
    Backend, ImageArgs, Images, Recipe, RunArgs, Text, TextArgs, TrainError, predict, runtime,
};

use super::{Args, Wrong};

/// What a recipe trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Images,
    Text,
}

impl Kind {
    /// By the keys that only one of them has; images where none says otherwise.
    pub fn of(config: Option<&Path>) -> Result<Self> {
        let Some(path) = config else {
            return Ok(Self::Images);
        };
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let Ok(table) = toml::from_str::<toml::Table>(&text) else {
            // Told by the recipe's own reader, in a line.
            Recipe::<Images>::load(path)?;
            return Ok(Self::Images);
        };
        let has = |table_name: &str, key: &str| {
            let table = table.get(table_name).and_then(toml::Value::as_table);
            table.is_some_and(|table| table.contains_key(key))
        };
        let is_text = has("model", "preset") || has("data", "context");
        Ok(if is_text { Self::Text } else { Self::Images })
    }
}

/// A recipe with all that its prediction needs.
#[derive(Clone, Debug)]
pub struct Subject<T: Builds> {
    pub recipe: Recipe<T>,
    pub facts: T::Facts,
    pub backend: Backend,
}

impl Subject<Images> {
    pub fn images(args: &Args) -> Result<Self> {
        refuse("--context", "text", args.context.is_some())?;
        refuse("--tokens", "text", args.tokens.is_some())?;
        let flags = ImageArgs {
            image_size: args.image_size,
            ..ImageArgs::default()
        };
        // A folder of images that is not here is taken for ImageNet.
        let assumed = |_: &Recipe<Images>| Some((1000, "1000 classes".to_owned()));
        Self::new(args, &flags, args.classes, assumed, "--classes")
    }
}

impl Subject<Text> {
    pub fn text(args: &Args) -> Result<Self> {
        refuse("--image-size", "images", args.image_size.is_some())?;
        refuse("--classes", "images", args.classes.is_some())?;
        let flags = TextArgs {
            context: args.context,
            ..TextArgs::default()
        };
        let facts = |tokens| TextFacts {
            tokens,
            bytes_per_token: 1.0,
        };
        let assumed = |recipe: &Recipe<Text>| {
            let tokens = recipe.model.vocabulary?;
            Some((facts(tokens), format!("{tokens} tokens")))
        };
        Self::new(args, &flags, args.tokens.map(facts), assumed, "--tokens")
    }
}

fn refuse(flag: &str, kind: &str, given: bool) -> Result<()> {
    match given {
        true => Err(Wrong(format!("{flag} is for {kind}, and the recipe is not")).into()),
        false => Ok(()),
    }
}

impl<T: Builds> Subject<T> {
    fn new(
        args: &Args,
        flags: &impl Flags<T>,
        facts: Option<T::Facts>,
        assumed: impl Fn(&Recipe<T>) -> Option<(T::Facts, String)>,
        flag: &str,
    ) -> Result<Self> {
        let optimizer = args
            .optimizer
            .as_ref()
            .map(|name| name.parse().map_err(Wrong));
        let run = RunArgs {
            config: args.config.clone(),
            batch: args.batch,
            accumulate: args.accumulate,
            precision: args.precision.clone(),
            checkpoint: args.checkpoint.clone(),
            offload: args.offload,
            optimizer: optimizer.transpose()?,
            backend: args.backend,
            ..RunArgs::default()
        };
        let (mut recipe, _) = run.start(flags)?;
        // Weights from a file are as large as new ones.
        let facts = match facts {
            Some(facts) => facts,
            None => match (T::data_facts(&recipe), assumed(&recipe)) {
                (Ok(facts), _) => facts,
                (Err(_), Some((facts, told))) => {
                    eprintln!(
                        "note: the data are not here; {told} assumed, {flag} N says otherwise"
                    );
                    facts
                }
                (Err(error), None) => {
                    return Err(Wrong(format!("{error}; {flag} N predicts without data")).into());
                }
            },
        };
        let backend = match (recipe.backend, &args.device) {
            (Backend::Auto, Some(gpu)) if gpu.to_lowercase().contains("apple") => Backend::Wgpu,
            (Backend::Auto, Some(_)) => Backend::Cuda,
            (Backend::Auto, None) => Backend::Flex,
            (Backend::Flex, Some(_)) => {
                let why = "--device names a GPU, and the backend is the CPU: use --memory, or another backend";
                return Err(Wrong(why.into()).into());
            }
            (backend, _) => backend,
        };
        recipe.backend = backend;
        T::check(&recipe, &facts, backend)?;
        Ok(Self {
            recipe,
            facts,
            backend,
        })
    }

    /// The same with a changed recipe.
    pub fn changed(&self, change: impl FnOnce(&mut Recipe<T>)) -> Result<Self> {
        let mut changed = self.clone();
        change(&mut changed.recipe);
        changed.recipe.validate()?;
        T::check(&changed.recipe, &changed.facts, changed.backend)?;
        Ok(changed)
    }

    /// The dtypes there: a backend that is not here is taken to have all of them.
    pub fn policy(&self) -> Result<Policy, TrainError> {
        match runtime(self.backend) {
            #[cfg(feature = "flex")]
            Runtime::Flex => self.recipe.policy(&burn::tensor::Device::flex()),
            _ if self.recipe.precision.policy == "auto" => Ok("bf16".parse()?),
            _ => Ok(self.recipe.precision.policy.parse()?),
        }
    }

    pub fn predict(&self) -> Result<Prediction, TrainError> {
        predict(&self.recipe, &self.facts, self.policy()?, self.backend)
    }

    /// What it is, in a few words.
    pub fn short_title(&self) -> String {
        let (recipe, batch) = (&self.recipe, self.recipe.train.batch);
        let precision = self.policy().map_or("?", |policy| policy.compute.name());
        let model = T::model_name(&recipe.model);
        format!(
            "{model}, batch {batch}, {precision}, checkpoint {}",
            recipe.checkpoint
        )
    }

    /// The same in a line.
    pub fn title(&self) -> String {
        let recipe = &self.recipe;
        let facts: String = T::facts(recipe)
            .iter()
            .filter(|(_, fact)| !fact.is_null())
            .map(|(name, fact)| format!(", {} {fact}", name.replace('_', " ")))
            .collect();
        let precision = self.policy().map_or("?", |policy| policy.compute.name());
        let accumulate = match recipe.train.accumulate {
            1 => String::new(),
            k => format!(" x {k}"),
        };
        format!(
            "{}, batch {}{accumulate}{facts}, {precision}, checkpoint {}, {}, on {}",
            T::model_name(&recipe.model),
            recipe.train.batch,
            recipe.checkpoint,
            recipe.optimizer.name,
            self.backend,
        )
    }
}
