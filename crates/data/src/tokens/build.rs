#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{InvalidUtf8, TextError, TokenWriter, Tokenizer};

/// The first bytes of every gzip file.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What [`build`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildReport {
    /// Tokens in the file.
    pub tokens: u64,
    /// Bytes of text, decompressed.
    pub bytes: u64,
    /// Sequences of bytes that were not UTF-8 and were replaced.
    pub replaced: u64,
}

/// Tokenizes the text file `text` into the token file `out`, in bounded memory.
///
/// A file that is named `.gz` or begins as gzip does is decompressed on the way. `out` is there only once it is whole.
///
/// # Errors
///
/// [`TextError::Read`] if `text` cannot be opened, [`TextError::InFile`] with what [`Tokenizer::encode_file`] reports,
/// and what [`TokenWriter`] reports.
pub fn build(
    text: impl AsRef<Path>,
    tokenizer: &Tokenizer,
    invalid: InvalidUtf8,
    out: impl AsRef<Path>,
) -> Result<BuildReport, TextError> {
    let (text, out) = (text.as_ref(), out.as_ref());
    let failed = |cause| TextError::Read {
        path: text.to_owned(),
        cause,
    };
    let mut reader = BufReader::with_capacity(1 << 16, File::open(text).map_err(failed)?);
    if is_same(text, out) {
        return Err(TextError::Write {
            path: out.to_owned(),
            cause: io::Error::new(io::ErrorKind::InvalidInput, "it is the text itself"),
        });
    }
    let named = text
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"));
    let zipped = named || reader.fill_buf().map_err(failed)?.starts_with(&GZIP);
    let report = match zipped {
        true => {
            let reader = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader));
            build_from(reader, tokenizer, invalid, out)
        }
        false => build_from(reader, tokenizer, invalid, out),
    };
    report.map_err(|error| match error {
        TextError::Text { .. } | TextError::InvalidUtf8 { .. } | TextError::Tokenizing { .. } => {
            TextError::InFile {
                path: text.to_owned(),
                error: Box::new(error),
            }
        }
        error => error,
    })
}

/// Tokenizes all that `text` gives into the token file `out`, in bounded memory; nothing is decompressed.
///
/// # Errors
///
/// What [`Tokenizer::encode_file`] and [`TokenWriter`] report.
pub fn build_from(
    text: impl BufRead,
    tokenizer: &Tokenizer,
    invalid: InvalidUtf8,
    out: impl AsRef<Path>,
) -> Result<BuildReport, TextError> {
    let mut writer = TokenWriter::create(out, tokenizer.vocab(), tokenizer.id())?;
    let done = tokenizer.encode_file(text, invalid, |tokens| writer.push(tokens))?;
    Ok(BuildReport {
        tokens: writer.finish(done.bytes)?,
        bytes: done.bytes,
        replaced: done.replaced,
    })
}

/// Whether both names lead to one file, which is there.
fn is_same(one: &Path, two: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(two)) {
        (Ok(one), Ok(two)) => one == two,
        _ => false,
    }
}
