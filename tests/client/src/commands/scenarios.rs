//! `scenarios`.

use std::{fs::File, io, path::PathBuf};

use clap::ArgMatches;
use etw_scenarios::{Outcome, Report, Scenario, play, scenarios};

use crate::{arguments::required, error::Failure, process, world::Windows};

/// The scenarios of these names; all of them, if there is no name.
fn chosen(arguments: &ArgMatches) -> Result<Vec<&'static Scenario>, Failure> {
    let names: Vec<&String> = arguments.get_many("names").unwrap_or_default().collect();
    if names.is_empty() {
        return Ok(scenarios().collect());
    }
    names
        .into_iter()
        .map(|name| {
            scenarios()
                .find(|scenario| scenario.name == name)
                .ok_or_else(|| Failure::NoScenario(name.clone()))
        })
        .collect()
}

fn write(
    path: Option<&PathBuf>,
    writer: impl FnOnce(File) -> io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    File::create(path)
        .and_then(writer)
        .map_err(|error| Failure::Write {
            path: path.clone(),
            error,
        })
}

/// Plays scenarios and reports.
pub fn run(arguments: &ArgMatches) -> Result<(), Failure> {
    let chosen = chosen(arguments)?;
    if arguments.get_flag("list") {
        for scenario in chosen {
            println!(
                "{:<34} {} ({})",
                scenario.name,
                scenario.proves,
                scenario.requirements.join(", ")
            );
        }
        return Ok(());
    }
    if !process::is_elevated()? {
        eprintln!("note: this prompt is not elevated; sessions will be refused");
    }
    let folder = required::<PathBuf>(arguments, "traces")?;
    let mut world = Windows::new(folder.clone())?;
    let mut progress = |outcome: &Outcome| println!("{}", outcome.describe());
    let report: Report = play(chosen.into_iter(), &mut world, &mut progress);
    drop(world);
    write(arguments.get_one("json"), |file| report.write_json(file))?;
    write(arguments.get_one("junit"), |file| report.write_junit(file))?;
    if report.passed() {
        println!("{} scenarios passed", report.outcomes.len());
        return Ok(());
    }
    Err(Failure::Scenarios {
        failed: report.failures(),
        played: report.outcomes.len(),
    })
}
