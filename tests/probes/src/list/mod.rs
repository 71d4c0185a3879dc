//! The probes, by subject. Their questions are in `probes.txt`, which describes its own format.

mod activities;
mod callbacks;
mod events;
mod sessions;
mod settings;

use std::sync::LazyLock;

use crate::{
    probe::{Probe, Run},
    stage::error,
};

/// A subject and its probes.
pub type Subject = (&'static str, Vec<Probe>);

/// The functions that run the probes, by id.
const RUN: [&[(&str, Run)]; 5] =
    [settings::RUN, activities::RUN, callbacks::RUN, sessions::RUN, events::RUN];

static SUBJECTS: LazyLock<Vec<Subject>> =
    LazyLock::new(|| include_str!("probes.txt").split("\n# ").skip(1).map(subject).collect());

/// Returns all probes.
pub fn probes() -> impl Iterator<Item = &'static Probe> {
    subjects().iter().flat_map(|(_, probes)| probes)
}

/// Returns the subjects and their probes.
pub fn subjects() -> &'static [Subject] {
    &SUBJECTS
}

fn subject(text: &'static str) -> Subject {
    let mut blocks = text.trim_end().split("\n\n");
    (blocks.next().unwrap_or_default(), blocks.map(probe).collect())
}

fn probe(block: &'static str) -> Probe {
    let mut words = block.lines().next().unwrap_or_default().split(' ');
    let id = words.next().unwrap_or_default();
    let flags: Vec<&str> = words.collect();
    let field = |name: &str| {
        let mut fields = block.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(key, _)| *key == name).map_or("", |(_, text)| text)
    };
    let run = RUN.into_iter().flatten().find(|(name, _)| *name == id);
    Probe {
        id,
        text: field("asks"),
        about: field("about").split_whitespace().collect(),
        source: field("source"),
        confidence: field("confidence"),
        documented: field("documented"),
        assumed: field("assumed"),
        varies: flags.contains(&"varies"),
        risky: flags.contains(&"risky"),
        run: run.map_or(|_| Err(error("no function runs this probe")), |(_, run)| *run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_text_and_every_text_is_complete() {
        let of_functions = RUN.into_iter().flatten().map(|(id, _)| *id);
        let ids: Vec<&str> = probes().map(|probe| probe.id).collect();
        assert_eq!(ids, of_functions.collect::<Vec<_>>());
        for probe in probes() {
            let Probe { id, text, source, documented, assumed, confidence, .. } = probe;
            let texts = [text, source, documented, assumed];
            assert!(texts.iter().all(|text| !text.is_empty()), "{id}");
            assert!(["high", "medium", "low"].contains(confidence), "{id}: {confidence}");
        }
    }
}
