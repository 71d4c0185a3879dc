//! `etl`: shows and converts .etl files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::EnumValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueEnum, builder::PossibleValue, value_parser};
use etl_file::catalog::LoadError;
use etl_file::image::ImageError;
use etl_file::merge::MergeError;
use etl_file::read::{ReadError, TraceFile};
use etl_file::{
    Catalog, Decoded, Guid, Selection, Trace, chrome, csv, decode, json, perfetto, report, schemas,
    stats, table,
};

/// Returns the definition of the command line.
fn command() -> Command {
    Command::new("etl")
        .about("Show .etl (Event Trace Log) files")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(dump_command())
        .subcommand(merge_command())
        .subcommand(report_command())
        .subcommand(stats_command())
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

/// Returns the option for images to decode events with.
fn image() -> Arg {
    Arg::new("image")
        .long("image")
        .value_name("FILE")
        .help("Decode events with the resources of this image; can be repeated")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
}

/// Loads the images and manifests to decode events with.
fn catalog(arguments: &ArgMatches) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::new();
    for image in arguments.get_many::<PathBuf>("image").unwrap_or_default() {
        for skipped in catalog.load_image(image)? {
            eprintln!(
                "warning: {}: skipping a part of the resources: {skipped}",
                image.display()
            );
        }
    }
    for manifest in arguments.get_many::<PathBuf>("man").unwrap_or_default() {
        for skipped in catalog.load(manifest)? {
            eprintln!("warning: {}: {skipped}", manifest.display());
        }
    }
    Ok(catalog)
}

/// Completes a catalog with the schemas that a file contains; what was loaded is stronger.
fn complete(catalog: &mut Catalog, file: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::Read {
        file: file.to_owned(),
        source,
    };
    let mut trace = TraceFile::open(file).map_err(failed)?;
    let schemas = schemas::collect(&mut trace).map_err(failed)?;
    schemas.add_to(catalog);
    for defect in schemas.defects() {
        warn(&format_args!("{}: {defect}", file.display()));
    }
    let counts = schemas.counts();
    if counts.dropped > 0 || counts.defective > schemas.defects().len() {
        warn(&format_args!(
            "{}: schemas in the trace: {counts}",
            file.display()
        ));
    }
    Ok(())
}

/// Returns the option for manifests to decode events with.
fn man() -> Arg {
    Arg::new("man")
        .long("man")
        .value_name("FILE")
        .help("Decode events with this provider manifest; can be repeated")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the option for the output file.
fn out_file(help: &'static str) -> Arg {
    Arg::new("out")
        .long("out")
        .short('o')
        .value_name("FILE")
        .help(help)
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

fn merge_command() -> Command {
    Command::new("merge")
        .about("Merge several files into one, sorted by time")
        .arg(files())
        .arg(out_file("The .etl file to write"))
}

fn report_command() -> Command {
    Command::new("report")
        .about("Write an HTML page that shows one or more files in a browser")
        .long_about(
            "Write an HTML page that shows one or more files in a browser: a timeline, counts, and a \
             table of events that can be filtered, searched and opened. The page is one file that \
             loads nothing else. If there are more events than the limit, the page has a sample with \
             all errors and warnings, and says so.",
        )
        .arg(files())
        .arg(man())
        .arg(image())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("EVENTS")
                .help(format!(
                    "Show at most this many events in the table and the lanes; counts have all; \
                     default: {}",
                    report::DEFAULT_LIMIT
                ))
                .value_parser(value_parser!(u32).range(1..)),
        )
        .arg(out_file("The HTML file to write"))
}

fn stats_command() -> Command {
    Command::new("stats")
        .about("Count the events of a file by provider, event and level")
        .arg(file())
        .arg(man())
        .arg(image())
}

fn dump_command() -> Command {
    let several = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .action(ArgAction::Append)
    };
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
        .arg(out_file("Write to this file instead of the standard output").required(false))
        .arg(man())
        .arg(image())
        .arg(several(
            "provider",
            "NAME|GUID",
            "Show only events of this provider; can be repeated",
        ))
        .arg(several(
            "event",
            "NAME|ID",
            "Show only events with this name or id; can be repeated",
        ))
        .arg(
            Arg::new("level")
                .long("level")
                .value_name("LEVEL")
                .help("Show only events up to this level")
                .value_parser(value_parser!(u8)),
        )
        .arg(
            Arg::new("keyword")
                .long("keyword")
                .value_name("MASK")
                .help("Show only events with at least one of these keywords, or without keywords")
                .value_parser(mask),
        )
        .arg(
            Arg::new("activity")
                .long("activity")
                .value_name("GUID")
                .help("Show only events of this activity, and events that are related to it")
                .value_parser(|text: &str| text.parse::<Guid>().map_err(|error| error.to_string())),
        )
        .arg(
            Arg::new("width")
                .long("width")
                .value_name("CHARACTERS")
                .help(
                    "The width of the table; default: the width of the terminal, or unlimited \
                     without a terminal",
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
    Chrome,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Table,
            Self::Json,
            Self::Csv,
            Self::Perfetto,
            Self::Chrome,
        ]
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
            Self::Chrome => PossibleValue::new("chrome")
                .help("A timeline for chrome://tracing; activities become spans"),
        })
    }
}

/// A command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the argument {0} is missing")]
    Argument(&'static str),
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: ReadError },
    #[error(transparent)]
    Manifest(#[from] LoadError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{}: {source}", file.display())]
    Merge { file: PathBuf, source: MergeError },
    #[error("cannot write {}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Report(#[from] report::SourceError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error(
        "a Perfetto timeline is not text, and standard output is a terminal: name a file with \
         --out, and open it at https://ui.perfetto.dev"
    )]
    Terminal,
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("dump", arguments)) => dump(arguments),
        Some(("merge", arguments)) => merge(arguments),
        Some(("report", arguments)) => report(arguments),
        Some(("stats", arguments)) => stats(arguments),
        _ => clap::Error::raw(ErrorKind::MissingSubcommand, "a command is missing\n").exit(),
    };
    match result {
        Ok(code) => code,
        // The reader of the output has closed the pipe.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

/// An open file with the catalog to decode it.
struct Input {
    file: PathBuf,
    trace: Trace,
    catalog: Catalog,
}

impl Input {
    fn open(arguments: &ArgMatches) -> Result<Self, Failure> {
        let mut catalog = catalog(arguments)?;
        let file = required::<PathBuf>(arguments, "file")?.as_path();
        complete(&mut catalog, file)?;
        let trace = Trace::open(file).map_err(|source| Failure::Read {
            file: file.to_owned(),
            source,
        })?;
        Ok(Self {
            file: file.to_owned(),
            trace,
            catalog,
        })
    }

    /// Returns the selected events, sorted by time.
    fn events(&self, selection: &Selection) -> Vec<Decoded> {
        let events = self.trace.events_by_time().into_iter();
        events
            .map(|event| decode(event, &self.catalog))
            .filter(|event| selection.wants(event))
            .collect()
    }

    /// Prints the damage, and returns a failure code if there is any.
    fn finish(&self) -> ExitCode {
        for damage in self.trace.damages() {
            complain(&format_args!("{}: {damage}", self.file.display()));
        }
        if self.trace.damages().is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
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
    }
}

fn dump(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let input = Input::open(arguments)?;
    let selection = selection(arguments);
    let format = *required::<Format>(arguments, "format")?;
    let file = arguments.get_one::<PathBuf>("out").map(PathBuf::as_path);
    let stdout = io::stdout();
    if file.is_none() && matches!(format, Format::Perfetto) && stdout.is_terminal() {
        return Err(Failure::Terminal);
    }
    let width = arguments.get_one("width").copied();
    let width = width.or_else(|| file.map_or_else(|| terminal_width(&stdout), |_| None));
    match file {
        None => {
            let mut out = io::BufWriter::new(stdout.lock());
            print(&input, &selection, format, width, &mut out)?;
            out.flush()?;
        }
        Some(file) => write_through(file, |out| print(&input, &selection, format, width, out))?,
    }
    Ok(input.finish())
}

/// Prints the selected events in a format.
fn print(
    input: &Input,
    selection: &Selection,
    format: Format,
    width: Option<u16>,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Table => {
            let events = input.events(selection);
            write!(out, "{}", table::summary(&input.trace))?;
            if !events.is_empty() {
                writeln!(out, "{}", table::render(&events, width))?;
            }
            Ok(())
        }
        Format::Json => json::write_lines(&input.trace, &input.catalog, selection, out),
        Format::Csv => csv::write_events(&input.events(selection), out),
        Format::Perfetto => timeline(input, selection, out),
        Format::Chrome => chrome::write_events(&input.events(selection), out),
    }
}

/// Prints the selected events as a timeline of Perfetto, and what it leaves out on standard error.
fn timeline(input: &Input, selection: &Selection, out: &mut impl Write) -> io::Result<()> {
    let header = input.trace.header();
    let mut writer = perfetto::Writer::new(out, &header.session);
    for event in input.events(selection) {
        writer.event(&event)?;
    }
    let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
    for other in input.trace.others() {
        *skipped.entry(other.kind.to_string()).or_default() += 1;
    }
    for (kind, count) in skipped {
        complain(&format_args!(
            "{}: the timeline leaves out {count} records of the kind {kind}",
            input.file.display()
        ));
        writer.attribute(&format!("etl.left_out.{kind}"), &count.to_string())?;
    }
    for (what, count) in [
        ("events", header.events_lost),
        ("buffers", header.buffers_lost),
    ] {
        writer.attribute(&format!("etl.lost_{what}"), &count.to_string())?;
    }
    for damage in input.trace.damages() {
        writer.attribute("etl.damage", &damage.to_string())?;
    }
    let (_, summary) = writer.finish()?;
    for line in summary.to_string().lines() {
        complain(&format_args!("{}: {line}", input.file.display()));
    }
    Ok(())
}

fn stats(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let input = Input::open(arguments)?;
    let events = input.events(&Selection::default());
    let mut out = io::stdout().lock();
    write!(out, "{}", stats::render(&input.trace, &events))?;
    out.flush()?;
    Ok(input.finish())
}

/// Opens all input files.
fn traces(arguments: &ArgMatches) -> Result<Vec<(&Path, Trace)>, Failure> {
    let files = arguments.get_many::<PathBuf>("file").unwrap_or_default();
    files
        .map(|file| {
            let trace = Trace::open(file).map_err(|source| Failure::Read {
                file: file.clone(),
                source,
            })?;
            Ok((file.as_path(), trace))
        })
        .collect()
}

/// Returns the path of the output file.
fn out(arguments: &ArgMatches) -> Result<&PathBuf, Failure> {
    required(arguments, "out")
}

/// Returns an argument that the command line requires or gives a default.
fn required<'a, T: Clone + Send + Sync + 'static>(
    arguments: &'a ArgMatches,
    name: &'static str,
) -> Result<&'a T, Failure> {
    let value = arguments.try_get_one::<T>(name).ok().flatten();
    value.ok_or(Failure::Argument(name))
}

/// Writes a file completely or not at all.
fn write_file(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_through(file, |out| out.write_all(bytes))
}

/// Writes a file completely or not at all, through a temporary file.
fn write_through(
    file: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    let written = File::create(&beside).and_then(|file| {
        let mut out = io::BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written
        .and_then(|()| std::fs::rename(&beside, file))
        .map_err(|source| Failure::Write {
            file: file.to_owned(),
            source,
        })
}

fn merge(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let (files, traces): (Vec<&Path>, Vec<Trace>) = traces(arguments)?.into_iter().unzip();
    let to = out(arguments)?.as_path();
    let name = to.display().to_string();
    let merged = etl_file::merge::merge(&traces, &name, io::Cursor::new(Vec::new()));
    let merged = merged.map_err(|source| Failure::Merge {
        file: source
            .trace()
            .and_then(|trace| files.get(trace).copied())
            .unwrap_or(to)
            .to_owned(),
        source,
    })?;
    write_file(to, &merged.into_inner())?;
    let events: usize = traces.iter().map(|trace| trace.events().count()).sum();
    writeln!(
        io::stdout(),
        "{events} events of {} files in {name}",
        files.len()
    )?;
    Ok(ExitCode::SUCCESS)
}

fn report(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut catalog = catalog(arguments)?;
    let paths = arguments.get_many::<PathBuf>("file").unwrap_or_default();
    let mut files = Vec::new();
    for path in paths {
        complete(&mut catalog, path)?;
        let file = TraceFile::open(path).map_err(|source| Failure::Read {
            file: path.clone(),
            source,
        })?;
        files.push((path.display().to_string(), file));
    }
    let limit = arguments.get_one("limit").copied();
    let limit = limit.unwrap_or(report::DEFAULT_LIMIT);
    let title: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let mut page =
        report::Writer::new(title.join(", "), limit).map_err(report::SourceError::Write)?;
    let mut sources: Vec<report::Source<'_, File>> = files
        .iter_mut()
        .map(|(name, file)| report::Source { name, file })
        .collect();
    let damages = page.add_files(&mut sources, &catalog)?;
    let out = out(arguments)?;
    let mut written = None;
    write_through(out, |file| {
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
    for ((name, _), damages) in files.iter().zip(damages) {
        for damage in damages.listed() {
            complain(&format_args!("{name}: {damage}"));
        }
        if damages.unlisted() > 0 {
            let more = damages.unlisted();
            complain(&format_args!(
                "{name}: {more} more damaged parts are not listed"
            ));
        }
        if !damages.is_empty() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Returns the width of the terminal, if the output is one.
fn terminal_width(stdout: &io::Stdout) -> Option<u16> {
    stdout
        .is_terminal()
        .then(|| comfy_table::Table::new().width())
        .flatten()
}

/// Prints a warning to standard error, and ignores an error of that.
fn warn(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "warning: {what}");
}

/// Prints a message to standard error, and ignores an error of that.
fn complain(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "etl: {what}");
}
