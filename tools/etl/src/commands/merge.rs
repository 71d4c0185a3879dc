//! `etl merge`: makes one trace of several, or of a part of one.

use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use etl_file::internals::AddressHider;
use etl_file::trim::{Kept, Trimmer};
use etl_file::{FileTime, RecordRef, Selection, merge};

use crate::failure::Failure;
use crate::input::{catalog, open, open_trace};
use crate::messages::{list, warn};
use crate::options::{
    files, flag, hardware_addresses, out, out_file, schemas, selecting, selection,
};
use crate::output::write_out;

/// Returns the command's definition.
pub fn command() -> Command {
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
        .arg(hardware_addresses())
        .arg(flag(
            "minimal",
            "Keep only the selected events and what decoding them needs: the schemas of their providers, \
             their stacks, and the processes, threads and images of their processes",
        ))
        .arg(flag("compress", "Compress the buffers of the file"))
        .arg(out_file("The .etl file to write"))
}

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let files = arguments.get_many::<PathBuf>("file").unwrap_or_default();
    let files: Vec<&PathBuf> = files.collect();
    let all = selection(arguments, FileTime::default()) == Selection::default();
    let [shown, minimal] = ["hardware-addresses", "minimal"].map(|name| arguments.get_flag(name));
    if minimal && all {
        return Err(Failure::NotSelected);
    }
    let loaded = catalog(arguments)?;
    let (mut traces, mut catalogs) = (Vec::new(), Vec::new());
    let failed = |file: &Path, source| Failure::Read { file: file.to_owned(), source };
    for &file in &files {
        // A file's schemas apply only to its own events.
        let mut catalog = loaded.clone();
        traces.push(if all && shown { open_trace(file)? } else { open(file, &mut catalog)?.0 });
        catalogs.push(catalog);
    }
    // As in the merged trace, times since the start are those since the start of the first session.
    let starts = traces.iter().map(|trace| trace.header().session.start_time);
    let selection = selection(arguments, starts.min().unwrap_or_default());
    let mut parts = Vec::new();
    for ((trace, catalog), file) in traces.iter_mut().zip(&catalogs).zip(&files).filter(|_| !all) {
        let part = Trimmer::read(trace, &selection, catalog);
        let part = part.and_then(|part| if minimal { part.minimal(trace) } else { Ok(part) });
        parts.push(part.map_err(|error| failed(file, error))?);
    }
    let to = out(arguments)?;
    let name = to.display().to_string();
    let options = merge::Options { compress: arguments.get_flag("compress") };
    let keeps = |trace: usize, record: &RecordRef<'_>| {
        parts.get_mut(trace).map_or(Some(Kept::Selected), |part| part.keeps(record))
    };
    let mut addresses: Vec<AddressHider<'_>> =
        if shown { Vec::new() } else { catalogs.iter().map(AddressHider::new).collect() };
    let hide = |trace: usize, record: &RecordRef<'_>| {
        addresses.get_mut(trace).and_then(|one| one.hide(record))
    };
    let merged = write_out(arguments, |file| {
        file.stream_position().map_err(|_| {
            io::Error::other("a merge updates the start of its output at the end, which a pipe does not allow; name a file")
        })?;
        let merged = merge::merge_part(&mut traces, &name, options, keeps, hide, file);
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
