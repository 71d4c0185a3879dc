//! Event instants, activity slices, and the flows between them.

use super::activities::Place;
use super::annotations::Annotations;
use super::core::{Core, Links, Slice};
use super::properties::{add_properties, name};
use super::schema::{annotation, event as slot, interned, packet};
use super::wire::Message;

use etl_file::Decoded;
use etl_file::internals::spans::SpanKey;

impl Core {
    /// Adds an event as an instant on its thread's track.
    pub(super) fn instant(&mut self, event: &Decoded, hash: u64, time: u64) {
        let track = self.thread(event);
        let flow = self.flow(event, hash, time);
        self.summary.instants += 1;
        if !event.activity.is_null() {
            let place = self.places.get(&event.activity).unwrap_or_default();
            if place.open == 0 {
                self.places.set(event.activity, Place { track, open: 0 });
            }
        }
        let links = Links { flow, elsewhere: false };
        self.track_event(event, hash, time, track, slot::INSTANT, links);
    }

    /// Starts a flow at an event's related activity, and returns the flow's number.
    pub(super) fn flow(&mut self, event: &Decoded, hash: u64, time: u64) -> Option<u64> {
        let related = event
            .related_activity
            .filter(|related| !related.is_null() && *related != event.activity)?;
        let Some(place) = self.places.get(&related) else {
            self.summary.unknown_related += 1;
            return None;
        };
        self.last_flow += 1;
        self.summary.flows += 1;
        let flow = self.last_flow;
        let category = self.kinds.get(&hash).map(|kind| kind.category);
        let name = format!("flow to {}", name(event));
        let name = self.interned.text(interned::EVENT_NAMES, &name);
        let related = related.to_string();
        let correlation = self.interned.text(interned::CORRELATION_ID_STR, &related);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::INSTANT);
        to.uint(slot::TRACK_UUID, place.track);
        if let Some(category) = category {
            to.uint(slot::CATEGORY_IIDS, category);
        }
        to.uint(slot::NAME_IID, name);
        to.fixed(slot::FLOW_IDS, flow);
        to.uint(slot::CORRELATION_ID_STR_IID, correlation);
        self.send(Some(time), packet::TRACK_EVENT, &body);
        Some(flow)
    }

    /// Adds a start event as the start of a slice.
    pub(super) fn start(&mut self, event: &Decoded, hash: u64, time: u64, key: SpanKey) {
        let flow = self.flow(event, hash, time);
        let slice = if let Some(slice) = self.open.last(&key) {
            *slice
        } else {
            let set = (event.process_id, event.provider);
            let guid = event.provider.to_string();
            let provider = event.provider_name.as_deref().unwrap_or(&guid);
            let track = self.lanes.take(set, provider, &mut self.tracks);
            Slice { set, track }
        };
        // The lanes of abandoned slices stay open and are not reused.
        self.summary.open_slices += self.open.start(key, slice).len() as u64;
        let place = self.places.get(&event.activity).unwrap_or_default();
        self.places
            .set(event.activity, Place { track: slice.track, open: place.open.saturating_add(1) });
        let links = Links { flow, elsewhere: true };
        self.track_event(event, hash, time, slice.track, slot::SLICE_BEGIN, links);
    }

    /// Adds a stop event as the end of a slice, or as an instant if no slice is open.
    pub(super) fn stop(&mut self, event: &Decoded, hash: u64, time: u64, key: &SpanKey) {
        let Some(slice) = self.open.stop(key) else {
            self.summary.unmatched_stops += 1;
            self.instant(event, hash, time);
            return;
        };
        let flow = self.flow(event, hash, time);
        self.summary.slices += 1;
        let thread = self.thread(event);
        let open = self.places.get(&event.activity).map_or(0, |place| place.open.saturating_sub(1));
        let track = if open == 0 { thread } else { slice.track };
        self.places.set(event.activity, Place { track, open });
        let mut contents = Vec::new();
        let mut to = Message::new(&mut contents);
        let number = annotation::DICT_ENTRIES;
        let mut properties = Annotations { to: &mut to, number, interned: &mut self.interned };
        add_properties(&mut properties, event);
        properties.text("etw_name", &name(event));
        self.add_contents(&mut to, number, event, true);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::SLICE_END);
        to.uint(slot::TRACK_UUID, slice.track);
        let (number, interned) = (slot::DEBUG_ANNOTATIONS, &mut self.interned);
        let mut annotations = Annotations { to: &mut to, number, interned };
        annotations.add("stop", |to| to.fields(&contents));
        self.add_links(&mut to, event, Links { flow, elsewhere: true });
        self.send(Some(time), packet::TRACK_EVENT, &body);
        if self.open.last(key).is_none() {
            self.lanes.give_back(slice.set, slice.track);
        }
    }
}

#[cfg(test)]
mod tests {
    use etw_wire::Guid;

    use super::*;
    use etl_file::{EventRecord, LogFileHeader};
    use etl_fixtures::decoded;

    #[test]
    fn only_another_activity_can_be_the_start_of_a_flow() {
        let mut core = Core::new(&LogFileHeader::default());
        let mut flow = |activity, related: Option<u128>| {
            let event = Decoded {
                activity: Guid::from_u128(activity),
                related_activity: related.map(Guid::from_u128),
                ..decoded(EventRecord::default())
            };
            assert_eq!(core.flow(&event, 0, 0), None);
            core.summary.unknown_related
        };
        assert_eq!(flow(7, None), 0);
        assert_eq!(flow(7, Some(7)), 0);
        assert_eq!(flow(7, Some(0)), 0);
        assert_eq!(flow(0, Some(0)), 0);
        assert_eq!(flow(7, Some(8)), 1);
        assert_eq!(flow(0, Some(8)), 2);
    }
}
