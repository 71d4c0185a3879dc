//! `cargo etw import-wpp`: writes a declaration of the messages of a driver that uses WPP.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{ArgMatches, Command};
use driver_build::files;
use etl_file::{decode::wpp::Formats, symbols};
use etw_wire::Guid;
use wdk_etw_build::import;

use crate::options::{file, optional, path, required, several, text};

/// Returns the command line.
pub fn command() -> Command {
    Command::new("import-wpp")
        .about("Write a Rust declaration of the messages of a driver that uses WPP")
        .arg(
            file("files", "TMF files, folders with TMF files, and PDBs of drivers that use WPP")
                .num_args(1..),
        )
        .arg(text("provider", "NAME", "The provider's name").required(true))
        .arg(text(
            "guid",
            "GUID",
            "The provider's GUID, for example the control GUID [default: the hash of the name]",
        ))
        .arg(path("out", "FILE", "The source file to write [default: standard output]"))
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let mut formats = Formats::new();
    let mut unread = 0_usize;
    for path in several::<PathBuf>(matches, "files") {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdb")) {
            let (found, skipped) = symbols::formats_of(&path)?;
            formats.extend(&found);
            for message in &skipped {
                eprintln!("note: {message}");
            }
            unread += skipped.len();
            continue;
        }
        for part in formats.load(&path)? {
            eprintln!("note: {part}");
            unread += 1;
        }
    }
    ensure!(
        !formats.is_empty(),
        "the files describe no WPP message; name TMF files, or a PDB that was not stripped"
    );
    if let Some(first) = formats.clashing().next() {
        eprintln!(
            "note: the files describe {} messages in different ways, and the first way counts; name the \
             files of one build only. The first of them: {} ({}, {}) {:?}",
            formats.clashing().count(),
            first.name,
            first.guid,
            first.number,
            first.text
        );
    }
    let provider: String = required(matches, "provider")?;
    let guid = match optional::<String>(matches, "guid")? {
        Some(text) => text.parse().with_context(|| format!("`{text}` is not a GUID"))?,
        None => Guid::of_name(&provider).with_context(|| format!("cannot hash `{provider}`"))?,
    };
    let converted = formats.to_manifest(&provider, guid);
    let imported = import::declaration(&converted.manifest, None);
    for note in &converted.notes {
        eprintln!("note: {note}");
    }
    for note in &imported.notes {
        eprintln!("note: {}", note.what);
    }
    let counts = imported.counts;
    // On standard error, like the notes, because the standard output may be the declaration.
    eprintln!(
        "imported {} of {} messages; {} of them lost an argument, {} differ otherwise; {} parts of the \
         files were not read",
        counts.all.saturating_sub(counts.left_out),
        formats.len(),
        converted.changed,
        counts.changed,
        unread
    );
    match optional::<PathBuf>(matches, "out")? {
        Some(out) => {
            files::write(&out, imported.source)?;
            println!("{}", out.display());
        }
        None => print!("{}", imported.source),
    }
    Ok(())
}
