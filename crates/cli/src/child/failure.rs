//! Why a backend failed, from what its process left behind.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// A backend that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// In a line.
    pub reason: String,
    /// Whether memory ran out.
    pub out_of_memory: bool,
    /// How far its last recorded step came.
    pub last_mark: Option<String>,
}

/// What allocators, drivers and Burn say when memory runs out; in lower case.
const OUT_OF_MEMORY: [&str; 9] = [
    "out of memory",
    "out_of_memory",
    "outofmemory",
    "memory allocation of",
    "no pool handles allocation of size",
    "memory page",
    "not enough memory",
    "buffertoobig",
    "can't allocate",
];

/// Longer lines are cut.
const LONGEST: usize = 300;

impl Failure {
    /// `status` is `None` where the limit came first.
    pub fn of(
        status: Option<ExitStatus>,
        limit: Option<Duration>,
        said: &str,
        trail: &str,
    ) -> Self {
        let lower = said.to_lowercase();
        let killed = status.is_some_and(was_killed);
        let out_of_memory = OUT_OF_MEMORY.iter().any(|words| lower.contains(words));
        let ended = match (status, limit) {
            (None, Some(limit)) => format!("given up after {} s", limit.as_secs_f64()),
            (None, None) => "given up".into(),
            (Some(_), _) if killed => {
                "killed from outside, which is what a system does that runs out of memory".into()
            }
            (Some(status), _) => format!("ended with {status}"),
        };
        let reason = match cause(said) {
            Some(cause) if status.is_some() && !killed => cause,
            _ => ended,
        };
        Self {
            reason: match out_of_memory && !reason.to_lowercase().contains("memory") {
                true => format!("out of memory: {reason}"),
                false => reason,
            },
            out_of_memory,
            last_mark: trail.lines().last().map(str::to_owned),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.last_mark {
            Some(mark) => write!(f, " (the last step came to: {mark})"),
            None => Ok(()),
        }
    }
}

/// The error that it ended with, or the first panic.
fn cause(said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let error = lines
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("error: "));
    let panic = || {
        let at = lines.iter().position(|line| line.contains("panicked at"))?;
        lines[at + 1..]
            .iter()
            .find(|line| !line.is_empty())
            .copied()
    };
    let abort = || {
        lines
            .iter()
            .rev()
            .find(|line| line.contains("memory allocation of"))
            .copied()
    };
    let cause = error.or_else(panic).or_else(abort)?;
    Some(cause.chars().take(LONGEST).collect())
}

/// By SIGKILL, which is what a system does that runs out of memory.
#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

#[cfg(not(unix))]
fn was_killed(_: ExitStatus) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn failure(raw: i32, said: &str) -> Failure {
        Failure::of(
            Some(ExitStatus::from_raw(raw)),
            None,
            said,
            "start, 1 MiB in use\nforward 3, 2 MiB in use\n",
        )
    }

    /// Traps B39 and B40: what Burn's panics mean is said.
    #[test]
    fn memory_that_ran_out_is_recognised() {
        let pool = "thread 'main' panicked at src/memory.rs:1:2:\nNo pool handles allocation of size 411041792\nnote: run with";
        for said in [
            pool,
            "thread 'x' panicked at a.rs:1:1:\nMemory page 0 doesn't exist",
            "memory allocation of 4395368448 bytes failed",
            "error: CUDA_ERROR_OUT_OF_MEMORY",
            "thread 'main' panicked at a.rs:1:1:\n\nAllocation failed: Out of memory",
        ] {
            let failure = failure(256, said);
            assert!(failure.out_of_memory, "{said}");
            assert!(
                failure.reason.to_lowercase().contains("memory"),
                "{failure}"
            );
            assert_eq!(
                failure.last_mark.as_deref(),
                Some("forward 3, 2 MiB in use")
            );
        }
        assert!(failure(256, pool).reason.contains("411041792"));
        // Somebody else may have sent the signal.
        let killed = failure(9, "");
        assert!(
            !killed.out_of_memory && killed.reason.contains("memory"),
            "{killed}"
        );
    }

    #[test]
    fn other_failures_are_told_as_they_are() {
        let wrong = failure(
            512,
            "update 1: loss 2.3\nerror: --backend cuda: not compiled in\n",
        );
        assert_eq!(wrong.reason, "--backend cuda: not compiled in");
        assert!(!wrong.out_of_memory);
        assert_eq!(
            failure(11, "").reason,
            format!("ended with {}", ExitStatus::from_raw(11))
        );
        let late = Failure::of(None, Some(Duration::from_secs(2)), "update 1", "");
        assert_eq!(late.to_string(), "given up after 2 s");
        let long = failure(256, &format!("error: {}", "x".repeat(10_000)));
        assert!(long.reason.len() <= LONGEST);
    }
}
