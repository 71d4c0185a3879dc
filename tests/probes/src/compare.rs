//! Compares a measured system's answers with the stand-in kernel's, which are assumptions.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    answers::{Answer, Answers, Values},
    list::probes,
};

/// The numbers of probes about a statement, by their result.
#[derive(Default)]
struct Verdict {
    agreed: usize,
    differed: usize,
    not_asked: usize,
}

/// Returns the comparison in Markdown: the differences, and the statements of
/// `docs/reference/etw-runtime.md` that the answers confirm and refute.
#[must_use]
pub fn compare(assumed: &Answers, measured: &Answers) -> String {
    let mut verdicts: BTreeMap<String, Verdict> = BTreeMap::new();
    let (mut agreed, mut rows, mut not_asked) = (0, String::new(), String::new());
    for probe in probes() {
        let expected = assumed.answers.get(probe.id);
        let count = |verdicts: &mut BTreeMap<String, Verdict>,
                     field: fn(&mut Verdict) -> &mut usize| {
            for fact in &probe.about {
                *field(verdicts.entry((*fact).to_owned()).or_default()) += 1;
            }
        };
        match (expected, measured.answers.get(probe.id)) {
            (_, None) => {
                let _ = writeln!(not_asked, "- `{}`: the file has no answer", probe.id);
                count(&mut verdicts, |one| &mut one.not_asked);
            }
            (_, Some(Answer::NotAsked(why))) => {
                let _ = writeln!(not_asked, "- `{}`: {why}", probe.id);
                count(&mut verdicts, |one| &mut one.not_asked);
            }
            // Identical systems can differ here, so the answer says nothing about the assumption.
            (Some(Answer::Found(_)), Some(Answer::Found(_))) if probe.varies => agreed += 1,
            (Some(Answer::Found(expected)), Some(Answer::Found(found))) if expected == found => {
                agreed += 1;
                count(&mut verdicts, |one| &mut one.agreed);
            }
            (expected, Some(Answer::Found(found))) => {
                let none = Values::default();
                let expected = match expected {
                    Some(Answer::Found(values)) => values,
                    _ => &none,
                };
                let about = probe.about.join(", ");
                for (name, expected, found) in differences(expected, found) {
                    let _ = writeln!(
                        rows,
                        "| `{}` | {about} | {name} | {expected} | {found} |",
                        probe.id
                    );
                }
                count(&mut verdicts, |one| &mut one.differed);
            }
        }
    }
    let system = &measured.system;
    let mut text = format!(
        "## Answers of {} {} ({})\n\n{agreed} of {} probes agree with the stand-in kernel.\n",
        system.name,
        system.build,
        system.architecture,
        probes().count()
    );
    if !rows.is_empty() {
        let _ = write!(
            text,
            "\n| probe | statements | value | expected | found |\n|---|---|---|---|---|\n{rows}"
        );
    }
    let list = |is_in: fn(&Verdict) -> bool| {
        let names = verdicts.iter().filter(|(_, one)| is_in(one)).map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let _ = write!(
        text,
        "\n- **Confirmed**: {}\n- **Refuted**, or assumed otherwise: {}\n- **Open**: {}\n",
        list(|one| one.agreed > 0 && one.differed == 0),
        list(|one| one.differed > 0),
        list(|one| one.agreed == 0 && one.differed == 0)
    );
    if !not_asked.is_empty() {
        let _ = write!(text, "\n### Probes that were not asked\n\n{not_asked}");
    }
    text
}

/// Returns each value that differs: its name, and both texts.
fn differences<'a>(
    expected: &'a Values,
    found: &'a Values,
) -> impl Iterator<Item = (&'a str, String, String)> {
    let shown = |values: &Values, name: &str| {
        values.0.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    let names =
        expected.0.keys().chain(found.0.keys().filter(|name| !expected.0.contains_key(*name)));
    names
        .map(move |name| (name.as_str(), shown(expected, name), shown(found, name)))
        .filter(|(_, expected, found)| expected != found)
}

/// Returns the settings of the stand-in kernel that the answers change, in Markdown.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[must_use]
pub fn proposed_settings(answers: &str) -> String {
    use standin_kernel::KernelConfig;

    let mut text = "\n## `UnspecifiedBehaviour`\n\n".to_owned();
    let proposed = match KernelConfig::like(answers) {
        Ok(config) => config.unspecified_behaviour,
        Err(error) => {
            let _ = writeln!(text, "No settings follow from the answers: {error}.");
            return text;
        }
    };
    // The members, as `name: value`; no value contains a comma and a space.
    let members = |settings: &dyn std::fmt::Debug| -> Vec<String> {
        let shown = format!("{settings:?}");
        let (_, members) = shown.split_once("{ ").unwrap_or_default();
        members.trim_end_matches(" }").split(", ").map(str::to_owned).collect()
    };
    let default = KernelConfig::default().unspecified_behaviour;
    let mut is_changed = false;
    for (old, new) in members(&default).iter().zip(members(&proposed)) {
        if *old != new {
            is_changed = true;
            let _ = writeln!(text, "- `{old}` becomes `{new}`");
        }
    }
    if !is_changed {
        text.push_str("No default changes.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_in() -> Answers {
        Answers::read(include_str!("../../../standin-kernel/answers/stand-in.json")).unwrap()
    }

    fn windows() -> Answers {
        let mut answers = stand_in();
        answers.system.name = "Windows".to_owned();
        answers.system.build = "10.0.26100.1".to_owned();
        answers
    }

    #[test]
    fn equal_answers_confirm_the_statements() {
        let text = compare(&stand_in(), &windows());
        let all = probes().count();
        assert!(text.contains(&format!("{all} of {all} probes agree")), "{text}");
        assert!(text.contains("- **Refuted**, or assumed otherwise: none\n"), "{text}");
        assert!(text.contains("ETW-4.3.1"), "{text}");
        assert!(!text.contains("not asked"), "{text}");
    }

    #[test]
    fn a_difference_refutes_its_statements_and_a_missing_answer_leaves_them_open() {
        let mut measured = windows();
        let Some(Answer::Found(values)) = measured.answers.get_mut("traits-again") else {
            panic!()
        };
        *values = values.clone().status("status", 0xC000_0061);
        let not_asked = Answer::NotAsked("no device".to_owned());
        measured.answers.insert("information-class".to_owned(), not_asked);
        measured.answers.remove("traits-set");
        let text = compare(&stand_in(), &measured);
        let row =
            "| `traits-again` | O3, ETW-4.3.2, ETW-4.3.3 | status | 0xc000000d | 0xc0000061 |";
        assert!(text.contains(row), "{text}");
        let line = |word: &str| text.lines().find(|line| line.contains(word)).unwrap();
        assert!(line("**Refuted**").contains("ETW-4.3.2"), "{text}");
        assert!(!line("**Confirmed**").contains("ETW-4.3.2"), "{text}");
        assert!(line("**Open**").contains("ETW-4.3.1"), "{text}");
        assert!(text.contains("- `information-class`: no device\n"), "{text}");
        assert!(text.contains("- `traits-set`: the file has no answer\n"), "{text}");
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn the_settings_that_change_are_named() {
        let text = |answers: &Answers| proposed_settings(&answers.write().unwrap());
        assert!(text(&windows()).contains("No default changes."), "{}", text(&windows()));
        let mut measured = windows();
        let Some(Answer::Found(values)) = measured.answers.get_mut("largest-event") else {
            panic!()
        };
        *values = values.clone().with("size", 1234_u32);
        let said = text(&measured);
        assert!(said.contains("becomes `largest_event: 1234`"), "{said}");
        assert_eq!(said.matches("becomes").count(), 1, "{said}");
        let said = proposed_settings("{");
        assert!(said.contains("No settings follow from the answers: "), "{said}");
    }
}
