//! `scenarios`.

use std::{fs::File, io, path::PathBuf};

use etw_scenarios::{Outcome, Report, Scenario, scenarios};
use etw_session::process;

use crate::{arguments::ScenarioOptions, error::Failure, host::Windows};

/// Returns the scenarios with these names or, if there are none, all scenarios.
fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>, Failure> {
    if names.is_empty() {
        return Ok(scenarios().collect());
    }
    names
        .iter()
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
        .map_err(|error| Failure::Write { path: path.clone(), error })
}

/// Runs scenarios and reports the results.
pub fn run(options: &ScenarioOptions) -> Result<(), Failure> {
    let chosen = chosen(&options.names)?;
    if options.list {
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
        eprintln!("note: this prompt is not elevated, so Windows will refuse to start sessions");
    }
    let mut host = Windows::new(options.traces.clone())?;
    let mut progress = |outcome: &Outcome| println!("{}", outcome.describe());
    let report: Report = etw_scenarios::run(chosen.into_iter(), &mut host, &mut progress);
    drop(host);
    write(options.json.as_ref(), |file| report.write_json(file))?;
    write(options.junit.as_ref(), |file| report.write_junit(file))?;
    if report.passed() {
        println!("{} scenarios passed", report.outcomes.len());
        return Ok(());
    }
    Err(Failure::Scenarios { failed: report.failures(), run: report.outcomes.len() })
}
