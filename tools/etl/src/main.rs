//! `etl`: shows .etl files.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::EnumValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueEnum, builder::PossibleValue, value_parser};
use etl_file::manifest::LoadError;
use etl_file::read::ReadError;
use etl_file::{Catalog, Decoded, Trace, decode, json, table};

/// The command line.
fn command() -> Command {
    let dump = Command::new("dump")
        .about("Prints the events of a file in the order of time")
        .long_about(
            "Prints the events of a file in the order of time.\n\n\
             TraceLogging events decode by themselves; the others need the manifests of their \
             providers. What is damaged is named on the standard error output, after all that \
             could be read.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .help("The .etl file")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .help("How to print")
                .default_value("table")
                .value_parser(EnumValueParser::<Format>::new()),
        )
        .arg(
            Arg::new("man")
                .long("man")
                .value_name("FILE")
                .help("A manifest of a provider; may be given several times")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("width")
                .long("width")
                .value_name("CHARACTERS")
                .help(
                    "Width of the table; by default that of the terminal, and without a terminal \
                     as wide as the events are",
                )
                .value_parser(value_parser!(u16)),
        );
    Command::new("etl")
        .about("Shows .etl (Event Trace Log) files")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(dump)
}

/// How to print.
#[derive(Clone, Copy)]
enum Format {
    Table,
    Json,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Json]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Table => PossibleValue::new("table").help("A table"),
            Self::Json => {
                PossibleValue::new("json").help("A line for the header, then one for each event")
            }
        })
    }
}

/// Why nothing, or not all, was printed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: ReadError },
    #[error(transparent)]
    Manifest(#[from] LoadError),
    #[error("cannot print: {0}")]
    Output(#[from] io::Error),
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    // The command line requires the one subcommand there is.
    let Some(("dump", arguments)) = matches.subcommand() else {
        return ExitCode::from(2);
    };
    match dump(arguments) {
        Ok(code) => code,
        // Whoever reads the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

fn dump(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut catalog = Catalog::new();
    for manifest in arguments.get_many::<PathBuf>("man").unwrap_or_default() {
        catalog.load(manifest)?;
    }
    let file = arguments
        .get_one::<PathBuf>("file")
        .map_or_else(|| Path::new(""), PathBuf::as_path);
    let format = arguments
        .get_one("format")
        .copied()
        .unwrap_or(Format::Table);
    let trace = Trace::open(file).map_err(|source| Failure::Read {
        file: file.to_owned(),
        source,
    })?;
    let stdout = io::stdout();
    let width = arguments.get_one("width").copied();
    let width = width.or_else(|| terminal_width(&stdout));
    let mut out = io::BufWriter::new(stdout.lock());
    match format {
        Format::Table => {
            let events: Vec<Decoded> = trace
                .events_by_time()
                .into_iter()
                .map(|event| decode(event, &catalog))
                .collect();
            write!(out, "{}", table::summary(&trace))?;
            if !events.is_empty() {
                writeln!(out, "{}", table::render(&events, width))?;
            }
        }
        Format::Json => json::write_lines(&trace, &catalog, &mut out)?,
    }
    out.flush()?;
    for damage in trace.damages() {
        complain(&format_args!("{}: {damage}", file.display()));
    }
    Ok(if trace.damages().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The width of the terminal, if the output goes to one.
fn terminal_width(stdout: &io::Stdout) -> Option<u16> {
    stdout
        .is_terminal()
        .then(|| comfy_table::Table::new().width())
        .flatten()
}

/// Says what is wrong. If nobody listens there is nothing more to be done.
fn complain(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "etl: {what}");
}
