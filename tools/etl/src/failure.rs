//! The reasons why a command fails.

use std::io;
use std::path::PathBuf;

use etl::compare::{OtherError, OursError};
use etl::{csv, report};
use etl_file::ImageError;
use etl_file::decode::wpp::FormatsError;
use etl_file::decode::{LoadError, MofError};
use etl_file::merge::MergeError;
use etl_file::symbols::SymbolError;
use etl_file::{OtherFormat, ReadError};

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
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
    #[error("cannot copy the trace from a pipe to a temporary file: {0}")]
    Copy(io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error(
        "{what} is not text, and standard output is a terminal: name a file with --out, and open it \
         {viewer}"
    )]
    Terminal { what: &'static str, viewer: &'static str },
    #[error("{}: the trace contains no packets of Microsoft-Windows-NDIS-PacketCapture or Microsoft-Windows-PktMon", file.display())]
    NoPackets { file: PathBuf },
    #[error(
        "--minimal needs selected events; name them by --provider, --process, --from or another option"
    )]
    NotSelected,
    #[error(
        "{format} output shows one file, and {files} are named: run one command for each file, or join \
         them with `etl merge`"
    )]
    OneFile { format: String, files: usize },
    #[error("{format} output has no relative times: omit --relative, or choose table, json or csv")]
    NoRelativeTimes { format: String },
    #[error(
        "{} has other fields than {}, so that they do not fit in one table: run one command for each \
         file, or omit --fields",
        file.display(),
        first.display()
    )]
    OtherColumns { file: PathBuf, first: PathBuf },
    #[error(
        "{}: no profile samples or call stacks are in the selected events; record them with stack walking, \
         or select other events by --provider or --event",
        file.display()
    )]
    NoStacks { file: PathBuf },
}
