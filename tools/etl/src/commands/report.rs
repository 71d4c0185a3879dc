//! `etl report`: writes a page that shows traces in a browser.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Command, value_parser};
use etl::report;
use etl_file::{Completion, Pipeline};

use crate::failure::Failure;
use crate::input::{catalog, open, symbols};
use crate::messages::{complain, list};
use crate::options::{files, functions, option, out, out_file, schemas, tmf};
use crate::output::write_out;

/// Returns the command's definition.
pub fn command() -> Command {
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

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
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
