//! `etl-export`: writes traces as Parquet tables, or as OpenTelemetry logs and spans.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use etl_export::{ExportError, Logs, Row, Source, Tables};
use etl_file::{
    Catalog, CodePage, Completion, Decoded, EventRef, FirstPass, Pipeline, Summary, TraceFile,
    internals::available_threads,
};

fn command() -> Command {
    let paths = |name: &'static str, help: &'static str| {
        let argument = Arg::new(name).long(name).value_name("FILE").help(help);
        argument.action(ArgAction::Append).value_parser(value_parser!(PathBuf))
    };
    Command::new("etl-export")
        .about("Write .etl files as Parquet tables, or as OpenTelemetry logs and spans")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .help("The .etl files")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .help("The output format")
                .default_value("parquet")
                .value_parser(["parquet", "otlp"]),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FOLDER")
                .help("The folder to write to")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("host")
                .long("host")
                .value_name("NAME")
                .help("The name of the machine; default: the file's name up to the first `@`"),
        )
        .arg(paths("man", "Decode events with this provider manifest; can be repeated"))
        .arg(paths("image", "Decode events with the resources of this image; can be repeated"))
        .arg(paths("mof", "Decode classic events with the classes of this file; can be repeated"))
        .arg(paths("tmf", "Show WPP messages by this TMF file or folder; can be repeated"))
        .arg(
            Arg::new("code-page")
                .long("code-page")
                .value_name("NUMBER")
                .help("Decode 8-bit text that is not UTF-8 in this code page; default: 1252")
                .value_parser(value_parser!(CodePage)),
        )
        .arg(
            Arg::new("hardware-addresses")
                .long("hardware-addresses")
                .help("Keep the addresses of network adapters, which are hidden otherwise")
                .action(ArgAction::SetTrue),
        )
}

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let all = |name| arguments.get_many::<PathBuf>(name).unwrap_or_default();
    let mut loaded = Catalog::new();
    if let Some(code_page) = arguments.get_one("code-page") {
        loaded.set_code_page(*code_page);
    }
    for image in all("image") {
        loaded.load_image(image)?;
    }
    for manifest in all("man") {
        for skipped in loaded.load(manifest)? {
            eprintln!("warning: {}: {skipped}", manifest.display());
        }
    }
    for classes in all("mof") {
        loaded.load_classes(classes)?;
    }
    for formats in all("tmf") {
        loaded.load_formats(formats)?;
    }
    let out = arguments.get_one::<PathBuf>("out").ok_or("the argument --out is missing")?;
    let is_parquet = arguments.get_one::<String>("format").is_none_or(|one| one == "parquet");
    let mut tables = Tables::new(out);
    let mut code = ExitCode::SUCCESS;
    for path in all("file") {
        let named = |error: ExportError| format!("{}: {error}", path.display());
        let mut file = TraceFile::open(path).map_err(|error| named(error.into()))?;
        let first = FirstPass::read(&mut file).map_err(|error| named(error.into()))?;
        let mut catalog = loaded.clone();
        first.schemas.add_to(&mut catalog);
        for defect in first.schemas.defects() {
            eprintln!("warning: {}: {defect}", path.display());
        }
        let completion = Completion { names: true, ..Completion::default() };
        let pipeline = Pipeline {
            completion: first.can_complete.then_some(&completion),
            hardware_addresses: arguments.get_flag("hardware-addresses"),
            threads: available_threads(),
            ..Pipeline::new(&catalog)
        };
        let source = source(path, arguments.get_one("host"), &file);
        let summary = if is_parquet {
            let summary = each(&pipeline, &mut file, |row| tables.add(row, &source, &catalog));
            summary.and_then(|summary| {
                tables.end_trace()?;
                Ok(summary)
            })
        } else {
            let mut logs = Logs::create(out, &source).map_err(named)?;
            each(&pipeline, &mut file, |row| logs.add(row)).and_then(|summary| {
                let unfinished = logs.finish()?;
                if unfinished > 0 {
                    eprintln!(
                        "{}: {unfinished} start events have no span, for want of a stop",
                        path.display()
                    );
                }
                Ok(summary)
            })
        };
        let summary = summary.map_err(named)?;
        println!("{}: {} events", path.display(), summary.selected);
        for (kind, count) in summary.skipped.iter() {
            eprintln!("{}: omitted {} records of the kind {kind:?}", path.display(), count.records);
        }
        for damage in summary.damages.listed() {
            eprintln!("error: {}: {damage}", path.display());
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Passes the rows of a trace to `take`, in time order.
fn each(
    pipeline: &Pipeline<'_>,
    file: &mut TraceFile,
    mut take: impl FnMut(&Row) -> Result<(), ExportError>,
) -> Result<Summary, ExportError> {
    let row = |(): &mut (), event: &EventRef<'_>, decoded: Decoded, rows: &mut Vec<Row>| {
        rows.push(Row::new(event, decoded)?);
        Ok(())
    };
    pipeline.run(file, || (), row, |rows| rows.iter().try_for_each(&mut take))
}

fn source(path: &Path, host: Option<&String>, file: &TraceFile) -> Source {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let of_file = stem.split('@').next().unwrap_or_default().to_owned();
    Source {
        host: host.cloned().unwrap_or(of_file),
        boot: file.header().session.boot_time,
        trace: stem.into_owned(),
        start: file.header().session.start_time,
    }
}
