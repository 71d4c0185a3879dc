//! The options that several commands share.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{IntoResettable, StyledStr};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use etl_file::{CodePage, FileTime, Guid, Selection};
use jiff::SignedDuration;

use crate::failure::Failure;

/// Returns the argument for an input file.
pub fn file() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .help("The .etl file")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the argument for several input files.
pub fn files() -> Arg {
    file().help("The .etl files").num_args(1..)
}

/// Returns an option that takes a value.
pub fn option(
    name: &'static str,
    value: &'static str,
    help: impl IntoResettable<StyledStr>,
) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Returns an option that can be repeated.
pub fn several(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append)
}

/// Returns an option for a file or folder that can be repeated.
pub fn paths(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    several(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns an option without a value.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// Returns the options for the manifests and images that describe events.
pub fn schemas() -> [Arg; 4] {
    [
        option(
            "code-page",
            "NUMBER",
            "Decode 8-bit text that is not UTF-8 in this code page, such as 932; default: 1252",
        )
        .value_parser(value_parser!(CodePage)),
        paths("man", "FILE", "Decode events with this provider manifest; can be repeated"),
        paths("image", "FILE", "Decode events with the resources of this image; can be repeated"),
        paths(
            "mof",
            "FILE",
            "Decode classic events with the classes of this MOF file; can be repeated",
        ),
    ]
}

/// Returns the option for the formats of WPP messages.
pub fn tmf() -> Arg {
    let help = "Show WPP messages by this TMF file, or by those in this folder; can be repeated";
    paths("tmf", "FOLDER|FILE", help)
}

/// Returns the option for the addresses of network adapters.
pub fn hardware_addresses() -> Arg {
    flag(
        "hardware-addresses",
        "Keep the addresses of network adapters, which are hidden because they can identify a machine",
    )
}

/// Returns the option for process and thread names.
pub fn names() -> Arg {
    flag("names", "Show the names of processes and threads, from the file's kernel events")
}

/// Returns the option for the number of threads.
pub fn threads() -> Arg {
    option("threads", "N", "Decode on this many threads; default: one for each processor")
        .value_parser(value_parser!(u16).range(1..=MAX_THREADS))
}

/// The maximum number of decoding threads.
const MAX_THREADS: i64 = 256;

/// Returns the options for the function names of stack frames.
pub fn functions() -> [Arg; 2] {
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

/// Returns the option for the output file.
pub fn out_file(help: &'static str) -> Arg {
    option("out", "FILE", help).short('o').required(true).value_parser(value_parser!(PathBuf))
}

/// A time on the command line.
#[derive(Clone, Copy, Debug)]
enum Moment {
    At(FileTime),
    /// A number of 100 ns units after the start of the trace.
    After(i64),
}

/// The error for text that is not a time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "expected a time in UTC such as 2026-01-31T23:59:59.5Z, or a time since the start of the trace such \
     as +1.5s, +200ms or +3us"
)]
struct NotAMoment;

impl FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let Some(duration) = text.strip_prefix('+') else {
            return text.parse().map(Self::At).map_err(|_| NotAMoment);
        };
        let duration: SignedDuration = duration.parse().map_err(|_| NotAMoment)?;
        if duration.is_negative() {
            return Err(NotAMoment);
        }
        i64::try_from(duration.as_nanos() / 100).map(Self::After).map_err(|_| NotAMoment)
    }
}

impl Moment {
    const fn in_trace(self, start: FileTime) -> FileTime {
        match self {
            Self::At(time) => time,
            Self::After(units) => FileTime::from_raw(start.raw().saturating_add(units)),
        }
    }
}

/// Returns the options that select events.
pub fn selecting() -> [Arg; 8] {
    let time = |name, help| option(name, "TIME", help).value_parser(value_parser!(Moment));
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
            "Select only events at or after this time: in UTC, as in the table and in JSON, or since the \
             start of the trace, such as +1.5s, +200ms or +3us",
        ),
        time("to", "Select only events at or before this time, as with --from"),
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

/// Parses a decimal number, or a hexadecimal one after 0x.
fn mask(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .map_err(|error| format!("expected a number such as 3 or 0x3: {error}"))
}

/// Returns the selected events of a trace with this start.
pub fn selection(arguments: &ArgMatches, start: FileTime) -> Selection {
    let time = |name| arguments.get_one::<Moment>(name).map(|time| time.in_trace(start));
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
        from: time("from"),
        to: time("to"),
    }
}

/// Returns the path of the output file.
pub fn out(arguments: &ArgMatches) -> Result<&PathBuf, Failure> {
    required(arguments, "out")
}

/// Returns an argument that is required or has a default.
pub fn required<'a, T: Clone + Send + Sync + 'static>(
    arguments: &'a ArgMatches,
    name: &'static str,
) -> Result<&'a T, Failure> {
    let value = arguments.try_get_one::<T>(name).ok().flatten();
    value.ok_or(Failure::Argument(name))
}
