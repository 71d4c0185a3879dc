//! `etl compare`: compares the decoded events of a trace with what other decoders say about it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use clap::{Arg, ArgMatches, Command, value_parser};
use etl::compare::{self, Comparison, Other, Ours};
use etl_file::Selection;

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::options::{file, flag, functions, names, option, required, schemas, several, threads};

/// Returns the command's definition.
pub fn command() -> Command {
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

/// Compares a trace's events with other decoders' files.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
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
    let code = finish(slice::from_ref(&input), slice::from_ref(&summary.damages));
    Ok(if results.iter().all(|(.., result)| result.agrees()) { code } else { ExitCode::FAILURE })
}
