//! `etl dump`: prints the events of a trace.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use std::process::ExitCode;

use clap::builder::{EnumValueParser, PossibleValue};
use clap::{Arg, ArgMatches, Command, ValueEnum, value_parser};
use etl::pcapng::{self, Capture};
use etl::stacks::{Stacks, write_folded, write_speedscope};
use etl::{csv, json, perfetto, table};
use etl_file::internals::show::Escaped;
use etl_file::{Damages, Event, EventRef, Selection, Summary};

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::messages::{complain, list, tell_late, tell_skipped, tell_stacks, tell_without_format};
use crate::options::{
    files, flag, functions, hardware_addresses, names, option, out_file, required, schemas,
    selecting, selection, several, threads, tmf,
};
use crate::output::{OUTPUT_BUFFER, terminal_width, write_out};

/// Returns the command's definition.
pub fn command() -> Command {
    Command::new("dump")
        .about("Print the events of one or more files, sorted by time in each file")
        .long_about(
            "Print the events of one or more files, one file after the other, sorted by time in each \
             file.\n\n\
             TraceLogging events are self-describing. To decode other events, name the manifests \
             of their providers, or images that contain them as resources. Damaged parts of the \
             file are reported on standard error after all readable events.",
        )
        .arg(files())
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
        .arg(flag(
            "relative",
            "With --format table, json or csv: show times in seconds since the start of the file's session",
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
    let mut inputs = Input::open_all(arguments)?;
    let format = *required::<Format>(arguments, "format")?;
    let (viewed, has_lines) = match format {
        Format::Perfetto => (Some(("a Perfetto timeline", "at https://ui.perfetto.dev")), false),
        Format::Pcapng => (Some(("a pcapng file", "with Wireshark")), false),
        Format::Folded | Format::Speedscope => (None, false),
        Format::Table | Format::Json | Format::Csv => (None, true),
    };
    if !has_lines && (inputs.len() > 1 || arguments.get_flag("relative")) {
        let name = format.to_possible_value();
        let format = name.map_or_else(String::new, |name| name.get_name().to_owned());
        let files = inputs.len();
        return Err(if files > 1 {
            Failure::OneFile { format, files }
        } else {
            Failure::NoRelativeTimes { format }
        });
    }
    let mut selections = Vec::new();
    for input in &mut inputs {
        let selection = selection(arguments, input.start());
        let is_by_thread = matches!(format, Format::Folded | Format::Speedscope);
        // The process of a performance event is only known after name resolution.
        input.completion.names |= is_by_thread || !selection.processes.is_empty();
        selections.push(selection);
    }
    let [by_field, guard, relative] =
        ["fields", "guard-formulas", "relative"].map(|name| arguments.get_flag(name));
    let file = arguments.get_one::<PathBuf>("out").map(PathBuf::as_path);
    let stdout = io::stdout();
    if let Some((what, viewer)) = viewed.filter(|_| file.is_none() && stdout.is_terminal()) {
        return Err(Failure::Terminal { what, viewer });
    }
    let width = arguments.get_one("width").copied();
    let width = width.or_else(|| file.map_or_else(|| terminal_width(&stdout), |_| None));
    let options = Options { format, by_field, guard, relative, width };
    let damages = match file {
        None => {
            let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, stdout.lock());
            let damages = print(&mut inputs, &selections, options, &mut out)?;
            out.flush()?;
            damages
        }
        Some(_) => write_out(arguments, |out| print(&mut inputs, &selections, options, out))?,
    };
    Ok(finish(&inputs, &damages))
}

/// The options of an output.
#[derive(Clone, Copy)]
struct Options {
    format: Format,
    /// True to write a column of CSV for each field.
    by_field: bool,
    /// True to protect spreadsheets from formulas.
    guard: bool,
    /// True to show times in seconds since the start of the session.
    relative: bool,
    width: Option<u16>,
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

/// Prints the selected events of the files in a format, one file after the other. Returns the damage of
/// each file.
fn print(
    inputs: &mut [Input],
    selections: &[Selection],
    options: Options,
    out: &mut impl Write,
) -> Result<Vec<Damages>, Failure> {
    if matches!(options.format, Format::Csv) {
        return rows(inputs, selections, options, out);
    }
    let mut damages = Vec::new();
    let has_several = inputs.len() > 1;
    for (input, selection) in inputs.iter_mut().zip(selections) {
        let path = input.path.display().to_string();
        let name = has_several.then_some(path.as_str());
        let summary = match options.format {
            Format::Json => {
                let form = json::Form { path: name, relative: options.relative };
                let (file, pipeline) = input.pipeline(selection);
                let written = json::write_file(file, &pipeline, form, &mut *out);
                written.map_err(|failure| match failure {
                    json::LinesError::Read(source) => input.named(source.into()),
                    json::LinesError::Write(source) => source.into(),
                })
            }
            Format::Perfetto => timeline(input, selection, out),
            Format::Pcapng => packets(input, selection, out),
            Format::Folded | Format::Speedscope => stacks(input, selection, options.format, out),
            Format::Table | Format::Csv => {
                if let Some(name) = name {
                    let line_feed = if damages.is_empty() { "" } else { "\n" };
                    writeln!(out, "{line_feed}Trace    {}", Escaped(name))?;
                }
                entries(input, selection, options, out)
            }
        };
        damages.push(summary?.damages);
    }
    Ok(damages)
}

/// Prints the selected events as a table.
fn entries(
    input: &mut Input,
    selection: &Selection,
    options: Options,
    out: &mut impl Write,
) -> Result<Summary, Failure> {
    let header = input.file.header().clone();
    let mut writer = table::Writer::new(out, options.width).with_codes(input.codes);
    if options.relative {
        writer = writer.since(input.start());
    }
    writer.header(&header, input.file.buffers())?;
    let rows = writer.rows();
    let add = |rows: &mut table::Rows, _: &EventRef<'_>, decoded, lines: &mut table::Lines| {
        rows.add(&decoded, lines);
        Ok(())
    };
    let summary =
        input.events(selection, || rows.clone(), add, |lines| Ok(writer.lines(lines)?))?;
    writer.end(&header, &summary)?;
    Ok(summary)
}

/// Prints the selected events of all files as one table of CSV, and reports omitted records on standard
/// error.
fn rows(
    inputs: &mut [Input],
    selections: &[Selection],
    options: Options,
    out: &mut impl Write,
) -> Result<Vec<Damages>, Failure> {
    let mut known: Option<(csv::FieldColumns, PathBuf)> = None;
    for (input, selection) in inputs.iter_mut().zip(selections).filter(|_| options.by_field) {
        let found = columns(input, selection)?;
        match &known {
            Some((columns, first)) if *columns != found => {
                let (file, first) = (input.path.clone(), first.clone());
                return Err(Failure::OtherColumns { file, first });
            }
            Some(_) => {}
            None => known = Some((found, input.path.clone())),
        }
    }
    let columns = known.map(|(columns, _)| columns);
    let form = csv::Form { relative: options.relative, with_file: inputs.len() > 1 };
    let codes = inputs.iter().any(|input| input.codes);
    let writer = csv::Writer::with_form(out, columns, form)?.with_codes(codes);
    let mut writer = writer.with_guard(options.guard);
    let mut damages = Vec::new();
    for (input, selection) in inputs.iter_mut().zip(selections) {
        writer.start_file(&input.path.display().to_string(), input.start());
        let rows = writer.rows();
        let line = |rows: &mut csv::Rows, event: &EventRef<'_>, decoded, lines: &mut csv::Lines| {
            Ok(rows.line(event, &decoded, lines)?)
        };
        let take = |lines: &mut csv::Lines| Ok(writer.lines(std::mem::take(lines))?);
        let summary = input.events(selection, || rows.clone(), line, take)?;
        tell_skipped(&input.path, &summary);
        damages.push(summary.damages);
    }
    writer.end()?;
    Ok(damages)
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
