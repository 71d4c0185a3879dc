//! `cargo xtask demo`: from nothing to decoded events.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use etl_file::{Catalog, Decoded, Trace, decode, table};
use etw_scenarios::{Tour, check, drive, expected_everything, expected_requests};
use etw_testkernel::SessionReport;

use crate::{
    build::{self, Profile},
    progress::step,
    toolchain::{Machine, Toolchain},
};

/// Runs the demo; the sessions' files go to the folder `out`.
pub fn run(out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    eprintln!("       {}", toolchain.describe());
    let sys = step(
        "Building etw_sample_driver.sys for x86_64-pc-windows-msvc",
        || build::build(&toolchain, build::SAMPLE, Profile::Release),
    )?;
    let tour = step(
        "Loading that file in the stand-in kernel and tracing it",
        || Ok(drive(&sys, out, &mut |what| eprintln!("       {what}"))?),
    )?;
    // The names and messages of its events are in the driver's own resources.
    let mut catalog = Catalog::new();
    catalog
        .load_image(&sys)
        .with_context(|| format!("cannot use {}", sys.display()))?;
    show(&tour.everything, &catalog)?;
    show(&tour.requests, &catalog)?;
    verify(&tour, &catalog)?;
    let file = tour.everything.file.display();
    println!("The driver:     {}", sys.display());
    println!("The traces:     {file}");
    println!("                {}", tour.requests.file.display());
    println!(
        "To look again:  cargo run -q -p etl-file --bin etl -- dump {file} --image {}",
        sys.display()
    );
    Ok(())
}

/// A trace's events, decoded, by time.
fn events(report: &SessionReport, catalog: &Catalog) -> Result<Vec<Decoded>> {
    let trace = Trace::open(&report.file)?;
    Ok(trace
        .events_by_time()
        .into_iter()
        .map(|event| decode(event, catalog))
        .collect())
}

/// Prints a session's events as a table.
fn show(report: &SessionReport, catalog: &Catalog) -> Result<()> {
    let events = events(report, catalog)?;
    println!(
        "\nSession \"{}\": {} events, {} lost, {} buffers\n",
        report.name, report.events, report.events_lost, report.buffers_written
    );
    println!("{}", table::render(&events, None));
    Ok(())
}

/// Compares what the sessions recorded with what they had to, and says so.
fn verify(tour: &Tour, catalog: &Catalog) -> Result<()> {
    for (report, expected) in [
        (&tour.everything, expected_everything()),
        (&tour.requests, expected_requests()),
    ] {
        check(&events(report, catalog)?, &expected)
            .with_context(|| format!("session \"{}\"", report.name))?;
    }
    println!("\nVerified:");
    for sentence in &tour.verified {
        println!("  - {sentence}");
    }
    println!(
        "  - each session recorded the events it asked for, in order, with the right fields, and no others\n"
    );
    Ok(())
}
