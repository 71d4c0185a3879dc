//! The files that a command reads.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;
use etl_file::symbols::{SymbolError, Symbols};
use etl_file::{
    Catalog, Completion, Damages, Decoded, EventRef, FileTime, FirstPass, OtherFormat, Pipeline,
    Selection, Summary, TraceFile, internals::available_threads,
};

use crate::failure::Failure;
use crate::messages::{list, warn};

/// An open file, and the catalog with which it is decoded.
pub struct Input {
    pub path: PathBuf,
    pub file: TraceFile,
    pub catalog: Catalog,
    pub completion: Completion,
    /// True to show status codes with their names.
    pub codes: bool,
    /// True to show the addresses of network adapters.
    pub hardware_addresses: bool,
    /// True if the file's kernel events can complete its other events.
    pub can_complete: bool,
    pub threads: NonZeroUsize,
}

impl Input {
    /// Opens the file that the arguments name.
    pub fn open(arguments: &ArgMatches) -> Result<Self, Failure> {
        Self::open_all(arguments)?.pop().ok_or(Failure::Argument("file"))
    }

    /// Opens the files that the arguments name.
    pub fn open_all(arguments: &ArgMatches) -> Result<Vec<Self>, Failure> {
        let mut catalog = catalog(arguments)?;
        let completion =
            Completion { names: arguments.get_flag("names"), symbols: symbols(arguments)? };
        catalog.add_formats(completion.symbols.formats());
        let threads = arguments.get_one::<u16>("threads").copied().map(usize::from);
        let threads = threads.and_then(NonZeroUsize::new).unwrap_or_else(available_threads);
        // Only `dump` has these options.
        let [codes, hardware_addresses] = ["codes", "hardware-addresses"]
            .map(|name| arguments.try_get_one::<bool>(name).is_ok_and(|flag| flag == Some(&true)));
        let paths = arguments.get_many::<PathBuf>("file").unwrap_or_default();
        let open = |path: &PathBuf| {
            // A file's schemas apply only to its own events.
            let mut catalog = catalog.clone();
            let (file, can_complete) = open(path, &mut catalog)?;
            Ok(Self {
                path: path.clone(),
                file,
                catalog,
                completion: completion.clone(),
                codes,
                hardware_addresses,
                can_complete,
                threads,
            })
        };
        paths.map(open).collect()
    }

    /// Returns the time at which the file's session started.
    pub const fn start(&self) -> FileTime {
        self.file.header().session.start_time
    }

    /// Returns the file, and the pipeline for its selected events.
    pub fn pipeline<'a>(
        &'a mut self,
        selection: &'a Selection,
    ) -> (&'a mut TraceFile, Pipeline<'a>) {
        let pipeline = Pipeline {
            selection,
            completion: self.can_complete.then_some(&self.completion),
            hardware_addresses: self.hardware_addresses,
            threads: self.threads,
            ..Pipeline::new(&self.catalog)
        };
        (&mut self.file, pipeline)
    }

    /// Passes the selected events to `each`, and the output of each batch to `take` in time order;
    /// see [`Pipeline::run`].
    pub fn events<S, T: Default + Send>(
        &mut self,
        selection: &Selection,
        state: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &EventRef<'_>, Decoded, &mut T) -> Result<(), Failure> + Sync,
        take: impl FnMut(&mut T) -> Result<(), Failure>,
    ) -> Result<Summary, Failure> {
        let (file, pipeline) = self.pipeline(selection);
        pipeline.run(file, state, each, take).map_err(|failure| self.named(failure))
    }

    /// Passes the selected events to `take` in time order.
    pub fn each(
        &mut self,
        selection: &Selection,
        take: impl FnMut(Decoded) -> Result<(), Failure>,
    ) -> Result<Summary, Failure> {
        let (file, pipeline) = self.pipeline(selection);
        pipeline.each(file, take).map_err(|failure| self.named(failure))
    }

    /// Adds the file's name to the failure of a pass.
    pub fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Pass(source) => Failure::Read { file: self.path.clone(), source },
            other => other,
        }
    }
}

/// Prints the damage of each file, and returns a failure exit code if there is any.
pub fn finish(inputs: &[Input], damages: &[Damages]) -> ExitCode {
    for (input, damages) in inputs.iter().zip(damages) {
        list(&input.path.display(), damages);
    }
    if damages.iter().all(Damages::is_empty) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Opens a trace. Copies what comes through a pipe into a temporary file first, because a trace is not
/// read from its start to its end.
pub fn open_trace(path: &Path) -> Result<TraceFile, Failure> {
    let failed = |source| Failure::Read { file: path.to_owned(), source };
    let mut file = File::open(path).map_err(|error| failed(error.into()))?;
    if let Err(error) = file.seek(SeekFrom::End(0))
        && error.kind() == io::ErrorKind::NotSeekable
    {
        let mut copy = tempfile::tempfile().map_err(Failure::Copy)?;
        io::copy(&mut file, &mut copy).map_err(Failure::Copy)?;
        file = copy;
    }
    TraceFile::new(file).map_err(failed)
}

/// Opens a file, and adds its schemas to a catalog, where loaded schemas take precedence. Also
/// returns true if the file's kernel events can complete its other events.
pub fn open(file: &Path, catalog: &mut Catalog) -> Result<(TraceFile, bool), Failure> {
    let failed = |source| Failure::Read { file: file.to_owned(), source };
    let mut trace = open_trace(file)?;
    let FirstPass { schemas, can_complete } = FirstPass::read(&mut trace).map_err(failed)?;
    schemas.add_to(catalog);
    for defect in schemas.defects() {
        warn(&format_args!("{}: {defect}", file.display()));
    }
    let counts = schemas.counts();
    if counts.dropped > 0 || counts.defective > schemas.defects().len() {
        warn(&format_args!("{}: schemas in the trace: {counts}", file.display()));
    }
    Ok((trace, can_complete))
}

/// Loads the images and manifests that describe events.
pub fn catalog(arguments: &ArgMatches) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::new();
    if let Some(code_page) = arguments.get_one("code-page") {
        catalog.set_code_page(*code_page);
    }
    for image in arguments.get_many::<PathBuf>("image").unwrap_or_default() {
        let loaded =
            catalog.load_image(image).map_err(|failure| recognized(image, Some(b"MZ"), failure))?;
        for skipped in loaded {
            eprintln!("warning: {}: skipping a part of the resources: {skipped}", image.display());
        }
    }
    for manifest in arguments.get_many::<PathBuf>("man").unwrap_or_default() {
        let loaded =
            catalog.load(manifest).map_err(|failure| recognized(manifest, Some(b"<"), failure))?;
        for skipped in loaded {
            eprintln!("warning: {}: {skipped}", manifest.display());
        }
    }
    for classes in arguments.get_many::<PathBuf>("mof").unwrap_or_default() {
        catalog.load_classes(classes).map_err(|failure| recognized(classes, None, failure))?;
    }
    let in_hex = arguments.try_get_many::<String>("hex").ok().flatten();
    catalog.show_in_hex(in_hex.unwrap_or_default().cloned());
    // Commands that omit WPP messages do not have this option.
    let formats = arguments.try_get_many::<PathBuf>("tmf");
    for formats in formats.ok().flatten().unwrap_or_default() {
        // A TMF file is text in any encoding, so the parser would accept a file of another format.
        if let Some(found) = other_format(formats, None) {
            return Err(Failure::Format { file: formats.clone(), found });
        }
        for skipped in catalog.load_formats(formats)? {
            warn(&skipped);
        }
    }
    Ok(catalog)
}

/// The command with which this program starts itself to read a PDB.
pub const READ_SYMBOLS: &str = "read-symbols";

/// Loads the function names of stack frames.
pub fn symbols(arguments: &ArgMatches) -> Result<Symbols, Failure> {
    // Commands that show no stacks do not have these options.
    let paths = |name| arguments.try_get_many::<PathBuf>(name).ok().flatten().unwrap_or_default();
    let mut symbols = Symbols::new();
    if paths("pdb").chain(paths("symbols")).next().is_none() {
        return Ok(symbols);
    }
    // A damaged PDB can only crash the process that reads it.
    let program = std::env::current_exe()
        .map_err(|source| SymbolError::Reader { program: "etl".into(), source })?;
    symbols = symbols.read_by(program, [READ_SYMBOLS]);
    for pdb in paths("pdb") {
        let magic = b"Microsoft C/C++ ";
        symbols.load(pdb).map_err(|failure| recognized(pdb, Some(magic), failure))?;
    }
    for folder in paths("symbols") {
        for skipped in symbols.load_folder(folder)? {
            warn(&format_args!("skipping symbols: {skipped}"));
        }
    }
    Ok(symbols)
}

/// Names the format of a file that could not be loaded; see [`other_format`].
fn recognized(path: &Path, own: Option<&[u8]>, failure: impl Into<Failure>) -> Failure {
    other_format(path, own)
        .map_or_else(|| failure.into(), |found| Failure::Format { file: path.to_owned(), found })
}

/// Returns the format of a file, if the format is known and the file does not start with `own`.
fn other_format(path: &Path, own: Option<&[u8]>) -> Option<OtherFormat> {
    // The bytes of a pipe can be read only once.
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let file = File::open(path).ok()?;
    file.take(OtherFormat::PROBE as u64).read_to_end(&mut start).ok()?;
    // A byte order mark may precede text.
    let is_own = own.is_some_and(|own| start.windows(own.len()).take(4).any(|bytes| bytes == own));
    if is_own { None } else { OtherFormat::recognize(&start) }
}

/// Returns the paths of all files that a command reads.
pub fn inputs(arguments: &ArgMatches) -> impl Iterator<Item = &PathBuf> {
    ["file", "man", "image", "mof", "tmf", "pdb", "symbols"]
        .into_iter()
        .flat_map(|name| arguments.try_get_many::<PathBuf>(name).ok().flatten().unwrap_or_default())
}
