//! `etl dump`: prints the events of a trace.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use std::process::ExitCode;
use std::slice;

use clap::builder::{EnumValueParser, PossibleValue};
use clap::{Arg, ArgMatches, Command, ValueEnum, value_parser};
use etl::pcapng::{self, Capture};
use etl::stacks::{Stacks, write_folded, write_speedscope};
use etl::{csv, json, perfetto, table};
use etl_file::internals::show::Escaped;
use etl_file::{Event, EventRef, Selection, Summary};

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::messages::{complain, list, tell_late, tell_skipped, tell_stacks, tell_without_format};
use crate::options::{
    file, flag, functions, hardware_addresses, names, option, out_file, required, schemas,
    selecting, selection, several, threads, tmf,
};
use crate::output::{OUTPUT_BUFFER, terminal_width, write_out};

/// Returns the command's definition.
pub fn command() -> Command {
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
        .arg(flag(
            "guard-formulas",
            "With --format csv: write an apostrophe before text that spreadsheets run as a formula",
        ))
        .arg(flag("codes", "Show the names of well-known NTSTATUS, HRESULT and Win32 error codes"))
        .arg(hardware_addresses())
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

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut input = Input::open(arguments)?;
    let selection = selection(arguments);
    let format = *required::<Format>(arguments, "format")?;
    let is_by_thread = matches!(format, Format::Folded | Format::Speedscope);
    // The process of a performance event is only known after name resolution.
    input.completion.names |= is_by_thread || !selection.processes.is_empty();
    let csv = ["fields", "guard-formulas"].map(|name| arguments.get_flag(name));
    let file = arguments.get_one::<PathBuf>("out").map(PathBuf::as_path);
    let stdout = io::stdout();
    let binary = match format {
        Format::Perfetto => Some(("a Perfetto timeline", "at https://ui.perfetto.dev")),
        Format::Pcapng => Some(("a pcapng file", "with Wireshark")),
        Format::Table | Format::Json | Format::Csv | Format::Folded | Format::Speedscope => None,
    };
    if let Some((what, viewer)) = binary.filter(|_| file.is_none() && stdout.is_terminal()) {
        return Err(Failure::Terminal { what, viewer });
    }
    let width = arguments.get_one("width").copied();
    let width = width.or_else(|| file.map_or_else(|| terminal_width(&stdout), |_| None));
    let summary = match file {
        None => {
            let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, stdout.lock());
            let summary = print(&mut input, &selection, format, csv, width, &mut out)?;
            out.flush()?;
            summary
        }
        Some(_) => {
            write_out(arguments, |out| print(&mut input, &selection, format, csv, width, out))?
        }
    };
    Ok(finish(slice::from_ref(&input), slice::from_ref(&summary.damages)))
}

/// The output formats of `dump`.
#[derive(Clone, Copy)]
enum Format {
    Table,
    Json,
    Csv,
    Perfetto,
    Pcapng,
    Folded,
    Speedscope,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Table,
            Self::Json,
            Self::Csv,
            Self::Perfetto,
            Self::Pcapng,
            Self::Folded,
            Self::Speedscope,
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
            Self::Pcapng => PossibleValue::new("pcapng")
                .help("The packets of netsh trace and pktmon for Wireshark"),
            Self::Folded => PossibleValue::new("folded").help(
                "The number of each different call stack for flame graphs: of profile samples, or of \
                 the events that --provider or --event selects",
            ),
            Self::Speedscope => PossibleValue::new("speedscope")
                .help("The same call stacks as a profile of each thread for www.speedscope.app"),
        })
    }
}

/// Prints the selected events in a format.
fn print(
    input: &mut Input,
    selection: &Selection,
    format: Format,
    [by_field, guard]: [bool; 2],
    width: Option<u16>,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let header = input.file.header().clone();
    let buffers = input.file.buffers();
    match format {
        Format::Table => {
            let mut writer = table::Writer::new(out, width).with_codes(input.codes);
            writer.header(&header, buffers)?;
            let rows = writer.rows();
            let add =
                |rows: &mut table::Rows, _: &EventRef<'_>, decoded, lines: &mut table::Lines| {
                    rows.add(&decoded, lines);
                    Ok(())
                };
            let summary =
                input.events(selection, || rows.clone(), add, |lines| Ok(writer.lines(lines)?))?;
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
            let writer = csv::Writer::new(out, columns)?.with_codes(input.codes);
            let mut writer = writer.with_guard(guard);
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
        Format::Folded | Format::Speedscope => stacks(input, selection, format, out),
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
        writer.attribute(&format!("etl.left_out.{kind}"), &count.to_string());
    }
    tell_stacks(&input.path, &summary);
    for (what, count) in [("events", header.events_lost), ("buffers", header.buffers_lost)] {
        writer.attribute(&format!("etl.lost_{what}"), &count.to_string());
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
            writer.attribute(&format!("etl.{what}"), &count.to_string());
        }
    }
    for damage in summary.damages.listed() {
        writer.attribute("etl.damage", &damage.to_string());
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
    let captured = Capture::read(&mut input.file, &input.catalog, input.threads);
    let (capture, found) =
        captured.map_err(|source| Failure::Read { file: path.clone(), source })?;
    if capture.events == 0 {
        // The packets may have been in the damaged parts.
        list(&path.display(), &found.damages);
        return Err(Failure::NoPackets { file: path });
    }
    // A packet's own addresses are part of it.
    input.hardware_addresses = true;
    // Packets can be selected by process name; no other names matter here.
    input.can_complete &= input.completion.names;
    let mut writer = pcapng::Writer::new(out, &header, capture)?;
    let keep = |(): &mut (), event: &EventRef<'_>, decoded, batch: &mut Vec<_>| {
        if pcapng::concerns(event) {
            batch.push((event.to_event(), pcapng::Packet::read(event, &decoded)));
        }
        Ok(())
    };
    let summary = input.events(
        selection,
        || (),
        keep,
        |batch: &mut Vec<(Event, Option<pcapng::Packet>)>| {
            Ok(batch
                .iter()
                .try_for_each(|(event, packet)| writer.event(&event.view(), packet.as_ref()))?)
        },
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

/// Prints the call stacks of samples or of the selected events, and reports events without a stack on
/// standard error.
fn stacks(
    input: &mut Input,
    selection: &Selection,
    format: Format,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let (file, pipeline) = input.pipeline(selection);
    let (stacks, summary) =
        Stacks::read(file, &pipeline).map_err(|error| input.named(error.into()))?;
    let path = input.path.display();
    for (count, what) in [
        (stacks.without_walk, "samples have no call stack; their only frame is the sampled code"),
        (stacks.without_stack, "events have no call stack, and are omitted"),
        (stacks.dropped, "stacks do not fit in memory, and are shown as (other stacks)"),
    ] {
        if count != 0 {
            complain(&format_args!("{path}: {count} {what}"));
        }
    }
    if stacks.is_empty() {
        list(&path, &summary.damages);
        return Err(Failure::NoStacks { file: input.path.clone() });
    }
    tell_skipped(&input.path, &summary);
    if matches!(format, Format::Folded) {
        write_folded(&stacks, out)?;
    } else {
        write_speedscope(&stacks, &path.to_string(), out)?;
    }
    Ok(summary)
}
