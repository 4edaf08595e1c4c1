//! Names of an enum's values, as typed and as printed.

/// Gives a `Copy` enum `ALL`, `name`, `Display` and `FromStr` from one table.
macro_rules! names {
    ($type:ident, $what:literal, [$($value:ident = $name:literal),+ $(,)?]) => {
        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// As typed.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let named = Self::ALL.iter().copied().find(|value| value.name() == text);
                named.ok_or_else(|| $crate::names::unknown($what, text, &[$($name),+]))
            }
        }
    };
}

pub(crate) use names;

/// `unknown optimizer 'adam': use sgd, adamw or lion`
pub(crate) fn unknown(what: &str, text: &str, names: &[&str]) -> String {
    let known = match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    };
    format!("unknown {what} '{text}': use {known}")
}
