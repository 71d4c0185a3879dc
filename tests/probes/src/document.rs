//! The page that lists the probes with their answers.

use std::fmt::Write as _;

use crate::{
    answers::{Answer, Answers},
    list::subjects,
    probe::Probe,
};

const HEAD: &str = "# Probes of ETW

`cargo xtask renew probes` writes this page from the probes and the answers files.

The page lists ETW behaviour that is undocumented or doubtful. A driver
(`tests/drivers/probes`) and its client probe a system; the answers of one system are a file in
[standin-kernel/answers](../../standin-kernel/answers/README.md), and `KernelConfig::like` makes the
stand-in kernel behave like the system. *Documented* is the documents' answer, with the source and the
confidence; *assumed* is the stand-in kernel's default behaviour; *measured* is a system's answer.
The stand-in kernel's own answers only show that it behaves as assumed.
";

const NONE_MEASURED: &str = "
**No Windows build has been probed yet.** The columns of Windows builds appear here with their answers files.
";

/// Returns the page in Markdown, with a column for each system.
#[must_use]
pub fn document(systems: &[Answers]) -> String {
    let mut text = HEAD.to_owned();
    if systems.iter().all(|one| one.system.build == STAND_IN) {
        text.push_str(NONE_MEASURED);
    }
    for (subject, probes) in subjects() {
        let _ = write!(text, "\n## {subject}\n\n| probe | about | documented | assumed |");
        for one in systems {
            let _ = write!(text, " measured: {} |", one.system.build);
        }
        text.push_str("\n| --- | --- | --- | --- |");
        for _ in systems {
            text.push_str(" --- |");
        }
        text.push('\n');
        for probe in probes {
            let _ = writeln!(text, "{}", row(probe, systems));
        }
    }
    text
}

/// The build of the stand-in kernel.
const STAND_IN: &str = "stand-in";

fn row(probe: &Probe, systems: &[Answers]) -> String {
    let about: Vec<String> = probe
        .about
        .iter()
        .map(|id| format!("[{id}](etw-runtime.md#{})", id.to_lowercase()))
        .collect();
    let mut row = format!(
        "| <a id=\"{id}\"></a>`{id}` {text} | {about} | {documented} *({source}; {confidence})* | \
         {assumed} |",
        id = probe.id,
        text = probe.text,
        about = about.join(", "),
        documented = probe.documented,
        source = if probe.source == "none" { "no source" } else { probe.source },
        confidence = probe.confidence,
        assumed = probe.assumed,
    );
    for one in systems {
        let _ = write!(row, " {} |", measured(one.answers.get(probe.id)));
    }
    row
}

fn measured(answer: Option<&Answer>) -> String {
    match answer {
        None => "not asked".to_owned(),
        Some(Answer::NotAsked(why)) => format!("not asked: {why}"),
        Some(Answer::Found(values)) => {
            let values: Vec<String> =
                values.0.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            values.join("; ")
        }
    }
}
