//! Counters of events per second, one for each provider.

use std::collections::HashMap;
use std::sync::Arc;

use etw_wire::Guid;

use super::schema::{event, packet};
use super::tracks::{Group, Track, Tracks};

/// The length of the window in which events are counted, in nanoseconds.
const WINDOW: u64 = 100_000_000;
/// The number of windows per second.
const PER_SECOND: i64 = 10;
/// The maximum number of providers with a separate counter; the others share one.
const MAX_PROVIDERS: usize = 1024;
const OTHERS: &str = "other providers";

/// A provider, and the number of its events in the current window.
#[derive(Clone, Debug)]
pub struct Provider {
    pub name: Arc<str>,
    pub guid: Guid,
    pub events: u64,
    window: u64,
    in_window: i64,
    track: Option<u64>,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Rates {
    providers: Vec<Provider>,
    by_name: HashMap<(Guid, Arc<str>), usize>,
}

impl Rates {
    /// Returns the index of a provider's counter.
    pub fn provider(&mut self, guid: Guid, name: &str) -> usize {
        let key = (guid, Arc::from(name));
        if let Some(index) = self.by_name.get(&key) {
            return *index;
        }
        let index = self.providers.len();
        if index > MAX_PROVIDERS {
            return MAX_PROVIDERS;
        }
        let (guid, name) = if index == MAX_PROVIDERS {
            (Guid::default(), OTHERS.into())
        } else {
            self.by_name.insert(key.clone(), index);
            key
        };
        self.providers.push(Provider {
            name,
            guid,
            events: 0,
            window: 0,
            in_window: 0,
            track: None,
        });
        index
    }

    /// Counts an event.
    pub fn count(&mut self, index: usize, time: u64, tracks: &mut Tracks) {
        let Some(provider) = self.providers.get_mut(index) else {
            return;
        };
        let window = time / WINDOW;
        provider.events += 1;
        if window > provider.window {
            provider.write(tracks);
            if window > provider.window + 1 {
                provider.in_window = 0;
                provider.window += 1;
                provider.write_known(tracks);
            }
            provider.window = window;
            provider.in_window = 0;
        }
        provider.in_window += 1;
    }

    /// Writes the last windows.
    pub fn finish(&mut self, tracks: &mut Tracks) {
        for provider in &mut self.providers {
            provider.write(tracks);
            provider.window += 1;
            provider.in_window = 0;
            provider.write_known(tracks);
        }
    }

    /// Returns the providers, in the order of their first event.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }
}

impl Provider {
    /// Writes the window's rate, if it contains an event.
    fn write(&mut self, tracks: &mut Tracks) {
        if self.in_window == 0 {
            return;
        }
        self.track.get_or_insert_with(|| {
            let group = tracks.number_of(Track::Group(Group::Rates));
            tracks.add(group, &self.name, Some("events/s"))
        });
        self.write_known(tracks);
    }

    /// Writes the window's rate, if the counter has a track.
    fn write_known(&self, tracks: &mut Tracks) {
        let Some(track) = self.track else {
            return;
        };
        tracks.packets.add(Some(self.window.saturating_mul(WINDOW)), |packet| {
            packet.message(packet::TRACK_EVENT, |counter| {
                counter.uint(event::TYPE, event::COUNTER);
                counter.uint(event::TRACK_UUID, track);
                counter.int(event::COUNTER_VALUE, self.in_window * PER_SECOND);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_beyond_the_limit_share_a_counter() {
        let mut rates = Rates::default();
        let mut index = |n: usize| rates.provider(Guid::from_u128(n as u128), "Name");
        for n in 0..MAX_PROVIDERS {
            assert_eq!(index(n), n);
        }
        for n in [0, 1, 2, 1] {
            assert_eq!(index(MAX_PROVIDERS + n), MAX_PROVIDERS);
        }
        assert_eq!(index(7), 7);
        assert_eq!(rates.providers().len(), MAX_PROVIDERS + 1);
        assert_eq!(&*rates.providers()[MAX_PROVIDERS].name, OTHERS);
    }
}
