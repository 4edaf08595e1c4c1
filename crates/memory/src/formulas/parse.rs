//! The texts of the command line: `layers=96,hidden=12288`, `tp=8,sp`, `selective`.

use super::error::{FormulaError, in_range};

/// The entries of `key=value,key=value,flag`: known keys only, each at most once.
pub(super) struct Entries<'a> {
    what: &'static str,
    entries: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Entries<'a> {
    /// Reads `text`; `what` is what it describes, in errors.
    pub(super) fn read(
        what: &'static str,
        keys: &[&str],
        text: &'a str,
    ) -> Result<Self, FormulaError> {
        let mut entries: Vec<(&str, Option<&str>)> = Vec::new();
        for entry in text.split(',') {
            let (key, value) = match entry.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (entry.trim(), None),
            };
            if !keys.contains(&key) {
                return Err(FormulaError::UnknownKey {
                    what,
                    key: key.to_owned(),
                    known: keys.join(", "),
                });
            }
            if entries.iter().any(|(known, _)| *known == key) {
                return Err(FormulaError::RepeatedKey {
                    what,
                    key: key.to_owned(),
                });
            }
            entries.push((key, value));
        }
        Ok(Self { what, entries })
    }

    /// The size under `key`, `None` where it is not given.
    pub(super) fn size(&self, key: &'static str) -> Result<Option<u64>, FormulaError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let given = value.unwrap_or_default();
        // `parse` alone would take `+8`.
        let digits = given.bytes().all(|byte| byte.is_ascii_digit());
        let size = given.parse().ok().filter(|_| digits);
        let size = size.ok_or_else(|| FormulaError::Size {
            key,
            given: given.to_owned(),
        })?;
        in_range(key, size).map(Some)
    }

    /// The size under `key`, which has to be given.
    pub(super) fn required(&self, key: &'static str) -> Result<u64, FormulaError> {
        let what = self.what;
        self.size(key)?
            .ok_or(FormulaError::MissingKey { what, key })
    }

    /// Whether the flag `key` is given.
    pub(super) fn flag(&self, key: &'static str) -> Result<bool, FormulaError> {
        match self.get(key) {
            Some(Some(given)) => Err(FormulaError::Flag {
                key,
                given: given.to_owned(),
            }),
            flag => Ok(flag.is_some()),
        }
    }

    fn get(&self, key: &str) -> Option<Option<&'a str>> {
        let found = self.entries.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| *value)
    }
}

/// Gives a `Copy` enum `ALL`, `name`, `Display` and `FromStr` from one table; `|` adds aliases.
macro_rules! names {
    ($type:ident, $what:literal, [$($value:ident = $name:literal $(| $alias:literal)*),+ $(,)?]) => {
        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// As typed.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::formulas::FormulaError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text.trim() {
                    $($name $(| $alias)* => Ok(Self::$value),)+
                    _ => Err(Self::Err::UnknownName {
                        what: $what,
                        given: text.to_owned(),
                        known: [$($name),+].join(", "),
                    }),
                }
            }
        }
    };
}

pub(super) use names;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Entries<'_>, FormulaError> {
        Entries::read("house", &["rooms", "garden"], text)
    }

    fn message<T>(result: Result<T, FormulaError>) -> String {
        result.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn reads_sizes_and_flags() {
        let entries = read(" rooms = 3 , garden").unwrap();
        assert_eq!(entries.size("rooms"), Ok(Some(3)));
        assert_eq!(entries.flag("garden"), Ok(true));
        let entries = read("garden").unwrap();
        assert_eq!(entries.size("rooms"), Ok(None));
        assert_eq!(
            message(entries.required("rooms")),
            "the house has no `rooms`: add rooms=N, a whole number from 1 to 4294967295"
        );
    }

    #[test]
    fn refuses_keys_by_name() {
        assert_eq!(
            message(read("rooms=3,roms=4")),
            "unknown key `roms` in the house: use rooms, garden"
        );
        assert_eq!(
            message(read("rooms=3,rooms=4")),
            "`rooms` is given twice in the house: give it once"
        );
        for text in ["", ",", "rooms=3,", "rooms 3", "=3"] {
            assert!(
                message(read(text)).starts_with("unknown key `"),
                "`{text}` was taken"
            );
        }
    }

    #[test]
    fn refuses_sizes_with_their_range() {
        for given in [
            "0",
            "-1",
            "+8",
            "1.5",
            "1e3",
            "0x10",
            "abc",
            "",
            "4294967296",
            "99999999999999999999",
        ] {
            let text = format!("rooms={given}");
            assert_eq!(
                message(read(&text).unwrap().size("rooms")),
                format!("rooms can't be `{given}`: rooms is a whole number from 1 to 4294967295")
            );
        }
        assert_eq!(
            message(read("garden=1").unwrap().flag("garden")),
            "`garden=1`: garden takes no value, write garden alone or leave it out"
        );
    }
}
