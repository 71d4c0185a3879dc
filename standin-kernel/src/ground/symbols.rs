//! The names and source lines of the code in an image, from its PDB file.

use std::{
    collections::HashMap,
    fs,
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use pdb_addr2line::{
    Context, ContextPdbData, TypeFormatterFlags,
    pdb::{self, FallibleIterator as _, PDB},
};

use super::{
    culprit::{Source, is_foreign},
    flight,
};

/// Set if PDBs must not be read.
static DISABLED: AtomicBool = AtomicBool::new(false);

/// Disables the reading of PDBs in this process from now on.
pub fn disable() {
    DISABLED.store(true, Ordering::Relaxed);
}

/// Runs `body`, which reads further data from a PDB, unless reading PDBs is disabled.
pub fn reading<R>(path: &Path, body: impl FnOnce() -> R) -> Option<R> {
    let is_read = !DISABLED.load(Ordering::Relaxed);
    is_read.then(|| flight::reading_symbols(&path.display().to_string(), body))
}

/// An image's reference to its PDB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdbReference {
    /// The path at which the linker wrote the PDB.
    pub path: String,
    /// The PDB's id, as stored in the file. Each build has a different id.
    pub id: [u8; 16],
}

/// The symbols of an image. The PDB is read when the first symbol is requested.
#[derive(Default)]
pub struct Symbols {
    /// The possible paths of the PDB, in the order in which they are tried.
    places: Vec<PathBuf>,
    id: Option<[u8; 16]>,
    pdb: OnceLock<Option<Arc<Pdb>>>,
}

impl Symbols {
    /// Creates the symbols of the image at a path. The PDB is searched for beside the image, under
    /// the image's name and under the name that the linker gave it, and then at the path where the
    /// linker wrote it.
    pub fn for_image(image: &Path, reference: Option<&PdbReference>) -> Self {
        let mut places = vec![image.with_extension("pdb")];
        if let Some(reference) = reference {
            let name = reference.path.rsplit(['/', '\\']).next();
            places.extend(name.map(|name| image.with_file_name(name)));
            places.push(PathBuf::from(&reference.path));
        }
        Self { places, id: reference.map(|reference| reference.id), pdb: OnceLock::new() }
    }

    /// Returns the possible paths of the PDB.
    pub fn into_places(self) -> Vec<PathBuf> {
        self.places
    }

    /// Returns the functions at this offset in the image, innermost inlined function first. The
    /// list is empty if no PDB of the image's build was found, or if the PDB does not cover the
    /// offset.
    pub fn at(&self, offset: u32) -> Vec<Source> {
        if DISABLED.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let pdb = self.pdb.get_or_init(|| self.places.iter().find_map(|path| find(path, self.id)));
        pdb.as_ref().map_or_else(Vec::new, |pdb| pdb.at(offset))
    }

    /// Returns the path of the PDB that was read, if it has no line information for the author's
    /// code.
    pub fn without_lines(&self) -> Option<&str> {
        let pdb = self.pdb.get()?.as_ref()?;
        (!pdb.has_lines).then_some(pdb.path.as_str())
    }
}

/// A PDB. It is kept until the process ends, so that the PDB of an image that is loaded many times
/// is parsed once.
struct Pdb {
    path: String,
    id: [u8; 16],
    /// Set if the PDB has line information for the author's code.
    has_lines: bool,
    context: Mutex<Context<'static, 'static>>,
}

/// The version of a file: its path, modification time and length.
type Version = (PathBuf, Option<SystemTime>, u64);

/// Returns the PDB at `path` if it has this id.
fn find(path: &Path, id: Option<[u8; 16]>) -> Option<Arc<Pdb>> {
    static KNOWN: OnceLock<Mutex<HashMap<Version, Option<Arc<Pdb>>>>> = OnceLock::new();
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let version = (path.to_owned(), about.modified().ok(), about.len());
    let mut known = KNOWN.get_or_init(Mutex::default).lock();
    let pdb = known.entry(version).or_insert_with(|| Pdb::read(path).map(Arc::new));
    pdb.clone().filter(|pdb| id.is_none_or(|id| id == pdb.id))
}

impl Pdb {
    /// Reads a file.
    ///
    /// The parser is a third-party crate, and a damaged file can make it panic or overflow the
    /// stack. A stack overflow, or a panic that does not unwind, ends the process. The parent
    /// process then runs the driver again without symbols.
    fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let path = path.display().to_string();
        flight::reading_symbols(&path, || Self::parse(path.clone(), bytes))
    }

    /// Parses a file's bytes.
    fn parse(path: String, bytes: Vec<u8>) -> Option<Self> {
        catch_unwind(|| {
            let mut pdb = PDB::open(Cursor::new(bytes)).ok()?;
            let id = pdb.pdb_information().ok()?.guid.to_bytes_le();
            // Only a PDB that is known to have no line information causes a note.
            let has_lines = has_lines(&mut pdb).unwrap_or(true);
            let data = ContextPdbData::try_from_pdb(pdb).ok()?;
            let flags = TypeFormatterFlags::default() | TypeFormatterFlags::NO_ARGUMENTS;
            let data: &'static _ = Box::leak(Box::new(data));
            Some(Self {
                path,
                id,
                has_lines,
                context: Mutex::new(data.make_context_with_formatter_flags(flags).ok()?),
            })
        })
        .ok()
        .flatten()
    }

    fn at(&self, offset: u32) -> Vec<Source> {
        let context = self.context.lock();
        let found = flight::reading_symbols(&self.path, || {
            catch_unwind(AssertUnwindSafe(|| context.find_frames(offset).ok().flatten()))
        });
        found.ok().flatten().map_or_else(Vec::new, |found| {
            found
                .frames
                .into_iter()
                .map(|frame| Source {
                    function: frame.function.map_or_else(String::new, |name| demangled(&name)),
                    file: frame.file.map(std::borrow::Cow::into_owned),
                    line: frame.line,
                })
                .collect()
        })
    }
}

/// Returns a function's name as its author wrote it. Public Rust symbols have mangled names.
fn demangled(name: &str) -> String {
    rustc_demangle::try_demangle(name).map_or_else(|_| name.to_owned(), |name| format!("{name:#}"))
}

/// Returns whether a PDB has line information for one of the author's files.
fn has_lines(pdb: &mut PDB<'_, Cursor<Vec<u8>>>) -> pdb::Result<bool> {
    let names = pdb.string_table()?;
    let information = pdb.debug_information()?;
    let mut modules = information.modules()?;
    while let Some(module) = modules.next()? {
        let Some(info) = pdb.module_info(&module)? else {
            continue;
        };
        let Ok(lines) = info.line_program() else {
            continue;
        };
        let mut files = lines.files();
        while let Some(file) = files.next()? {
            if !is_foreign(&names.get(file.name)?.to_string()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
