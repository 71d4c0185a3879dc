//! Function names in images, from PDB files.
//!
//! A PDB belongs to an image if its GUID and age match those in the image's debug directory
//! (`CodeView` record RSDS), which events in merged traces repeat. For traces without these events,
//! a PDB that the user specifies is used for images with the same name.
//!
//! A damaged file can make the third-party PDB parser panic, exhaust the stack or memory, or loop
//! forever. A program can therefore read each PDB in a separate process ([`Symbols::read_by`],
//! [`answer`]), whose failure affects only that PDB.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use etw_wire::Guid;

#[cfg_attr(feature = "symbols", path = "symbols/contents.rs")]
#[cfg_attr(not(feature = "symbols"), path = "symbols/refused.rs")]
mod contents;
mod pdb;

use crate::decode::wpp::{DefectKind, Formats};
use crate::input::{MAX_PDB, read_all};
use pdb::Pdb;

/// The identity of an image's symbols (`CodeView` record RSDS).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct SymbolId {
    /// The GUID of the PDB.
    pub guid: Guid,
    /// The age of the PDB.
    pub age: u32,
    /// The name of the PDB.
    pub pdb: Arc<str>,
}

/// The reason why a PDB could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The program that reads PDBs could not be started.
    #[error("cannot start {} to read symbols: {source}", program.display())]
    Reader {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a well-formed PDB.
    #[error("cannot read the symbols of {}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
}

/// A WPP message in the annotations of a PDB that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: cannot read the message {number} of the annotations: {kind}", path.display())]
pub struct SkippedMessage {
    /// The file.
    pub path: PathBuf,
    /// The message's number among the file's messages, counting from 1.
    pub number: usize,
    /// The kind of defect.
    pub kind: DefectKind,
}

/// The functions in images.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    by_id: HashMap<Guid, Arc<Pdb>>,
    by_name: HashMap<String, Arc<Pdb>>,
    /// The formats of WPP messages in the annotations of all PDBs.
    formats: Formats,
    reader: Option<Reader>,
}

/// The program that reads PDBs, and its arguments.
#[derive(Clone, Debug)]
struct Reader {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Symbols {
    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads each PDB in a separate process, which a damaged PDB can crash. The program receives
    /// the PDB on standard input, and writes the output of [`answer`] to standard output. Without
    /// such a program, PDBs are read in this process, which a damaged PDB can end if panics abort.
    #[must_use]
    pub fn read_by(
        mut self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        self.reader = Some(Reader {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// Returns the formats of WPP messages in the PDBs' annotations. Malformed annotations are
    /// skipped.
    #[must_use]
    pub const fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Returns true if no PDBs are loaded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Loads a PDB that the user specifies. It is also used for images with the same name whose
    /// identity is unknown.
    ///
    /// # Errors
    /// Fails with [`SymbolError`] if the file cannot be read or is not a well-formed PDB.
    pub fn load(&mut self, path: &Path) -> Result<(), SymbolError> {
        let pdb = self.add(path)?;
        self.by_name.insert(stem(&path.to_string_lossy()), pdb);
        Ok(())
    }

    /// Loads all PDBs in a folder, including the subfolders of a symbol store. Returns the errors
    /// of skipped PDBs.
    ///
    /// # Errors
    /// Fails with [`SymbolError::Io`] if a folder cannot be read.
    pub fn load_folder(&mut self, folder: &Path) -> Result<Vec<SymbolError>, SymbolError> {
        // A symbol store has one folder level for the name and one for the identity.
        const DEPTH: usize = 3;
        let mut skipped = Vec::new();
        let mut folders = vec![(folder.to_owned(), DEPTH)];
        while let Some((folder, depth)) = folders.pop() {
            let failed = |source| SymbolError::Io { path: folder.clone(), source };
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let is_pdb =
                    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdb"));
                if path.is_dir() {
                    if depth > 0 {
                        folders.push((path, depth - 1));
                    }
                } else if is_pdb && let Err(error) = self.add(&path) {
                    skipped.push(error);
                }
            }
        }
        Ok(skipped)
    }

    fn add(&mut self, path: &Path) -> Result<Arc<Pdb>, SymbolError> {
        let failed = |source| SymbolError::Io { path: path.to_owned(), source };
        let malformed = |reason| SymbolError::Malformed { path: path.to_owned(), reason };
        let pdb = if let Some(reader) = &self.reader {
            let file = File::open(path).map_err(failed)?;
            let answer = reader.read(file).map_err(|source| SymbolError::Reader {
                program: reader.program.clone(),
                source,
            })?;
            answer.map_err(malformed)?
        } else {
            parse(File::open(path).map_err(failed)?).map_err(malformed)?
        };
        for message in &pdb.messages {
            // A message without a format is shown as bytes.
            let _malformed = self.formats.add_annotation(message);
        }
        let pdb = Arc::new(pdb);
        self.by_id.insert(Guid::from_bytes(pdb.guid), Arc::clone(&pdb));
        Ok(pdb)
    }

    /// Returns the function at an offset in an image, with the offset in the function, such as
    /// `DriverEntry+0x10`. `id` is the identity of the image's symbols, if known.
    #[must_use]
    #[doc(hidden)]
    pub fn function(&self, image: &str, id: Option<&SymbolId>, offset: u64) -> Option<String> {
        let pdb = match id {
            Some(id) => {
                let pdb = self.by_id.get(&id.guid)?;
                pdb.ages.contains(&id.age).then_some(pdb)?
            }
            None => self.by_name.get(&stem(image))?,
        };
        let offset = u32::try_from(offset).ok()?;
        let after = pdb.functions.partition_point(|(start, ..)| *start <= offset);
        let (start, end, name) = pdb.functions.get(after.checked_sub(1)?)?;
        (offset < *end).then(|| format!("{name}+{:#x}", offset - start))
    }
}

/// Returns the formats of WPP messages in a PDB's annotations, and the messages that cannot be used.
/// Reads the PDB in this process, which a damaged PDB can end if panics abort.
///
/// # Errors
/// Fails with [`SymbolError`] if the file cannot be read or is not a well-formed PDB.
pub fn formats_of(path: &Path) -> Result<(Formats, Vec<SkippedMessage>), SymbolError> {
    let file =
        File::open(path).map_err(|source| SymbolError::Io { path: path.to_owned(), source })?;
    let malformed = |reason| SymbolError::Malformed { path: path.to_owned(), reason };
    let bytes = whole(file).map_err(malformed)?;
    let messages = catch_unwind(|| contents::messages(bytes))
        .map_err(|_| malformed("the file is damaged".to_owned()))?
        .map_err(malformed)?;
    let mut formats = Formats::new();
    let mut skipped = Vec::new();
    for (number, message) in (1..).zip(&messages) {
        if let Err(kind) = formats.add_annotation(message) {
            skipped.push(SkippedMessage { path: path.to_owned(), number, kind });
        }
    }
    Ok((formats, skipped))
}

/// Returns a file's name without folders and extension, in lower case.
fn stem(path: &str) -> String {
    let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.to_ascii_lowercase()
}

/// The first bytes of a PDB.
const MAGIC: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1ADS\0\0\0";
/// The time limit of a process that reads a PDB.
const TIME_LIMIT: Duration = Duration::from_mins(2);
/// The maximum size of a process's answer, in bytes.
const MAX_ANSWER: u64 = 512 << 20;

/// A process's answer: the functions, or the reason why there are none.
type Answer = Result<Pdb, String>;

/// Reads a PDB, and writes its functions for the process that requested them with
/// [`Symbols::read_by`]. Panics if a damaged PDB makes the parser panic; the panic reports the
/// damage to that process.
///
/// # Errors
/// Fails with the error of the output.
#[doc(hidden)]
pub fn answer(pdb: &mut impl Read, out: &mut impl Write) -> io::Result<()> {
    let answer: Answer = whole(pdb).and_then(contents::functions);
    serde_json::to_writer(&mut *out, &answer)?;
    out.flush()
}

impl Reader {
    /// Lets a separate process read a PDB, and ends that process at the time limit.
    fn read(&self, pdb: File) -> io::Result<Answer> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(pdb)
            .stdout(Stdio::piped())
            // A panic message would not help the user.
            .stderr(Stdio::null())
            .spawn()?;
        let out = child.stdout.take();
        let child = Arc::new(Mutex::new(child));
        let (done, ended) = mpsc::channel::<()>();
        let in_time = Arc::clone(&child);
        let watcher = thread::spawn(move || {
            let late = ended.recv_timeout(TIME_LIMIT) == Err(RecvTimeoutError::Timeout);
            if late {
                // Fails if the process has already ended.
                let _ended = lock(&in_time).kill();
            }
            late
        });
        let mut bytes = Vec::new();
        let received = out.map_or(Ok(0), |out| out.take(MAX_ANSWER).read_to_end(&mut bytes));
        drop(done);
        let late = watcher.join().unwrap_or(false);
        // A process that is still writing has exceeded the limit.
        let _ended = lock(&child).kill();
        let status = lock(&child).wait()?;
        received?;
        Ok(if late {
            let seconds = TIME_LIMIT.as_secs();
            Err(format!("reading it took more than {seconds} seconds"))
        } else {
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Err(format!("the file is damaged (its reader: {status})")))
        })
    }
}

/// Returns the locked process, even after a thread that held the lock has panicked.
fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a PDB as a whole.
fn whole(mut pdb: impl Read) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| error.to_string();
    let mut start = Vec::new();
    pdb.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
    if start != MAGIC {
        return Err("it is not a PDB of version 7".to_owned());
    }
    read_all(MAGIC.chain(pdb), MAX_PDB).map_err(failed)
}

/// Reads the functions of a PDB in this process.
fn parse(pdb: File) -> Answer {
    let bytes = whole(pdb)?;
    catch_unwind(|| contents::functions(bytes))
        .unwrap_or_else(|_| Err("the file is damaged".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let pdb = Arc::new(Pdb {
            guid: [7; 16],
            ages: [1, 3],
            functions: vec![(0x10, 0x20, "First".into()), (0x30, u32::MAX, "Last".into())],
            messages: Vec::new(),
        });
        let mut symbols = Symbols::new();
        symbols.by_id.insert(Guid::from_bytes([7; 16]), Arc::clone(&pdb));
        symbols.by_name.insert("driver".to_owned(), pdb);
        symbols
    }

    #[test]
    fn a_function_reaches_from_its_start_to_its_end() {
        let symbols = symbols();
        let at = |offset| symbols.function(r"\Driver\DRIVER.sys", None, offset);
        assert_eq!(at(0xF), None);
        assert_eq!(at(0x10).as_deref(), Some("First+0x0"));
        assert_eq!(at(0x1F).as_deref(), Some("First+0xf"));
        assert_eq!(at(0x20), None);
        assert_eq!(at(0x31).as_deref(), Some("Last+0x1"));
        assert_eq!(at(0x1_0000_0031), None);
        assert_eq!(symbols.function("other.sys", None, 0x10), None);
    }

    #[test]
    fn the_symbols_of_an_identity_have_its_guid_and_one_of_its_ages() {
        let symbols = symbols();
        let of = |guid, age| {
            let id = SymbolId { guid: Guid::from_bytes(guid), age, pdb: "any.pdb".into() };
            symbols.function("any.sys", Some(&id), 0x10).is_some()
        };
        assert!(of([7; 16], 1));
        assert!(of([7; 16], 3));
        assert!(!of([7; 16], 2));
        assert!(!of([8; 16], 1));
    }
}
