//! The questions, by their subjects.

mod activities;
mod callbacks;
mod events;
mod sessions;
mod settings;

use crate::question::Question;

/// Returns all questions.
pub fn questions() -> impl Iterator<Item = &'static Question> {
    subjects().into_iter().flat_map(|(_, questions)| questions)
}

/// Returns the subjects and their questions.
pub const fn subjects() -> [(&'static str, &'static [Question]); 5] {
    [
        ("EtwSetInformation", settings::QUESTIONS),
        ("Activity ids", activities::QUESTIONS),
        ("Enable callbacks", callbacks::QUESTIONS),
        ("Sessions", sessions::QUESTIONS),
        ("Events", events::QUESTIONS),
    ]
}
