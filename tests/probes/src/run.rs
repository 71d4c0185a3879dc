//! Runs probes and collects the answers.

use std::collections::BTreeMap;

use etw_scenarios::HostError;

use crate::{
    answers::{Answer, Answers},
    host::Host,
    list::probes,
    probe::Probe,
    stage::Stage,
};

/// Runs all probes. `progress` receives each probe and its answer.
///
/// # Errors
///
/// Returns an error if the system cannot be identified. If a probe's stage fails, the probe counts
/// as not run, with the reason as its answer.
pub fn ask(
    host: &mut dyn Host,
    progress: &mut dyn FnMut(&Probe, &Answer),
) -> Result<Answers, HostError> {
    ask_some(host, probes(), progress)
}

/// Runs the given probes. See [`ask`].
///
/// # Errors
///
/// Returns an error in the cases that [`ask`] lists.
pub fn ask_some<'a>(
    host: &mut dyn Host,
    probes: impl Iterator<Item = &'a Probe>,
    progress: &mut dyn FnMut(&Probe, &Answer),
) -> Result<Answers, HostError> {
    let system = host.system()?;
    let mut answers = BTreeMap::new();
    for probe in probes {
        let answer = ask_one(host, probe);
        progress(probe, &answer);
        answers.insert(probe.id.to_owned(), answer);
    }
    Ok(Answers { system, answers })
}

/// Runs the given probes, and calls `save` after each, so that a bugcheck loses no answer.
///
/// The answers are added to the existing answers. Before a risky probe runs, an entry is saved
/// which states that the probe did not return; the probe's answer replaces the entry. `progress`
/// receives each probe before and after it runs.
///
/// # Errors
///
/// Returns the error of `save`. As in [`ask`], a probe whose stage fails is not an error.
pub fn ask_saving<'a, E>(
    host: &mut dyn Host,
    probes: impl Iterator<Item = &'a Probe>,
    answers: &mut Answers,
    save: &mut dyn FnMut(&Answers) -> Result<(), E>,
    progress: &mut dyn FnMut(&Probe, Option<&Answer>),
) -> Result<(), E> {
    for probe in probes {
        progress(probe, None);
        if probe.risky {
            let entry = Answer::NotAsked(DID_NOT_RETURN.to_owned());
            answers.answers.insert(probe.id.to_owned(), entry);
            save(answers)?;
        }
        let answer = ask_one(host, probe);
        progress(probe, Some(&answer));
        answers.answers.insert(probe.id.to_owned(), answer);
        save(answers)?;
    }
    Ok(())
}

/// The reason that is saved for a risky probe before it runs, and that remains after a bugcheck.
const DID_NOT_RETURN: &str = "did not return";

/// Runs a probe, and restores the host's state.
fn ask_one(host: &mut dyn Host, probe: &Probe) -> Answer {
    let mut stage = Stage::new(host);
    let found = stage
        .reset()
        .and_then(|()| (probe.run)(&mut stage))
        .and_then(|values| stage.reset().map(|()| values));
    let cleared = host.clear();
    match (found, cleared) {
        (Ok(values), Ok(())) => Answer::Found(values),
        (Err(error), _) | (Ok(_), Err(error)) => Answer::NotAsked(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etl_file::Guid;
    use etw_scenarios::{Session, Source};

    use super::*;
    use crate::{
        answers::System,
        host::{Completed, Enabling, Recorded, SessionPlan, Thread},
    };

    /// A system on which every operation fails.
    struct Nothing;

    fn error() -> HostError {
        HostError { what: "nothing works".to_owned(), code: None }
    }

    impl Host for Nothing {
        fn system(&self) -> Result<System, HostError> {
            Err(error())
        }
        fn thread(&self) -> Thread {
            Thread { process: 1, thread: 2 }
        }
        fn control(&mut self, _: u32, _: &[u8], _: usize) -> Result<Completed, HostError> {
            Err(error())
        }
        fn start_session(&mut self, _: SessionPlan) -> Result<Session, HostError> {
            Err(error())
        }
        fn stop_session(&mut self, _: Session) -> Result<Recorded, HostError> {
            Err(error())
        }
        fn enable(&mut self, _: Session, _: Source, _: &Enabling) -> Result<(), HostError> {
            Err(error())
        }
        fn disable(&mut self, _: Session, _: Source, _: Option<Guid>) -> Result<(), HostError> {
            Err(error())
        }
        fn capture_state(&mut self, _: Session, _: Source) -> Result<(), HostError> {
            Err(error())
        }
        fn set_activity(&mut self, _: Option<Guid>) -> Result<(), HostError> {
            Err(error())
        }
        fn deny_group(&mut self, _: Guid) -> Result<(), HostError> {
            Err(error())
        }
        fn pass(&mut self, _: Duration) -> Result<(), HostError> {
            Err(error())
        }
        fn clear(&mut self) -> Result<(), HostError> {
            Ok(())
        }
    }

    #[test]
    fn what_is_risky_is_saved_before_it_is_asked() {
        let of = |is_risky: bool| probes().find(|one| one.risky == is_risky).unwrap();
        let (safe, risky) = (of(false), of(true));
        let former = Answer::NotAsked("former".to_owned());
        let mut answers = Answers {
            system: System {
                name: "n".to_owned(),
                build: "b".to_owned(),
                architecture: "a".to_owned(),
            },
            answers: BTreeMap::from([("timer".to_owned(), former.clone())]),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.json");
        let mut saved = Vec::new();
        let mut asked = Vec::new();
        ask_saving(
            &mut Nothing,
            [safe, risky].into_iter(),
            &mut answers,
            &mut |answers| -> std::io::Result<()> {
                answers.save(&path).unwrap();
                let text = std::fs::read_to_string(&path)?;
                saved.push(Answers::read(&text).unwrap().answers);
                Ok(())
            },
            &mut |probe, answer| asked.push((probe.id, answer.is_some())),
        )
        .unwrap();
        assert_eq!(asked, [(safe.id, false), (safe.id, true), (risky.id, false), (risky.id, true)]);
        assert_eq!(saved.len(), 3);
        assert!(!saved[0].contains_key(risky.id));
        let why = |answers: &BTreeMap<String, Answer>| match &answers[risky.id] {
            Answer::NotAsked(why) => why.clone(),
            Answer::Found(_) => panic!(),
        };
        assert_eq!(why(&saved[1]), "did not return");
        assert!(why(&saved[2]).contains("nothing works"), "{}", why(&saved[2]));
        assert!(saved.iter().all(|one| one["timer"] == former));
        // No other file remains beside the answers file.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
