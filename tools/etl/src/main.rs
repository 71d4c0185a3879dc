//! `etl`: shows and converts .etl files.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{EnumValueParser, IntoResettable, StyledStr};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueEnum, builder::PossibleValue, value_parser};
use etl::compare::{self, Comparison, Other, OtherError, Ours, OursError};
use etl::pcapng::{self, Capture};
use etl::stats::Stats;
use etl::{csv, json, perfetto, report, table};
use etl_file::catalog::LoadError;
use etl_file::completion::Completion;
use etl_file::image::ImageError;
use etl_file::kernel::MofError;
use etl_file::merge::{self, MergeError};
use etl_file::pipeline::{FirstPass, Summary, available_threads};
use etl_file::read::{Damages, Event, EventRef, OtherFormat, ReadError, RecordRef};
use etl_file::show::Escaped;
use etl_file::stacks::StackCounts;
use etl_file::symbols::{self, SymbolError, Symbols};
use etl_file::trim::{Kept, Trimmer};
use etl_file::wpp::FormatsError;
use etl_file::{Catalog, Decoded, FileTime, Guid, Pipeline, Selection, TraceFile};

/// Returns the definition of the command line.
fn command() -> Command {
    Command::new("etl")
        .about("Show .etl (Event Trace Log) files")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(compare_command())
        .subcommand(dump_command())
        .subcommand(merge_command())
        .subcommand(report_command())
        .subcommand(stats_command())
        .subcommand(Command::new(READ_SYMBOLS).hide(true))
}

/// Returns the argument for an input file.
fn file() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .help("The .etl file")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the argument for several input files.
fn files() -> Arg {
    file().help("The .etl files").num_args(1..)
}

/// Returns an option that takes a value.
fn option(name: &'static str, value: &'static str, help: impl IntoResettable<StyledStr>) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Returns an option that can be repeated.
fn several(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append)
}

/// Returns an option for a file or folder that can be repeated.
fn paths(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    several(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns an option without a value.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// Returns the options for the manifests and images that describe events.
fn schemas() -> [Arg; 3] {
    [
        paths("man", "FILE", "Decode events with this provider manifest; can be repeated"),
        paths("image", "FILE", "Decode events with the resources of this image; can be repeated"),
        paths(
            "mof",
            "FILE",
            "Decode classic events with the classes of this MOF file; can be repeated",
        ),
    ]
}

/// Loads the images and manifests that describe events.
fn catalog(arguments: &ArgMatches) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::new();
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
    if is_own { None } else { OtherFormat::of(&start) }
}

/// Returns the option for the formats of WPP messages.
fn tmf() -> Arg {
    let help = "Show WPP messages by this TMF file, or by those in this folder; can be repeated";
    paths("tmf", "FOLDER|FILE", help)
}

/// Opens a file, and adds its schemas to a catalog, where loaded schemas take precedence. Also
/// returns true if the file's kernel events can complete its other events.
fn open(file: &Path, catalog: &mut Catalog) -> Result<(TraceFile, bool), Failure> {
    let failed = |source| Failure::Read { file: file.to_owned(), source };
    let mut trace = TraceFile::open(file).map_err(failed)?;
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

/// Returns the option for process and thread names.
fn names() -> Arg {
    flag("names", "Show the names of processes and threads, from the file's kernel events")
}

/// Returns the option for the number of threads.
fn threads() -> Arg {
    option("threads", "N", "Decode on this many threads; default: one for each processor")
        .value_parser(value_parser!(u16).range(1..=MAX_THREADS))
}

/// The maximum number of decoding threads.
const MAX_THREADS: i64 = 256;

/// Returns the options for the function names of stack frames.
fn functions() -> [Arg; 2] {
    [
        paths(
            "pdb",
            "FILE",
            "Show the functions of stack frames, and WPP messages, from this PDB; can be repeated",
        ),
        paths(
            "symbols",
            "FOLDER",
            "Show the functions of stack frames, and WPP messages, from the PDBs in this folder; can be \
             repeated",
        ),
    ]
}

/// The command with which this program starts itself to read a PDB.
const READ_SYMBOLS: &str = "read-symbols";

/// Reads the PDB on standard input, for another process of this program.
fn read_symbols() -> Result<ExitCode, Failure> {
    let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, io::stdout().lock());
    symbols::answer(&mut io::stdin().lock(), &mut out)?;
    Ok(ExitCode::SUCCESS)
}

/// Loads the function names of stack frames.
fn symbols(arguments: &ArgMatches) -> Result<Symbols, Failure> {
    let paths = |name| arguments.get_many::<PathBuf>(name).unwrap_or_default();
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

/// Returns the option for the output file.
fn out_file(help: &'static str) -> Arg {
    option("out", "FILE", help).short('o').required(true).value_parser(value_parser!(PathBuf))
}

fn merge_command() -> Command {
    Command::new("merge")
        .about("Merge several files into one, sorted by time, or cut out a part of one")
        .long_about(
            "Merge several files into one, sorted by time, or cut out a part of one.\n\n\
             If events are selected, the output contains them and the records needed to interpret \
             them: the system's configuration, processes, threads and images, the names of files, \
             keys and types, schemas, the rundown of the selected providers, and stacks.",
        )
        .arg(files())
        .args(selecting())
        .args(schemas())
        .arg(flag("compress", "Compress the buffers of the file"))
        .arg(out_file("The .etl file to write"))
}

fn report_command() -> Command {
    let limit = format!(
        "Show at most this many events in the table and the lanes; counts include all; default: {}",
        report::DEFAULT_LIMIT
    );
    Command::new("report")
        .about("Write an HTML page that shows one or more files in a browser")
        .long_about(
            "Write an HTML page that shows one or more files in a browser: a timeline, counts, \
             and a table of events that can be filtered, searched and opened. The page is one \
             file that loads nothing else. If there are more events than the limit, the page \
             shows a sample, which includes all errors and warnings, and says so.",
        )
        .arg(files())
        .args(schemas())
        .arg(tmf())
        .args(functions())
        .arg(option("limit", "EVENTS", limit).value_parser(value_parser!(u32).range(1..)))
        .arg(out_file("The HTML file to write"))
}

fn stats_command() -> Command {
    Command::new("stats")
        .about("Count the events of a file by provider, event and level")
        .arg(file())
        .args(schemas())
        .arg(tmf())
        .arg(threads())
        .arg(names())
        .args(functions())
}

fn compare_command() -> Command {
    Command::new("compare")
        .about("Compare the decoded events of a file with what other decoders say about it")
        .long_about(
            "Compare the decoded events of a file with what other decoders say about it: the XML of \
             tracerpt, the events of Get-WinEvent in JSON with the XML of each, or the JSON lines of \
             TDH that the sample driver's client writes.\n\n\
             Kernel events, classic events and WPP messages are not compared. The exit code is 0 if \
             all properties and fields of all events are equal, 1 if not, if nothing was compared or \
             if the file is damaged, and 2 if a file cannot be read.",
        )
        .arg(file())
        .arg(
            Arg::new("others")
                .value_name("OTHER")
                .help("The files of other decoders")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flag("json", "Print the result as JSON"))
        .arg(
            option("limit", "DIFFERENCES", "List at most this many differences of each file")
                .default_value("100")
                .value_parser(value_parser!(usize)),
        )
        .args(schemas())
        .arg(threads())
        .arg(names())
        .args(functions())
        .arg(several(
            "provider",
            "NAME|GUID",
            "Compare only events of this provider; can be repeated",
        ))
}

/// Returns the options that select events.
fn selecting() -> [Arg; 8] {
    let time = |name, help| option(name, "TIME", help).value_parser(value_parser!(FileTime));
    [
        several("provider", "NAME|GUID", "Select only events of this provider; can be repeated"),
        several("event", "NAME|ID", "Select only events with this name or id; can be repeated"),
        several(
            "process",
            "ID|NAME",
            "Select only events of the process with this id, or of this image such as app.exe; shows \
             names as --names does; can be repeated",
        ),
        time(
            "from",
            "Select only events at or after this time in UTC, as in the table and in JSON",
        ),
        time("to", "Select only events at or before this time in UTC"),
        option("level", "LEVEL", "Select only events up to this level")
            .value_parser(value_parser!(u8)),
        option(
            "keyword",
            "MASK",
            "Select only events with at least one of these keywords, or without keywords",
        )
        .value_parser(mask),
        option(
            "activity",
            "GUID",
            "Select only events of this activity, and events that are related to it",
        )
        .value_parser(value_parser!(Guid)),
    ]
}

fn dump_command() -> Command {
    Command::new("dump")
        .about("Print the events of a file, sorted by time")
        .long_about(
            "Print the events of a file, sorted by time.\n\n\
             TraceLogging events are self-describing. To decode other events, name the manifests \
             of their providers, or images that contain them as resources. Damaged parts of the \
             file are reported on standard error after all readable events.",
        )
        .arg(file())
        .arg(
            Arg::new("format")
                .long("format")
                .help("The output format")
                .default_value("table")
                .value_parser(EnumValueParser::<Format>::new()),
        )
        .arg(flag(
            "fields",
            "With --format csv: write a column for each field; reads the file twice",
        ))
        .arg(flag("codes", "Show the names of well-known NTSTATUS, HRESULT and Win32 error codes"))
        .arg(flag(
            "hardware-addresses",
            "Show the addresses of network adapters, which merged traces contain",
        ))
        .arg(out_file("Write to this file instead of standard output").required(false))
        .arg(several(
            "hex",
            "FIELD",
            "Show integers in fields with this name in hexadecimal, even if their values have \
             names; can be repeated",
        ))
        .args(schemas())
        .arg(tmf())
        .arg(threads())
        .arg(names())
        .args(functions())
        .args(selecting())
        .arg(
            option(
                "width",
                "CHARACTERS",
                "The width of the table; default: the width of the terminal, or unlimited without a \
                 terminal",
            )
            .value_parser(value_parser!(u16)),
        )
}

/// Parses a decimal number, or a hexadecimal one after 0x.
fn mask(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .map_err(|error| format!("expected a number such as 3 or 0x3: {error}"))
}

/// The output formats of `dump`.
#[derive(Clone, Copy)]
enum Format {
    Table,
    Json,
    Csv,
    Perfetto,
    Pcapng,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Json, Self::Csv, Self::Perfetto, Self::Pcapng]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Table => PossibleValue::new("table").help("A table"),
            Self::Json => {
                PossibleValue::new("json").help("One line for the header, then one line per event")
            }
            Self::Csv => PossibleValue::new("csv").help("A header line, then one line per event"),
            Self::Perfetto => PossibleValue::new("perfetto").help(
                "A timeline for ui.perfetto.dev: threads, activities, scheduling, interrupts, \
                 disks, files and samples",
            ),
            Self::Pcapng => PossibleValue::new("pcapng").help(
                "The packets of Microsoft-Windows-NDIS-PacketCapture (netsh trace) for Wireshark",
            ),
        })
    }
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the argument {0} is missing")]
    Argument(&'static str),
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: ReadError },
    /// Becomes [`Failure::Read`] once the file is known.
    #[error(transparent)]
    Pass(#[from] ReadError),
    #[error("cannot read {}: it is {found}", file.display())]
    Format { file: PathBuf, found: OtherFormat },
    #[error(transparent)]
    Manifest(#[from] LoadError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Formats(#[from] FormatsError),
    #[error(transparent)]
    Classes(#[from] MofError),
    #[error(transparent)]
    Symbols(#[from] SymbolError),
    #[error("{}: {source}", file.display())]
    Columns { file: PathBuf, source: csv::TooManyColumns },
    #[error("{}: {source}", file.display())]
    Merge { file: PathBuf, source: MergeError },
    #[error("cannot write {}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Report(#[from] report::SourceError),
    #[error(transparent)]
    Other(#[from] OtherError),
    #[error("cannot compare {}: {source}", file.display())]
    Compare { file: PathBuf, source: OursError },
    #[error(
        "cannot write {}: it is an input file; name another file with --out",
        file.display()
    )]
    Input { file: PathBuf },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error(
        "{what} is not text, and standard output is a terminal: name a file with --out, and open it \
         {viewer}"
    )]
    Terminal { what: &'static str, viewer: &'static str },
    #[error("{}: the trace contains no packets of Microsoft-Windows-NDIS-PacketCapture", file.display())]
    NoPackets { file: PathBuf },
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        // As in other comparison commands, exit code 1 means a difference and 2 an error.
        Some(("compare", arguments)) => compare(arguments).or_else(|failure| {
            complain(&failure);
            Ok(ExitCode::from(2))
        }),
        Some(("dump", arguments)) => dump(arguments),
        Some(("merge", arguments)) => merge(arguments),
        Some(("report", arguments)) => report(arguments),
        Some(("stats", arguments)) => stats(arguments),
        Some((READ_SYMBOLS, _)) => read_symbols(),
        _ => clap::Error::raw(ErrorKind::MissingSubcommand, "a command is missing\n").exit(),
    };
    match result {
        Ok(code) => code,
        // The program that reads the output has closed the pipe.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

/// An open file, and the catalog with which it is decoded.
struct Input {
    path: PathBuf,
    file: TraceFile,
    catalog: Catalog,
    completion: Completion,
    /// True to show status codes with their names.
    codes: bool,
    /// True to show the addresses of network adapters.
    hardware_addresses: bool,
    /// True if the file's kernel events can complete its other events.
    can_complete: bool,
    threads: NonZeroUsize,
}

impl Input {
    fn open(arguments: &ArgMatches) -> Result<Self, Failure> {
        let mut catalog = catalog(arguments)?;
        let completion =
            Completion { names: arguments.get_flag("names"), symbols: symbols(arguments)? };
        catalog.add_formats(completion.symbols.formats());
        let path = required::<PathBuf>(arguments, "file")?.clone();
        let (file, can_complete) = open(&path, &mut catalog)?;
        let threads = arguments.get_one::<u16>("threads").copied().map(usize::from);
        let threads = threads.and_then(NonZeroUsize::new).unwrap_or_else(available_threads);
        // Only `dump` has these options.
        let [codes, hardware_addresses] = ["codes", "hardware-addresses"]
            .map(|name| arguments.try_get_one::<bool>(name).is_ok_and(|flag| flag == Some(&true)));
        Ok(Self {
            path,
            file,
            catalog,
            completion,
            codes,
            hardware_addresses,
            can_complete,
            threads,
        })
    }

    /// Returns the file, and the pipeline for its selected events.
    fn pipeline<'a>(&'a mut self, selection: &'a Selection) -> (&'a mut TraceFile, Pipeline<'a>) {
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
    fn events<S, T: Default + Send>(
        &mut self,
        selection: &Selection,
        state: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &EventRef<'_>, Decoded, &mut T) -> Result<(), Failure> + Sync,
        take: impl FnMut(&mut T) -> Result<(), Failure>,
    ) -> Result<Summary, Failure> {
        let (file, pipeline) = self.pipeline(selection);
        pipeline.run(file, state, each, take).map_err(|failure| self.named(failure))
    }

    /// Adds the file's name to the failure of a pass.
    fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Pass(source) => Failure::Read { file: self.path.clone(), source },
            other => other,
        }
    }

    /// Passes the selected events to `take` in time order.
    fn each(
        &mut self,
        selection: &Selection,
        take: impl FnMut(Decoded) -> Result<(), Failure>,
    ) -> Result<Summary, Failure> {
        let (file, pipeline) = self.pipeline(selection);
        pipeline.each(file, take).map_err(|failure| self.named(failure))
    }

    /// Prints the damage, and returns a failure exit code if there is any.
    fn finish(&self, damages: &Damages) -> ExitCode {
        list(&self.path.display(), damages);
        if damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn selection(arguments: &ArgMatches) -> Selection {
    let several = |name: &str| {
        let values = arguments.get_many::<String>(name).unwrap_or_default();
        values.cloned().collect()
    };
    Selection {
        providers: several("provider"),
        events: several("event"),
        level: arguments.get_one("level").copied(),
        keyword: arguments.get_one("keyword").copied(),
        activity: arguments.get_one("activity").copied(),
        processes: several("process"),
        from: arguments.get_one("from").copied(),
        to: arguments.get_one("to").copied(),
    }
}

/// Compares a trace's events with other decoders' files.
fn compare(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut input = Input::open(arguments)?;
    let providers = arguments.get_many("provider").unwrap_or_default();
    let selection = Selection { providers: providers.cloned().collect(), ..Selection::default() };
    let limit = *required::<usize>(arguments, "limit")?;
    let mut ours = Ours::default();
    let path = input.path.clone();
    let failed = |source| Failure::Compare { file: path.clone(), source };
    let summary = input.each(&selection, |event| ours.add(event).map_err(failed))?;
    let mut results = Vec::new();
    for path in arguments.get_many::<PathBuf>("others").unwrap_or_default() {
        let mut other = Other::open(path)?;
        other.select(&selection.providers, &ours);
        let result = Comparison::new(&ours, &other, limit);
        results.push((path.display().to_string(), other, result));
    }
    let name = input.path.display().to_string();
    let mut out = io::stdout().lock();
    if arguments.get_flag("json") {
        writeln!(out, "{:#}", compare::to_json(&name, &ours, &results))?;
    } else {
        write!(out, "{}", compare::render(&name, &ours, &results))?;
    }
    out.flush()?;
    let code = input.finish(&summary.damages);
    Ok(if results.iter().all(|(.., result)| result.agrees()) { code } else { ExitCode::FAILURE })
}

fn dump(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut input = Input::open(arguments)?;
    let selection = selection(arguments);
    // The process of a performance event is only known after name resolution.
    input.completion.names |= !selection.processes.is_empty();
    let format = *required::<Format>(arguments, "format")?;
    let by_field = arguments.get_flag("fields");
    let file = arguments.get_one::<PathBuf>("out").map(PathBuf::as_path);
    let stdout = io::stdout();
    let binary = match format {
        Format::Perfetto => Some(("a Perfetto timeline", "at https://ui.perfetto.dev")),
        Format::Pcapng => Some(("a pcapng file", "with Wireshark")),
        Format::Table | Format::Json | Format::Csv => None,
    };
    if let Some((what, viewer)) = binary.filter(|_| file.is_none() && stdout.is_terminal()) {
        return Err(Failure::Terminal { what, viewer });
    }
    let width = arguments.get_one("width").copied();
    let width = width.or_else(|| file.map_or_else(|| terminal_width(&stdout), |_| None));
    let summary = match file {
        None => {
            let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, stdout.lock());
            let summary = print(&mut input, &selection, format, by_field, width, &mut out)?;
            out.flush()?;
            summary
        }
        Some(_) => {
            write_out(arguments, |out| print(&mut input, &selection, format, by_field, width, out))?
        }
    };
    Ok(input.finish(&summary.damages))
}

/// The size of the output buffer, in bytes.
const OUTPUT_BUFFER: usize = 1 << 16;

/// Prints the selected events in a format.
fn print(
    input: &mut Input,
    selection: &Selection,
    format: Format,
    by_field: bool,
    width: Option<u16>,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let header = input.file.header().clone();
    let buffers = input.file.buffers();
    match format {
        Format::Table => {
            let mut writer = table::Writer::new(out, width).with_codes(input.codes);
            writer.header(&header, buffers)?;
            let codes = input.codes;
            let entry = |(): &mut (), _: &EventRef<'_>, decoded, batch: &mut Vec<table::Entry>| {
                batch.push(table::Entry::new(&decoded, codes));
                Ok(())
            };
            let summary = input.events(
                selection,
                || (),
                entry,
                |batch| Ok(batch.drain(..).try_for_each(|entry| writer.add(entry))?),
            )?;
            writer.end(&header, &summary)?;
            Ok(summary)
        }
        Format::Json => {
            let (file, pipeline) = input.pipeline(selection);
            let written = json::write_lines(file, &pipeline, out);
            written.map_err(|failure| match failure {
                json::LinesError::Read(source) => input.named(source.into()),
                json::LinesError::Write(source) => source.into(),
            })
        }
        Format::Csv => {
            let columns = if by_field { Some(columns(input, selection)?) } else { None };
            let mut writer = csv::Writer::new(out, columns)?.with_codes(input.codes);
            let rows = writer.rows();
            let line =
                |rows: &mut csv::Rows, event: &EventRef<'_>, decoded, lines: &mut csv::Lines| {
                    Ok(rows.line(event, &decoded, lines)?)
                };
            let summary = input.events(
                selection,
                || rows.clone(),
                line,
                |lines| Ok(writer.lines(std::mem::take(lines))?),
            )?;
            writer.end()?;
            tell_skipped(&input.path, &summary);
            Ok(summary)
        }
        Format::Perfetto => timeline(input, selection, out),
        Format::Pcapng => packets(input, selection, out),
    }
}

/// Returns the columns for the fields of the selected events.
fn columns(input: &mut Input, selection: &Selection) -> Result<csv::FieldColumns, Failure> {
    let mut columns = csv::FieldColumns::default();
    let path = input.path.clone();
    let failed = |source| Failure::Columns { file: path.clone(), source };
    let add = |(): &mut (), _: &EventRef<'_>, decoded, batch: &mut csv::FieldColumns| {
        batch.add(&decoded).map_err(failed)
    };
    input.events(selection, || (), add, |batch| columns.merge(batch).map_err(failed))?;
    Ok(columns)
}

/// Prints the selected events as a Perfetto timeline, and reports omitted events on standard error.
fn timeline(
    input: &mut Input,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let header = input.file.header().clone();
    let mut writer = perfetto::Writer::new(out, &header.session);
    let summary = input.each(selection, |event| Ok(writer.event(&event)?))?;
    for (kind, count) in summary.skipped.iter() {
        let count = count.records;
        complain(&format_args!(
            "{}: the timeline omits {count} records of the kind {}",
            input.path.display(),
            Escaped(kind)
        ));
        writer.attribute(&format!("etl.left_out.{kind}"), &count.to_string())?;
    }
    tell_stacks(&input.path, &summary);
    for (what, count) in [("events", header.events_lost), ("buffers", header.buffers_lost)] {
        writer.attribute(&format!("etl.lost_{what}"), &count.to_string())?;
    }
    tell_without_format(&input.path, &summary);
    for (what, count) in [
        ("without_format", summary.without_format),
        ("of_system", summary.of_system),
        ("stacks_joined", summary.stacks.joined),
        ("stacks_unmatched", summary.stacks.unmatched),
        ("unnamed", summary.dropped),
    ] {
        if count != 0 {
            writer.attribute(&format!("etl.{what}"), &count.to_string())?;
        }
    }
    for damage in summary.damages.listed() {
        writer.attribute("etl.damage", &damage.to_string())?;
    }
    let (_, written) = writer.finish()?;
    for line in written.to_string().lines() {
        complain(&format_args!("{}: {line}", input.path.display()));
    }
    Ok(summary)
}

/// Prints the selected packets as a pcapng file, and reports omitted packets on standard error.
fn packets(
    input: &mut Input,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let path = input.path.clone();
    let say = |what: &dyn std::fmt::Display| complain(&format_args!("{}: {what}", path.display()));
    let header = input.file.header().clone();
    let captured = Capture::read(&mut input.file, input.threads);
    let (capture, found) =
        captured.map_err(|source| Failure::Read { file: path.clone(), source })?;
    if capture.of_pktmon != 0 {
        say(&format_args!(
            "omitting {} packets of Microsoft-Windows-PktMon; `pktmon etl2pcap` converts them",
            capture.of_pktmon
        ));
    }
    if capture.events == 0 {
        // The packets may have been in the damaged parts.
        list(&path.display(), &found.damages);
        return Err(Failure::NoPackets { file: path });
    }
    // Packets can be selected by process name; no other names matter here.
    input.can_complete &= input.completion.names;
    let mut writer = pcapng::Writer::new(out, &header, capture)?;
    let keep = |(): &mut (), event: &EventRef<'_>, _, batch: &mut Vec<Event>| {
        if pcapng::concerns(event) {
            batch.push(event.to_event());
        }
        Ok(())
    };
    let summary = input.events(
        selection,
        || (),
        keep,
        |batch| Ok(batch.iter().try_for_each(|event| writer.event(&event.view()))?),
    )?;
    let (_, written) = writer.finish();
    let skipped: u64 = summary.skipped.iter().map(|(_, count)| count.records).sum();
    say(&format_args!(
        "{} packets of {} interfaces; {} other records are omitted",
        written.packets,
        written.interfaces,
        summary.selected - written.events + skipped
    ));
    written.to_string().lines().for_each(|line| say(&line));
    if header.events_lost != 0 || header.buffers_lost != 0 {
        let (events, buffers) = (header.events_lost, header.buffers_lost);
        say(&format_args!("the session lost {events} events and {buffers} buffers"));
    }
    tell_late(&path, &summary);
    Ok(summary)
}

/// Prints the numbers of stacks, and of processes, threads, images and stacks that were dropped
/// because the tables were full.
fn tell_stacks(file: &Path, summary: &Summary) {
    let file = file.display();
    if summary.stacks != StackCounts::default() {
        complain(&format_args!("{file}: stacks: {}", summary.stacks));
    }
    if summary.dropped != 0 {
        complain(&format_args!(
            "{file}: {} processes, threads, images or stacks do not fit in memory",
            summary.dropped
        ));
    }
}

/// Prints the number of WPP messages without a loaded format.
fn tell_without_format(file: &Path, summary: &Summary) {
    if summary.without_format != 0 {
        complain(&format_args!(
            "{}: no loaded TMF file or PDB describes {} WPP messages; name one with --tmf or --pdb",
            file.display(),
            summary.without_format
        ));
    }
}

/// Prints the numbers of skipped records, if the output itself cannot contain them.
fn tell_skipped(file: &Path, summary: &Summary) {
    for (kind, count) in summary.skipped.iter() {
        complain(&format_args!(
            "{}: skipping {} {} records, {} bytes",
            file.display(),
            count.records,
            Escaped(kind),
            count.bytes
        ));
    }
    tell_stacks(file, summary);
    tell_without_format(file, summary);
    tell_late(file, summary);
}

/// Prints the number of records that are out of order.
fn tell_late(file: &Path, summary: &Summary) {
    if summary.late != 0 {
        complain(&format_args!("{}: {} records are out of order", file.display(), summary.late));
    }
}

fn stats(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut input = Input::open(arguments)?;
    let (file, pipeline) = input.pipeline(Selection::ALL);
    let (stats, damages) =
        Stats::read(file, &pipeline).map_err(|failure| input.named(failure.into()))?;
    let mut out = io::stdout().lock();
    write!(out, "{}", stats.render())?;
    out.flush()?;
    Ok(input.finish(&damages))
}

/// Returns the path of the output file.
fn out(arguments: &ArgMatches) -> Result<&PathBuf, Failure> {
    required(arguments, "out")
}

/// Returns an argument that is required or has a default.
fn required<'a, T: Clone + Send + Sync + 'static>(
    arguments: &'a ArgMatches,
    name: &'static str,
) -> Result<&'a T, Failure> {
    let value = arguments.try_get_one::<T>(name).ok().flatten();
    value.ok_or(Failure::Argument(name))
}

/// Writes the output file through a temporary file, so that it is written either completely or not
/// at all. Writes to a device or a pipe directly. Refuses to replace an input file.
fn write_out<T>(
    arguments: &ArgMatches,
    write: impl FnOnce(&mut io::BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = out(arguments)?;
    let failed = |source| Failure::Write { file: file.to_owned(), source };
    let (open, replaced) = match std::fs::metadata(file) {
        Ok(known) if known.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        // A link continues to name the file that it names.
        Ok(known) if known.is_file() => through(file.canonicalize().map_err(failed)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !file.is_symlink() => {
            through(file.clone())
        }
        // Opens devices, pipes and links without a file directly; there is no file to replace.
        _ => (file.clone(), None),
    };
    let written = [Some(&open), replaced.as_ref()].into_iter().flatten();
    let written: Vec<_> = written.filter_map(|path| path.canonicalize().ok()).collect();
    // From a folder, a command reads all files with these extensions.
    let is_read = |path: &Path, from: &Path| {
        let extension = path.extension().unwrap_or_default();
        path == from || (path.starts_with(from) && (extension == "pdb" || extension == "tmf"))
    };
    let mut read = inputs(arguments).filter_map(|path| path.canonicalize().ok());
    if read.any(|from| written.iter().any(|path| is_read(path, &from))) {
        return Err(Failure::Input { file: file.clone() });
    }
    let created = File::options().write(true).create(true).truncate(true).open(&open);
    let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, created.map_err(failed)?);
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        if let Some(replaced) = &replaced {
            std::fs::rename(&open, replaced)?;
        }
        Ok(written)
    });
    written.map_err(|failure| {
        if replaced.is_some() {
            // Report only the first failure.
            let _unheard = std::fs::remove_file(&open);
        }
        match failure {
            Failure::Output(source) => failed(source),
            other => other,
        }
    })
}

/// Returns the temporary file for a file, and the file.
fn through(file: PathBuf) -> (PathBuf, Option<PathBuf>) {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    (beside.into(), Some(file))
}

/// Returns the paths of all files that a command reads.
fn inputs(arguments: &ArgMatches) -> impl Iterator<Item = &PathBuf> {
    ["file", "man", "image", "mof", "tmf", "pdb", "symbols"]
        .into_iter()
        .flat_map(|name| arguments.try_get_many::<PathBuf>(name).ok().flatten().unwrap_or_default())
}

fn merge(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let files = arguments.get_many::<PathBuf>("file").unwrap_or_default();
    let files: Vec<&PathBuf> = files.collect();
    let selection = selection(arguments);
    let all = selection == Selection::default();
    let loaded = catalog(arguments)?;
    let (mut traces, mut catalogs) = (Vec::new(), Vec::new());
    let failed = |file: &Path, source| Failure::Read { file: file.to_owned(), source };
    for &file in &files {
        // A file's schemas apply only to its own events.
        let mut catalog = loaded.clone();
        traces.push(if all {
            TraceFile::open(file).map_err(|error| failed(file, error))?
        } else {
            open(file, &mut catalog)?.0
        });
        catalogs.push(catalog);
    }
    let mut parts = Vec::new();
    for ((trace, catalog), file) in traces.iter_mut().zip(&catalogs).zip(&files).filter(|_| !all) {
        let part = Trimmer::read(trace, &selection, catalog);
        parts.push(part.map_err(|error| failed(file, error))?);
    }
    let to = out(arguments)?;
    let name = to.display().to_string();
    let options = merge::Options { compress: arguments.get_flag("compress") };
    let keeps = |trace: usize, record: &RecordRef<'_>| {
        parts.get_mut(trace).map_or(Some(Kept::Selected), |part| part.keeps(record))
    };
    let merged = write_out(arguments, |file| {
        file.stream_position().map_err(|_| {
            io::Error::other("a merge updates the start of its output at the end, which a pipe does not allow; name a file")
        })?;
        let merged = merge::merge_part(&mut traces, &name, options, keeps, file);
        let (_, merged) = merged.map_err(|source| Failure::Merge {
            file: source.trace().and_then(|trace| files.get(trace).copied()).unwrap_or(to).clone(),
            source,
        })?;
        Ok(merged)
    })?;
    let mut out = io::stdout().lock();
    write!(out, "{} events ", merged.events)?;
    if merged.others > 0 {
        write!(out, "and {} other records ", merged.others)?;
    }
    writeln!(out, "of {} files in {name}", files.len())?;
    if !all {
        writeln!(
            out,
            "omitted {} records that are not selected; {} records are kept for the selected ones",
            merged.unselected, merged.needed
        )?;
    }
    if merged.left_out > 0 {
        writeln!(out, "omitted {} records that describe a single session", merged.left_out)?;
    }
    if merged.late > 0 {
        warn(&format_args!("{} records were out of order and could not be sorted", merged.late));
    }
    let mut code = ExitCode::SUCCESS;
    for (file, damages) in files.iter().zip(&merged.damages) {
        list(&file.display(), damages);
        if !damages.is_empty() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn report(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut loaded = catalog(arguments)?;
    let completion = Completion { names: true, symbols: symbols(arguments)? };
    loaded.add_formats(completion.symbols.formats());
    let paths = arguments.get_many::<PathBuf>("file").unwrap_or_default();
    let mut files = Vec::new();
    for path in paths {
        // A file's schemas apply only to its own events.
        let mut catalog = loaded.clone();
        let (file, can_complete) = open(path, &mut catalog)?;
        files.push((path.display().to_string(), file, catalog, can_complete));
    }
    let limit = arguments.get_one("limit").copied();
    let limit = limit.unwrap_or(report::DEFAULT_LIMIT);
    let title: Vec<&str> = files.iter().map(|(name, ..)| name.as_str()).collect();
    let mut page =
        report::Writer::new(title.join(", "), limit).map_err(report::SourceError::Write)?;
    let mut sources: Vec<report::Source<'_, File>> = files
        .iter_mut()
        .map(|(name, file, catalog, can_complete)| report::Source {
            name,
            file,
            pipeline: Pipeline {
                completion: can_complete.then_some(&completion),
                ..Pipeline::new(catalog)
            },
        })
        .collect();
    let damages = page.add_files(&mut sources)?;
    let out = out(arguments)?;
    let mut written = None;
    write_out(arguments, |file| {
        written = Some(page.finish(file)?);
        Ok(())
    })?;
    if let Some(written) = written.filter(|written| written.shown < written.events) {
        complain(&format_args!(
            "{}: shows {} of {} events; --limit sets how many",
            out.display(),
            written.shown,
            written.events
        ));
    }
    let mut code = ExitCode::SUCCESS;
    for ((name, ..), damages) in files.iter().zip(damages) {
        list(name, &damages);
        if !damages.is_empty() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Returns the width of the terminal, if the output is a terminal.
fn terminal_width(stdout: &io::Stdout) -> Option<u16> {
    stdout.is_terminal().then(|| comfy_table::Table::new().width()).flatten()
}

/// Prints the damaged parts of a file to standard error.
fn list(file: &dyn std::fmt::Display, damages: &Damages) {
    for damage in damages.listed() {
        complain(&format_args!("{file}: {damage}"));
    }
    if damages.unlisted() > 0 {
        let more = damages.unlisted();
        complain(&format_args!("{file}: {more} more damaged parts are not listed"));
    }
}

/// Prints a warning to standard error; ignores errors in printing.
fn warn(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "warning: {what}");
}

/// Prints a message to standard error; ignores errors in printing.
fn complain(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "etl: {what}");
}
