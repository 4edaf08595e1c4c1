//! A plain text as training data: its tokens are made first.

use std::path::{Path, PathBuf};

use clap::Args;
use leanburn_data::tokens::{InvalidUtf8, Tokenizer, build};
use leanburn_data::{DataError, TextError};

use super::TextArgs;
use crate::{RunArgs, TrainError};

/// Flags for a text that is no token file yet.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SourceArgs {
    /// Make tokens of this text first (.gz too), into tokens.bin in the run's folder, and train on them:
    /// bytes, or those of --tokenizer.
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub text_file: Option<PathBuf>,
    /// Replace what is not UTF-8 in --text-file instead of stopping there; with --tokenizer only.
    #[arg(long)]
    pub replace_invalid: bool,
}

impl SourceArgs {
    /// Makes the token file, if there is a text to make it of, and has the run read that.
    pub fn prepare(&self, run: &mut RunArgs, text: &TextArgs) -> Result<(), TrainError> {
        let Some(file) = &self.text_file else {
            return Ok(());
        };
        let out = run.output().join("tokens.bin");
        std::fs::create_dir_all(run.output()).map_err(TrainError::io(&out))?;
        self.tokens(file, text.tokenizer.as_deref(), &out)
            .map_err(DataError::from)?;
        run.data = Some(out.display().to_string());
        Ok(())
    }

    fn tokens(&self, text: &Path, tokenizer: Option<&Path>, out: &Path) -> Result<(), TextError> {
        let tokenizer = match tokenizer {
            Some(path) => Tokenizer::open(path)?,
            None => Tokenizer::Bytes,
        };
        let invalid = match self.replace_invalid {
            true => InvalidUtf8::Replace,
            false => InvalidUtf8::Refuse,
        };
        let report = build(text, &tokenizer, invalid, out)?;
        let (tokens, bytes) = (report.tokens, report.bytes);
        eprintln!("{}: {tokens} tokens of {bytes} bytes", out.display());
        Ok(())
    }
}
