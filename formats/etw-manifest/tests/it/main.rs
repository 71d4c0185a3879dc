//! The crate's tests, by subject.

mod assembly;
mod lenient;
mod resources;
mod rules;

/// The manifest that the tests modify.
const SOUND: &str = include_str!("../fixture/sound.man");
