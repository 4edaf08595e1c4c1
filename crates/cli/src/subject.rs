//! What is predicted: a recipe, with what its data would say.

use anyhow::Result;
use leanburn_levers::{Policy, Precision};
use leanburn_memory::trace::Runtime;
use leanburn_memory::{Gpu, KNOWS_POOLS, Maker, Prediction};
use leanburn_train::levers::Target;
use leanburn_train::task::Builds;
use leanburn_train::text::TextFacts;
use leanburn_train::{Backend, BackendKind, Images, Recipe, Text, TrainError, predict, runtime};

use crate::Wrong;
use crate::step::{StepArgs, refuse};

/// A recipe with all that its prediction needs.
#[derive(Clone, Debug)]
pub struct Subject<T: Builds> {
    pub recipe: Recipe<T>,
    pub facts: T::Facts,
    pub backend: Backend,
    /// The half precision that `auto` stands for, where the backend is not here.
    pub half: &'static str,
}

/// What the data would say, where they are not here, and where to run.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    /// `--backend`
    pub backend: Option<Backend>,
    /// A GPU of the catalogue.
    pub gpu: Option<&'a Gpu>,
    /// `--classes`
    pub classes: Option<usize>,
    /// `--tokens`
    pub tokens: Option<usize>,
}

impl Subject<Images> {
    pub fn images(step: &StepArgs, given: &Given) -> Result<Self> {
        refuse("--tokens", "text", given.tokens.is_some())?;
        // A folder of images that is not here is taken for ImageNet.
        let assumed = |_: &Recipe<Images>| Some((1000, "1000 classes".to_owned()));
        let recipe = step.images(given.backend)?;
        Self::new(recipe, given, given.classes, assumed, "--classes")
    }
}

impl Subject<Text> {
    pub fn text(step: &StepArgs, given: &Given) -> Result<Self> {
        refuse("--classes", "images", given.classes.is_some())?;
        let facts = |tokens| TextFacts {
            tokens,
            bytes_per_token: 1.0,
        };
        let assumed = |recipe: &Recipe<Text>| {
            let tokens = recipe.model.vocabulary?;
            Some((facts(tokens), format!("{tokens} tokens")))
        };
        let recipe = step.text(given.backend)?;
        Self::new(recipe, given, given.tokens.map(facts), assumed, "--tokens")
    }
}

impl<T: Builds> Subject<T> {
    fn new(
        mut recipe: Recipe<T>,
        given: &Given,
        facts: Option<T::Facts>,
        assumed: impl Fn(&Recipe<T>) -> Option<(T::Facts, String)>,
        flag: &str,
    ) -> Result<Self> {
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
        let backend = match (recipe.backend.kind, given.gpu) {
            (BackendKind::Auto, Some(gpu)) => backend_of(gpu).into(),
            (BackendKind::Auto, None) => BackendKind::Flex.into(),
            (BackendKind::Flex, Some(_)) => {
                let why = "--device names a GPU, and the backend is the CPU: use --memory, or another backend";
                return Err(Wrong(why.into()).into());
            }
            _ => recipe.backend,
        };
        recipe.backend = backend;
        if runtime(backend).has_pool() && !KNOWS_POOLS {
            eprintln!(
                "note: built without a GPU backend, so what the allocator of {backend} takes beyond the bytes in use \
                 is not counted; --features wgpu counts it"
            );
        }
        T::check(&recipe, &facts, backend)?;
        let subject = Self {
            recipe,
            facts,
            backend,
            half: given.gpu.map_or("bf16", Gpu::half),
        };
        match given.gpu {
            Some(gpu) if !gpu.bf16 && subject.policy()?.compute == Precision::Bf16 => {
                Err(Wrong(format!("{} has no bf16: precision f16, or auto", gpu.name)).into())
            }
            _ => Ok(subject),
        }
    }

    /// The same with a changed recipe.
    pub fn changed(&self, change: impl FnOnce(&mut Recipe<T>)) -> Result<Self> {
        let mut changed = self.clone();
        change(&mut changed.recipe);
        changed.recipe.validate()?;
        T::check(&changed.recipe, &changed.facts, changed.backend)?;
        Ok(changed)
    }

    /// The dtypes of the recipe.
    pub fn policy(&self) -> Result<Policy, TrainError> {
        self.policy_of(&self.recipe)
    }

    /// The dtypes of a recipe there: a backend that is not here is taken to have all of them.
    pub fn policy_of(&self, recipe: &Recipe<T>) -> Result<Policy, TrainError> {
        match runtime(self.backend) {
            #[cfg(feature = "flex")]
            Runtime::Flex => recipe.policy(&burn::tensor::Device::flex()),
            _ if recipe.precision.policy == "auto" => Ok(self.half.parse()?),
            _ => Ok(recipe.precision.policy.parse()?),
        }
    }

    /// Where a changed recipe would run; `policy` is [`Self::policy_of`].
    pub fn target<'a>(
        &'a self,
        policy: &'a dyn Fn(&Recipe<T>) -> Result<Policy, TrainError>,
    ) -> Target<'a, T> {
        Target {
            facts: &self.facts,
            backend: self.backend,
            policy,
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

/// What runs on a card.
pub fn backend_of(gpu: &Gpu) -> BackendKind {
    match gpu.maker {
        Maker::Nvidia => BackendKind::Cuda,
        Maker::Amd => BackendKind::Rocm,
        Maker::Apple => BackendKind::Metal,
    }
}
