//! Messages on standard error.

use std::io::{self, Write};
use std::path::Path;

use etl_file::internals::show::Escaped;
use etl_file::{Damages, StackCounts, Summary};

/// Prints the numbers of skipped records, if the output itself cannot contain them.
pub fn tell_skipped(file: &Path, summary: &Summary) {
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

/// Prints the numbers of stacks, and of processes, threads, images and stacks that were dropped
/// because the tables were full.
pub fn tell_stacks(file: &Path, summary: &Summary) {
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
pub fn tell_without_format(file: &Path, summary: &Summary) {
    if summary.without_format != 0 {
        complain(&format_args!(
            "{}: no loaded TMF file or PDB describes {} WPP messages; name one with --tmf or --pdb",
            file.display(),
            summary.without_format
        ));
    }
}

/// Prints the number of records that are out of order.
pub fn tell_late(file: &Path, summary: &Summary) {
    if summary.late != 0 {
        complain(&format_args!("{}: {} records are out of order", file.display(), summary.late));
    }
}

/// Prints the damaged parts of a file to standard error.
pub fn list(file: &dyn std::fmt::Display, damages: &Damages) {
    for damage in damages.listed() {
        complain(&format_args!("{file}: {damage}"));
    }
    if damages.unlisted() > 0 {
        let more = damages.unlisted();
        complain(&format_args!("{file}: {more} more damaged parts are not listed"));
    }
}

/// Prints a warning to standard error; ignores errors in printing.
pub fn warn(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "warning: {what}");
}

/// Prints a message to standard error; ignores errors in printing.
pub fn complain(what: &dyn std::fmt::Display) {
    let _unheard = writeln!(io::stderr(), "etl: {what}");
}
