//! Asks questions and collects the answers.

use std::collections::BTreeMap;

use etw_scenarios::HostError;

use crate::{
    answers::{Answer, Answers},
    host::Host,
    list::questions,
    question::Question,
    stage::Stage,
};

/// Asks all questions. `progress` receives each question and its answer.
///
/// # Errors
///
/// Returns an error if the system does not say what it is. A question whose stage fails is one that
/// was not asked, and its answer says why.
pub fn ask(
    host: &mut dyn Host,
    progress: &mut dyn FnMut(&Question, &Answer),
) -> Result<Answers, HostError> {
    ask_some(host, questions(), progress)
}

/// Asks some questions, as [`ask`] does.
///
/// # Errors
///
/// Returns an error as [`ask`] does.
pub fn ask_some<'a>(
    host: &mut dyn Host,
    questions: impl Iterator<Item = &'a Question>,
    progress: &mut dyn FnMut(&Question, &Answer),
) -> Result<Answers, HostError> {
    let system = host.system()?;
    let mut answers = BTreeMap::new();
    for question in questions {
        let answer = ask_one(host, question);
        progress(question, &answer);
        answers.insert(question.id.to_owned(), answer);
    }
    Ok(Answers { system, answers })
}

/// Asks a question, and leaves the host as it was.
fn ask_one(host: &mut dyn Host, question: &Question) -> Answer {
    let mut stage = Stage::new(host);
    let found = stage
        .reset()
        .and_then(|()| (question.stage)(&mut stage))
        .and_then(|values| stage.reset().map(|()| values));
    let cleared = host.clear();
    match (found, cleared) {
        (Ok(values), Ok(())) => Answer::Found(values),
        (Err(error), _) | (Ok(_), Err(error)) => Answer::NotAsked(error.to_string()),
    }
}
