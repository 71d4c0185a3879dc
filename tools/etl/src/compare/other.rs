//! Another decoder's output for a trace.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use etw_wire::Guid;

use super::event::{Content, Form, MAX_FILE_SIZE, OtherEvent};
use super::ours::Ours;
use super::property::Property;
use super::{json, xml};

/// The events in another decoder's file.
#[derive(Clone, Debug)]
pub struct Other {
    /// The file's format.
    pub form: Form,
    /// The events in order, without classic providers' events.
    pub events: Vec<OtherEvent>,
    /// The number of events of classic providers, which are not compared.
    pub left_out: u64,
}

/// Another decoder's file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {content}", path.display())]
pub struct OtherError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub content: Content,
}

impl Other {
    /// Reads another decoder's file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is larger than [`MAX_FILE_SIZE`], or has an
    /// unknown format.
    pub fn open(path: &Path) -> Result<Self, OtherError> {
        let failed = |content| OtherError { path: path.to_owned(), content };
        let file = File::open(path).map_err(|source| failed(Content::Io(source)))?;
        let bytes = read_all(file, MAX_FILE_SIZE).map_err(failed)?;
        Self::parse(&bytes).map_err(failed)
    }

    /// Reads another decoder's output, in UTF-8 or in UTF-16 with a byte order mark.
    ///
    /// # Errors
    /// Fails if the text has an unknown format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Content> {
        let text = etw_manifest::text(bytes).ok_or(Content::Encoding)?;
        let text = text.trim();
        let (form, events) = match text.as_bytes().first() {
            None => (Form::Empty, Vec::new()),
            Some(b'<') => (Form::Xml, xml::events(text)?),
            Some(b'{' | b'[') => json::events(text)?,
            Some(_) => return Err(Content::Unknown),
        };
        let all = events.len();
        let events: Vec<_> = events.into_iter().filter(|one| !one.is_classic).collect();
        Ok(Self { form, left_out: (all - events.len()) as u64, events })
    }

    /// Removes the events of providers that are not selected by GUID or name. Names may also come
    /// from `ours`. Events without a provider are kept.
    pub fn select(&mut self, providers: &[String], ours: &Ours) {
        if providers.is_empty() {
            return;
        }
        let mut guids: HashSet<Guid> = ours.events.iter().map(|event| event.provider).collect();
        guids.extend(providers.iter().filter_map(|text| text.parse::<Guid>().ok()));
        let own = ours.events.iter();
        let mut names: HashSet<&str> = own.filter_map(|one| one.provider_name.as_deref()).collect();
        names.extend(providers.iter().map(String::as_str));
        self.events.retain(|event| {
            let text = |property| event.properties.get(&property).map(|text| text.trim());
            match (text(Property::Provider), text(Property::ProviderName)) {
                (Some(guid), _) if guid.parse().is_ok_and(|guid| guids.contains(&guid)) => true,
                (None, None) => true,
                (_, name) => {
                    name.is_some_and(|name| names.iter().any(|one| one.eq_ignore_ascii_case(name)))
                }
            }
        });
    }
}

/// Reads a source to its end; fails if it is longer than `limit` bytes.
fn read_all(source: impl Read, limit: u64) -> Result<Vec<u8>, Content> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes).map_err(Content::Io)?;
    if bytes.len() as u64 > limit {
        return Err(Content::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_may_have_as_many_bytes_as_the_limit() {
        for length in 0..=4 {
            let bytes = &b"four"[..length];
            assert_eq!(read_all(bytes, 4).unwrap(), bytes);
        }
        for bytes in [&b"fives"[..], b"sixsix"] {
            let error = read_all(bytes, 4).unwrap_err();
            assert!(matches!(error, Content::TooLarge), "{error}");
        }
    }
}
