//! Combines the providers of several source files in one image.
//!
//! An image has one `WEVT_TEMPLATE` resource and one message table, so the manifests of all files
//! are merged into one.

use std::path::{Path, PathBuf};

use etw_manifest::{
    self as manifest, Manifest, ManifestError, Provider, Rule, TextRef, Translation,
};
use wdk_etw_schema::Configuration;

use crate::{
    declaration::{Files, position},
    image::{BuildError, manifest_in, read_text},
};

/// Returns the manifest that decodes the providers of several source files, each read in its
/// configuration, and the files that were read; see [`manifest_in`].
///
/// # Errors
///
/// Fails with [`BuildError`]: with [`BuildError::Meeting`] if two of the files declare providers
/// with the same name or GUID, because decoders could not distinguish them.
pub fn manifest_of_all(
    sources: &[(PathBuf, Configuration)],
    files: &Files<'_>,
) -> Result<(Manifest, Vec<PathBuf>), BuildError> {
    let Read { manifest, files, .. } = read_all(sources, files)?;
    Ok((manifest, files))
}

/// The declarations of several source files.
pub struct Read {
    /// The manifest that decodes their providers.
    pub manifest: Manifest,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The omitted parts: those of the manifests that declarations name, each with the manifest's file,
    /// and providers that cannot be read.
    pub left_out: Vec<(PathBuf, ManifestError)>,
}

/// Reads the declarations of several source files for [`manifest_of_all`].
pub fn read_all(
    sources: &[(PathBuf, Configuration)],
    files: &Files<'_>,
) -> Result<Read, BuildError> {
    let mut all = Manifest::default();
    let mut read = Vec::new();
    let mut left_out = Vec::new();
    let mut seen: Vec<(PathBuf, Provider)> = Vec::new();
    for (number, (path, configuration)) in sources.iter().enumerate() {
        let (one, of_one) = manifest_in(path, files, configuration)?;
        // The manifest that the declaration names is the last file.
        if let Some(file) = of_one.last() {
            left_out.extend(one.left_out.iter().map(|note| (file.clone(), note.clone())));
        }
        read.extend(of_one);
        left_out.extend(unseen(path, configuration)?.into_iter().map(|note| (path.clone(), note)));
        for provider in &one.providers {
            for (other_path, other) in &seen {
                if let Some(what) = meeting(provider, other) {
                    return Err(BuildError::Meeting {
                        what,
                        first: place(other_path, other),
                        second: place(path, provider),
                    });
                }
            }
        }
        seen.extend(one.providers.iter().map(|it| (path.clone(), it.clone())));
        if sources.len() == 1 {
            all = one;
        } else {
            append(&mut all, one, number).map_err(|(first, second)| BuildError::Cultures {
                path: path.clone(),
                first,
                second,
            })?;
        }
    }
    // Checks the limits that only all files together can exceed, such as the number of providers
    // with generated message ids.
    let errors = manifest::check(&all);
    if errors.is_empty() {
        Ok(Read { manifest: all, files: read, left_out })
    } else {
        Err(BuildError::Together(errors.iter().map(|error| error.rule.to_string()).collect()))
    }
}

/// Returns notes about the providers of a source file that only the compiler can read.
fn unseen(path: &Path, configuration: &Configuration) -> Result<Vec<ManifestError>, BuildError> {
    // The caller has parsed the file.
    let found = wdk_etw_schema::parse::unseen(&read_text(path)?, configuration).unwrap_or_default();
    let note = |span: proc_macro2::Span| {
        let rule = "this provider is inside a macro, a function or another provider, where the build script \
                    cannot read it: the image's resources do not contain its manifest events";
        ManifestError { at: position(span), rule: Rule::Declaration(rule.to_owned()) }
    };
    Ok(found.into_iter().map(note).collect())
}

/// Returns the name or GUID that two providers share, if any.
fn meeting(one: &Provider, other: &Provider) -> Option<String> {
    // A GUID is derived from the name regardless of case.
    if one.name.to_uppercase() == other.name.to_uppercase() {
        Some(format!("name {}", one.name))
    } else if one.guid == other.guid {
        Some(format!("GUID {}", one.guid))
    } else {
        None
    }
}

fn place(path: &Path, provider: &Provider) -> String {
    format!("{}:{}", path.display(), provider.at.line)
}

/// Returns all references of a provider to strings.
fn references(provider: &mut Provider) -> impl Iterator<Item = &mut Option<TextRef>> {
    let Provider {
        message, channels, levels, tasks, opcodes, keywords, maps, filters, events, ..
    } = provider;
    std::iter::once(message)
        .chain(channels.iter_mut().map(|it| &mut it.message))
        .chain(levels.iter_mut().map(|it| &mut it.message))
        .chain(tasks.iter_mut().map(|it| &mut it.message))
        .chain(opcodes.iter_mut().map(|it| &mut it.message))
        .chain(keywords.iter_mut().map(|it| &mut it.message))
        .chain(maps.iter_mut().flat_map(|it| &mut it.items).map(|it| &mut it.message))
        .chain(filters.iter_mut().map(|it| &mut it.message))
        .chain(events.iter_mut().map(|it| &mut it.message))
}

/// Appends the providers and strings of a file's manifest. The ids of its strings are prefixed with
/// the file's number; winmeta.xml's strings appear once in the result. Fails with both languages if
/// the primary languages of the manifests differ.
fn append(all: &mut Manifest, one: Manifest, number: usize) -> Result<(), (String, String)> {
    if all.providers.is_empty() {
        all.culture.clone_from(&one.culture);
    } else if !one.culture.is_empty() && !all.culture.is_empty() && one.culture != all.culture {
        return Err((all.culture.clone(), one.culture));
    } else if all.culture.is_empty() {
        all.culture.clone_from(&one.culture);
    }
    let prefixed = |id: &str| format!("{number}.{id}");
    let mut moved = Vec::with_capacity(one.texts.len());
    for mut text in one.texts {
        let known = all
            .texts
            .iter()
            .position(|other| text.standard && other.standard && other.id == text.id);
        moved.push(known.unwrap_or_else(|| {
            if !text.standard {
                text.id = prefixed(&text.id);
            }
            all.texts.push(text);
            all.texts.len() - 1
        }));
    }
    for mut provider in one.providers {
        for reference in references(&mut provider) {
            *reference = reference.and_then(|old| moved.get(old).copied());
        }
        all.providers.push(provider);
    }
    for translation in one.translations {
        let texts = translation.texts.into_iter();
        let texts = texts.map(|(id, value)| (prefixed(&id), value));
        match all.translations.iter_mut().find(|it| it.culture == translation.culture) {
            Some(same) => same.texts.extend(texts),
            None => all
                .translations
                .push(Translation { culture: translation.culture, texts: texts.collect() }),
        }
    }
    Ok(())
}
