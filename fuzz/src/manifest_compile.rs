//! Compiles arbitrary bytes as a manifest.

use etl_file::Catalog;
use etw_manifest::{
    self as manifest, Failures,
    resources::{Version, message_table, wevt_template},
};
use wdk_etw_build::import;
use wdk_etw_schema::Provider;

use crate::text::{assert_sentence, sentence};

/// The properties of a compiled manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// The number of providers.
    pub providers: usize,
    /// The number of the providers' events.
    pub events: usize,
    /// The number of events in the imported declaration.
    pub imported: usize,
    /// True if the manifest has a message table.
    pub messages: bool,
}

/// Checks the resources of a manifest.
///
/// A rejected manifest yields a location in the text. An accepted one can be written again with the
/// same meaning, compiled to resources that this project can read, and imported as a valid Rust
/// declaration.
///
/// # Errors
/// Fails with the text of the error if the manifest is rejected.
pub fn check(data: &[u8]) -> Result<Compiled, String> {
    let Some(text) = manifest::text(data) else {
        return Err("the bytes are not text".to_owned());
    };
    let read = match manifest::read(&text) {
        Ok(read) => read,
        Err(failures) => {
            check_failures(&failures, &text);
            return Err(failures.to_string());
        }
    };
    let template = wevt_template(&read, Version::V5).map_err(|error| sentence(&error))?;
    let messages = message_table(&read).map_err(|error| sentence(&error))?;
    let written = manifest::write(&read, "");
    let again = match manifest::read(&written) {
        Ok(again) => again,
        Err(failures) => panic!("what was written is refused: {failures}\n{written}"),
    };
    let same = wevt_template(&again, Version::V5).is_ok_and(|again| again == template)
        && message_table(&again).is_ok_and(|again| again == messages);
    assert!(same, "what was written makes other resources:\n{written}");
    assert!(manifest::write(&again, "") == written, "{written}");
    let has_messages = messages.is_some();
    if let Err(error) = Catalog::new().add_resources(&template, &messages.unwrap_or_default()) {
        panic!("the resources are not read: {error}");
    }
    let imported = import::declaration(&read, None);
    match wdk_etw_schema::parse::source(&imported.source) {
        Ok(declared) => check_notes(&read, &declared, &imported.notes),
        Err(error) => panic!("the declaration is refused: {error}\n{}", imported.source),
    }
    Ok(Compiled {
        providers: read.providers.len(),
        events: read.providers.iter().map(|it| it.events.len()).sum(),
        imported: imported.source.matches("#[event(").count(),
        messages: has_messages,
    })
}

/// Checks that a note names each provider and event that the declaration omits.
fn check_notes(read: &manifest::Manifest, declared: &[Provider], notes: &[import::Note]) {
    for provider in &read.providers {
        let Some(other) = declared.iter().find(|other| other.guid == provider.guid) else {
            let of_provider = format!("the provider {} was not imported", provider.name);
            let is_noted = notes.iter().any(|note| note.what.starts_with(&of_provider));
            assert!(is_noted, "{of_provider}: {notes:?}");
            continue;
        };
        for event in &provider.events {
            let (id, version) = (event.id, event.version);
            let mut events = other.events.iter();
            let of_event = format!("event {id} version {version} was not imported");
            let is_there = events.any(|one| (one.id, one.version) == (id, version));
            let is_noted =
                notes.iter().any(|note| note.at == event.at && note.what.starts_with(&of_event));
            assert!(is_there || is_noted, "{of_event}: {notes:?}");
        }
    }
}

fn check_failures(failures: &Failures, text: &str) {
    assert!(!failures.0.is_empty());
    let lines = text.split('\n').count();
    for failure in &failures.0 {
        assert_sentence(failure);
        assert!((1..=lines).contains(&failure.at.line), "{failure}");
        assert!(failure.at.column >= 1, "{failure}");
    }
}
