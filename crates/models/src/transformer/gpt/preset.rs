//! Published decoders by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::GptConfig;

/// The published sizes, and one small enough for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// 4 layers of width 128 on bytes: minutes on a CPU.
    Tiny,
    /// GPT-2, 124M parameters.
    Small,
    /// 355M.
    Medium,
    /// 774M.
    Large,
    /// 1.5B.
    Xl,
    /// Llama, 6.7B.
    #[serde(rename = "llama-7b")]
    Llama7b,
}

impl Preset {
    /// Its sizes.
    pub fn config(self) -> GptConfig {
        match self {
            Self::Tiny => GptConfig::llama(4, 4, 128)
                .with_vocabulary(256)
                .with_context(256)
                .with_tied(true),
            Self::Small => GptConfig::gpt2(12, 12, 768),
            Self::Medium => GptConfig::gpt2(24, 16, 1024),
            Self::Large => GptConfig::gpt2(36, 20, 1280),
            Self::Xl => GptConfig::gpt2(48, 25, 1600),
            Self::Llama7b => GptConfig::llama(32, 32, 4096),
        }
    }

    const NAMES: [(&str, Self); 6] = [
        ("tiny", Self::Tiny),
        ("small", Self::Small),
        ("medium", Self::Medium),
        ("large", Self::Large),
        ("xl", Self::Xl),
        ("llama-7b", Self::Llama7b),
    ];
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, preset)| *preset).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            format!("unknown preset '{text}': use one of {names}")
        })
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, preset)| preset == self);
        f.write_str(found.map_or("custom", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trap B25: the tied head counts once.
    #[test]
    fn presets_have_their_published_sizes() {
        let sizes = [
            (Preset::Small, 124_439_808),
            (Preset::Medium, 354_823_168),
            (Preset::Large, 774_030_080),
            (Preset::Xl, 1_557_611_200),
            (Preset::Llama7b, 6_738_415_616),
        ];
        for (preset, parameters) in sizes {
            assert_eq!(preset.config().parameters(), parameters, "{preset}");
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
    }
}
