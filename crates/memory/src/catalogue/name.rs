//! Finding a GPU by a name that people type.

use super::{CatalogueError, Gpu};

const MAKERS: [&str; 9] = [
    "nvidia", "geforce", "rtx", "tesla", "amd", "instinct", "radeon", "apple", "gpu",
];
const UNITS: [&str; 2] = ["gb", "gib"];

/// How many similar names an unknown one is answered with.
const NEAREST: usize = 3;

/// The parts of a name that tell GPUs apart: `NVIDIA A100-SXM4-80GB` is `a 100 sxm 4 80`.
pub(super) fn key(name: &str) -> Vec<String> {
    let mut parts = words(name);
    parts.retain(|part| !MAKERS.contains(&part.as_str()) && !UNITS.contains(&part.as_str()));
    parts
}

/// A name in lower case, cut at spaces and signs and between letters and digits.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for c in name.chars().flat_map(char::to_lowercase) {
        // Neither a letter nor a digit: the next one starts a word.
        let kind = c.is_alphanumeric().then(|| c.is_numeric());
        match words.last_mut() {
            Some(word) if kind.is_some() && kind == last => word.push(c),
            _ if kind.is_some() => words.push(c.to_string()),
            _ => {}
        }
        last = kind;
    }
    words
}

/// The keys of every name of a GPU.
pub(super) fn keys(gpu: &Gpu) -> impl Iterator<Item = Vec<String>> {
    names(gpu).map(key)
}

fn names(gpu: &Gpu) -> impl Iterator<Item = &str> {
    std::iter::once(&gpu.name)
        .chain(&gpu.aliases)
        .map(String::as_str)
}

/// The key of a name that ends in a memory size, without that size.
fn unsized_key(name: &str) -> Option<Vec<String>> {
    let sized = words(name)
        .last()
        .is_some_and(|unit| UNITS.contains(&unit.as_str()));
    let mut key = key(name);
    key.pop().filter(|_| sized).map(|_| key)
}

pub(super) fn find<'a>(gpus: &'a [Gpu], name: &str) -> Result<&'a Gpu, CatalogueError> {
    let wanted = key(name);
    let exact = gpus
        .iter()
        .find(|gpu| keys(gpu).any(|key| key == wanted && !key.is_empty()));
    if let Some(gpu) = exact {
        return Ok(gpu);
    }
    // Only a size may be left out: `RTX 2080` is another card than `RTX 2080 Ti`.
    let fits = |gpu: &&Gpu| unsized_key(&gpu.name).is_some_and(|key| key == wanted);
    let found: Vec<&Gpu> = gpus.iter().filter(fits).collect();
    match found[..] {
        [] => Err(CatalogueError::Unknown {
            name: one_line(name),
            nearest: nearest(gpus, &wanted.concat()),
        }),
        [gpu] => Ok(gpu),
        _ => Err(CatalogueError::Ambiguous {
            name: one_line(name),
            choices: found.iter().map(|gpu| gpu.name.clone()).collect(),
        }),
    }
}

/// An error stays one line whatever was typed.
fn one_line(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn nearest(gpus: &[Gpu], wanted: &str) -> Vec<String> {
    let distance = |gpu: &Gpu| {
        let whole = keys(gpu).map(|key| key.concat());
        let all = whole.chain(unsized_key(&gpu.name).map(|key| key.concat()));
        all.map(|key| edits(wanted, &key)).min()
    };
    let mut ranked: Vec<_> = gpus.iter().map(|gpu| (distance(gpu), gpu)).collect();
    // Stable, so that equally near names stay in the order of the file.
    ranked.sort_by_key(|(distance, _)| *distance);
    let names = ranked.into_iter().map(|(_, gpu)| gpu.name.clone());
    names.take(NEAREST).collect()
}

/// The Levenshtein distance: letters to insert, remove or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, c) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(c != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_what_tells_gpus_apart() {
        for (name, expected) in [
            ("NVIDIA GeForce RTX 3090", "3090"),
            ("rtx2080ti", "2080 ti"),
            ("NVIDIA A100-SXM4-80GB", "a 100 sxm 4 80"),
            ("A10G", "a 10 g"),
            ("  apple   M1 Max, 64 GB ", "m 1 max 64"),
            ("GeForce", ""),
        ] {
            assert_eq!(key(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_size_can_be_left_out_and_nothing_else() {
        assert_eq!(unsized_key("A100 80 GB"), Some(key("A100")));
        assert_eq!(unsized_key("RTX 2080 Ti"), None);
        assert_eq!(unsized_key("RTX 3090"), None);
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in [
            ("", "", 0),
            ("3090", "3080", 1),
            ("", "t4", 2),
            ("a10", "a10g", 1),
        ] {
            assert_eq!(edits(from, to), count, "{from} {to}");
            assert_eq!(edits(to, from), count, "{to} {from}");
        }
    }
}
