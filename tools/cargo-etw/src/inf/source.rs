//! The text and the contents of INF files.

use std::path::Path;

use anyhow::{Context, Result};
use driver_build::files;
use driver_package::inf::{Entry, Inf, Source, Stamp};

/// Reads the text of an INF file.
pub fn read_source(path: &Path) -> Result<Source> {
    let source = Source::decode(&files::read(path)?);
    source.with_context(|| format!("{} is not UTF-16, though it begins as such", path.display()))
}

/// Reads an INF file, and stamps it with these values unless it is already stamped.
pub fn stamped(path: &Path, stamp: &Stamp<'_>) -> Result<Source> {
    let mut source = read_source(path)?;
    let is_stamped = path.extension().is_some_and(|one| one.eq_ignore_ascii_case("inf"));
    if !is_stamped {
        source.text = stamp.apply(&source.text);
    }
    Ok(source)
}

/// Returns the hardware IDs that a file lists.
pub fn hardware_ids(inf: &Inf) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let manufacturers = inf.section("Manufacturer").into_iter().flat_map(|one| &one.entries);
    for manufacturer in manufacturers {
        for decoration in manufacturer.values.iter().skip(1) {
            let models = inf.section(&format!("{}.{decoration}", manufacturer.value(0)));
            for id in models
                .into_iter()
                .flat_map(|one| &one.entries)
                .flat_map(|model| model.values.iter().skip(1))
            {
                if !id.is_empty() && !ids.iter().any(|known| known.eq_ignore_ascii_case(id)) {
                    ids.push(id.clone());
                }
            }
        }
    }
    ids
}

/// Returns the services that an INF file adds.
pub fn services(inf: &Inf) -> Vec<String> {
    let entries = inf.sections().iter().flat_map(|section| &section.entries);
    let is_service = |entry: &&Entry| {
        let key = entry.key.as_deref();
        key.is_some_and(|key| key.eq_ignore_ascii_case("AddService"))
    };
    let mut names: Vec<String> = entries
        .filter(is_service)
        .map(|entry| entry.value(0).to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    names.dedup();
    names
}
