//! Writes the `WEVT_TEMPLATE` resource: its providers, each with a directory of its lists.

use std::num::TryFromIntError;

use super::{
    super::version::Version,
    attributes::attributes,
    bytes::Bytes,
    error::EncodeError,
    lists::{Offsets, Writer},
};
use crate::model::{Event, Manifest, Provider};

/// The type numbers of lists in a provider's directory.
#[derive(Clone, Copy)]
#[repr(u32)]
enum List {
    Levels = 0,
    Tasks = 1,
    Opcodes = 2,
    Keywords = 3,
    Events = 4,
    Channels = 5,
    Maps = 6,
    Templates = 7,
    Queries = 8,
    Filters = 9,
    EventAttributes = 12,
    ProviderAttributes = 13,
}

/// The number of directory entries in version 3.
const V3_PLACES: usize = 11;

/// Encodes a manifest.
pub fn encode(manifest: &Manifest, ids: &[u32], version: Version) -> Result<Vec<u8>, EncodeError> {
    const PROVIDER: usize = 20;
    let mut out = Bytes::default();
    out.slice(b"CRIM");
    let length = out.reserve(4);
    out.u16(match version {
        Version::V3 => 3,
        Version::V5 => 5,
    });
    out.u16(1);
    out.u32(u32::try_from(manifest.providers.len())?);
    let mut place = out.reserve(manifest.providers.len() * PROVIDER);
    for provider in &manifest.providers {
        let offset = out.offset()?;
        out.0[place..place + 16].copy_from_slice(&provider.guid.to_bytes());
        out.put_u32(place + 16, offset);
        place += PROVIDER;
        let mut writer = Writer { out, ids, provider, offsets: Offsets::default() };
        writer.provider(version)?;
        out = writer.out;
    }
    out.put_length(length, 0)?;
    // Two bytes that no length includes.
    out.u16(0);
    Ok(out.0)
}

impl Writer<'_> {
    fn provider(&mut self, version: Version) -> Result<(), TryFromIntError> {
        let provider = self.provider;
        let lists = lists(provider, version);
        let start = self.out.0.len();
        self.out.slice(b"WEVT");
        let length = self.out.reserve(4);
        let id = self.id(provider.message);
        self.out.u32(id);
        self.out.u32(u32::try_from(lists.len())?);
        let places = match version {
            Version::V3 => V3_PLACES,
            Version::V5 => lists.len(),
        };
        let mut place = self.out.reserve(places * 8);
        for list in lists {
            if matches!(list, List::Events) {
                self.out.align(8);
            }
            let offset = self.out.offset()?;
            self.out.put_u32(place, list as u32);
            self.out.put_u32(place + 4, offset);
            place += 8;
            match list {
                List::Levels => self.levels()?,
                List::Tasks => self.tasks()?,
                List::Opcodes => self.opcodes()?,
                List::Keywords => self.keywords()?,
                List::Events => self.events()?,
                List::Channels => self.channels()?,
                List::Maps => self.maps()?,
                List::Templates => self.templates()?,
                List::Queries => self.queries()?,
                List::Filters => self.filters()?,
                List::EventAttributes => self.event_attributes()?,
                List::ProviderAttributes => self.provider_attributes()?,
            }
        }
        self.out.put_length(length, start)
    }
}

/// Returns the lists of a provider, in mc.exe's order.
fn lists(provider: &Provider, version: Version) -> Vec<List> {
    let is_v5 = version == Version::V5;
    let has_attributes = |event: &Event| event.name.is_some() || !attributes(event).is_empty();
    [
        (List::Channels, !provider.channels.is_empty()),
        (List::Maps, !provider.maps.is_empty()),
        (List::Queries, !provider.queries.is_empty()),
        (List::Templates, !provider.templates.is_empty()),
        (List::ProviderAttributes, is_v5),
        (List::Opcodes, true),
        (List::Levels, true),
        (List::Tasks, true),
        (List::Keywords, true),
        (List::Events, !provider.events.is_empty()),
        (List::EventAttributes, is_v5 && provider.events.iter().any(has_attributes)),
        (List::Filters, !provider.filters.is_empty()),
    ]
    .into_iter()
    .filter(|(_, there)| *there)
    .map(|(list, _)| list)
    .collect()
}
