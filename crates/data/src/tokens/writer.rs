#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::header::{HEADER, Header};
use super::{TextError, TokenizerId};

/// Writes a token file front to back, holding a few kilobytes of it.
///
/// The tokens go to a file beside `path`, named `path` with `.PID-N.part` added, which [`finish`](Self::finish) renames:
/// under its final name a file is always whole, and one that was there before stays until then. Dropped unfinished, the
/// writer removes its file; a crash leaves a `.part`, which nothing reads and anybody may delete.
#[derive(Debug)]
pub struct TokenWriter {
    path: PathBuf,
    file: BufWriter<File>,
    part: Part,
    header: Header,
}

impl TokenWriter {
    /// Begins a file of tokens below `vocab`, made by `tokenizer`; they take 2 bytes each if `vocab` is at most 65,536
    /// and 4 otherwise.
    ///
    /// # Errors
    ///
    /// [`TextError::Vocab`] for a vocabulary of 0 or beyond u32, [`TextError::Write`].
    pub fn create(
        path: impl AsRef<Path>,
        vocab: u64,
        tokenizer: TokenizerId,
    ) -> Result<TokenWriter, TextError> {
        let path = path.as_ref();
        let header = Header {
            width: Header::width_of(vocab)?,
            vocab,
            tokens: 0,
            source_bytes: 0,
            tokenizer,
        };
        let create = || -> io::Result<(Part, BufWriter<File>)> {
            let (part, file) = Part::beside(path)?;
            let mut file = BufWriter::new(file);
            // No header yet: what is left of a crash is no token file.
            file.write_all(&[0; HEADER])?;
            Ok((part, file))
        };
        let (part, file) = create().map_err(|cause| failed(path, cause))?;
        Ok(TokenWriter {
            path: path.to_owned(),
            file,
            part,
            header,
        })
    }

    /// Adds tokens; all of them or, on an error, an unknown part of them.
    ///
    /// # Errors
    ///
    /// [`TextError::OutOfVocab`] for a token that the vocabulary lacks, [`TextError::Write`].
    pub fn push(&mut self, tokens: &[u32]) -> Result<(), TextError> {
        for &token in tokens {
            if u64::from(token) >= self.header.vocab {
                return Err(TextError::OutOfVocab {
                    name: self.path.display().to_string(),
                    position: self.header.tokens,
                    token,
                    vocab: self.header.vocab,
                });
            }
            let bytes = token.to_le_bytes();
            let written = self.file.write_all(&bytes[..self.header.width]);
            written.map_err(|cause| failed(&self.path, cause))?;
            self.header.tokens += 1;
        }
        Ok(())
    }

    /// Completes the file, puts it on the disk and gives it its name; returns the number of tokens.
    ///
    /// `source_bytes` are the bytes of the text that the tokens stand for.
    ///
    /// # Errors
    ///
    /// [`TextError::Write`].
    pub fn finish(mut self, source_bytes: u64) -> Result<u64, TextError> {
        self.header.source_bytes = source_bytes;
        self.put().map_err(|cause| failed(&self.path, cause))?;
        Ok(self.header.tokens)
    }

    fn put(&mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.write_all(&self.header.to_bytes())?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.part.0, &self.path)?;
        // The rename itself is durable only once the folder is; Windows opens no folders.
        #[cfg(unix)]
        File::open(folder_of(&self.path))?.sync_all()?;
        Ok(())
    }
}

/// A file that goes when this does, unless it was renamed.
#[derive(Debug)]
struct Part(PathBuf);

impl Part {
    fn beside(path: &Path) -> io::Result<(Part, File)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it names no file",
            ));
        };
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut name = name.to_owned();
            name.push(format!(".{}-{number}.part", std::process::id()));
            let part = path.with_file_name(name);
            match File::create_new(&part) {
                // Left by a crash of an earlier process with this number, as in containers.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => return Ok((Part(part), file)),
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Gone already once it was renamed, and there is nobody to tell otherwise.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn failed(path: &Path, cause: io::Error) -> TextError {
    TextError::Write {
        path: path.to_owned(),
        cause,
    }
}
