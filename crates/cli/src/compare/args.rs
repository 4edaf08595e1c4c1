//! Flags of `leanburn compare`.

use std::path::PathBuf;
use std::time::Duration;

use leanburn_train::Backend;

use crate::step::StepArgs;

/// Runs every backend in a process of its own, so that a crash or a leak of one cannot touch another, with the
/// same weights, data and seed.
#[derive(clap::Args, Debug, Default)]
#[command(
    after_help = "A backend that fails is a column with its reason, and the others still run; the exit code is 1 then. \
                  The first update of a GPU backend compiles and tunes kernels, which takes minutes where nothing was \
                  cached yet."
)]
pub struct Args {
    #[command(flatten)]
    pub step: StepArgs,
    /// Backends, with a device's number where it matters: flex,wgpu:cpu,cuda:1 [default: every backend that is
    /// compiled in and has a device].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub backends: Vec<Backend>,
    /// Updates on each.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub steps: u64,
    /// Give a backend up after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// Start even where a step is predicted not to fit into the memory that is free.
    #[arg(long)]
    pub force: bool,
    /// Write a page with everything on it, in one file that works offline.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the stacked bars of the rows as an SVG file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let duration = number.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "want a number of seconds above 0".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_positive_number_of_seconds() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "-1", "nan", "inf", "1e300", "soon", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
