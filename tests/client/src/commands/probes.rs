//! `probes`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
};

use etw_probes::{Answer, Answers, Host, Probe, ask_saving, probes};
use etw_session::process;

use crate::{arguments::ProbeOptions, error::Failure, probes_host::Windows};

fn find(id: &str) -> Result<&'static Probe, Failure> {
    probes().find(|probe| probe.id == id).ok_or_else(|| Failure::NoProbe(id.to_owned()))
}

/// Returns the probes with these ids or, if there are none, all probes except those in `except`.
/// Risky probes come last.
fn chosen(ids: &[String], except: &[String]) -> Result<Vec<&'static Probe>, Failure> {
    let mut chosen: Vec<&'static Probe> = if ids.is_empty() {
        probes().collect()
    } else {
        ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    for id in except {
        find(id)?;
    }
    chosen.retain(|probe| !except.iter().any(|id| id == probe.id));
    chosen.sort_by_key(|probe| probe.risky);
    Ok(chosen)
}

/// Reads the answers in a file.
fn former(path: &Path) -> Result<BTreeMap<String, Answer>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::ReadAnswers { path: path.to_owned(), error })?;
    Ok(Answers::read(&text)?.answers)
}

/// Runs probes and writes the answers. The file is written after each answer, so that a bugcheck
/// does not lose earlier answers.
pub fn run(options: &ProbeOptions) -> Result<(), Failure> {
    let chosen = chosen(&options.ids, &options.except)?;
    if options.list {
        for probe in chosen {
            println!("{:<36} {} ({})", probe.id, probe.text, probe.about.join(", "));
        }
        return Ok(());
    }
    process::require_windows()?;
    if !process::is_elevated()? {
        eprintln!("note: this prompt is not elevated, so Windows will refuse to start sessions");
    }
    let mut host = Windows::new(options.traces.clone())?;
    let mut answers = Answers {
        system: host.system()?,
        answers: match &options.with {
            Some(path) => former(path)?,
            None => BTreeMap::new(),
        },
    };
    let mut not_asked = 0;
    ask_saving(
        &mut host,
        chosen.iter().copied(),
        &mut answers,
        &mut |answers| {
            answers
                .save(&options.out)
                .map_err(|error| Failure::Write { path: options.out.clone(), error })
        },
        &mut |probe, answer| match answer {
            None => {
                println!("{:<36} asking ...", probe.id);
                // The file on disk survives a bugcheck. If it cannot be written, the answers are
                // still returned.
                let _ = io::stdout().flush();
            }
            Some(Answer::NotAsked(why)) => {
                println!("{:<36} not asked: {why}", probe.id);
                not_asked += 1;
            }
            Some(Answer::Found(_)) => {}
        },
    )?;
    println!("{}", options.out.display());
    if not_asked == chosen.len() {
        return Err(Failure::NotAsked { not_asked, asked: chosen.len() });
    }
    Ok(())
}
