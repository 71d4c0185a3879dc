//! Selection of events.

use etw_wire::Guid;

use crate::decode::Decoded;
use crate::time::FileTime;

/// A selection of events. An event must meet every criterion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The providers, by GUID or name; an empty list selects all providers.
    pub providers: Vec<String>,
    /// The names or ids of events; an empty list selects all events.
    pub events: Vec<String>,
    /// The highest level to select; level 0 is always selected.
    pub level: Option<u8>,
    /// Keywords. Selects events with any of them, and events without keywords.
    pub keyword: Option<u64>,
    /// An activity. Selects its events and the events related to it.
    pub activity: Option<Guid>,
    /// The processes, by id or image name; an empty list selects all processes.
    pub processes: Vec<String>,
    /// The earliest time to select.
    pub from: Option<FileTime>,
    /// The latest time to select.
    pub to: Option<FileTime>,
}

impl Selection {
    /// Selects all events.
    pub const ALL: &'static Self = &Self {
        providers: Vec::new(),
        events: Vec::new(),
        level: None,
        keyword: None,
        activity: None,
        processes: Vec::new(),
        from: None,
        to: None,
    };

    /// Returns true if the event is selected.
    #[must_use]
    pub fn wants(&self, event: &Decoded) -> bool {
        let named = |wanted: &String| {
            event.event_name.as_deref() == Some(wanted) || wanted.parse() == Ok(event.descriptor.id)
        };
        let descriptor = &event.descriptor;
        self.wants_time(event.time)
            && self.wants_provider(event)
            && self.wants_process(event)
            && (self.events.is_empty() || self.events.iter().any(named))
            && self.level.is_none_or(|level| descriptor.level <= level)
            && self
                .keyword
                .is_none_or(|mask| descriptor.keyword == 0 || descriptor.keyword & mask != 0)
            && self.activity.is_none_or(|activity| {
                event.activity == activity || event.related_activity == Some(activity)
            })
    }

    /// Returns true if events at `time` can be selected.
    #[must_use]
    pub(crate) fn wants_time(&self, time: FileTime) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time <= to)
    }

    /// Returns true if events from an event's provider can be selected.
    pub(crate) fn wants_provider(&self, event: &Decoded) -> bool {
        let is_one = |wanted: &String| {
            event.provider_name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                || wanted.parse() == Ok(event.provider)
        };
        self.providers.is_empty() || self.providers.iter().any(is_one)
    }

    /// Returns true if events from an event's process can be selected.
    pub(crate) fn wants_process(&self, event: &Decoded) -> bool {
        let is_one = |wanted: &String| {
            event.process_name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                || wanted.parse() == Ok(event.process_id)
        };
        self.processes.is_empty() || self.processes.iter().any(is_one)
    }

    /// Returns true if time is the only criterion.
    pub(crate) fn is_by_time(&self) -> bool {
        *self == Self { from: self.from, to: self.to, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decoded;
    use crate::record::EventRecord;

    #[test]
    fn an_event_matches_every_criterion() {
        let event = |change: fn(&mut Decoded)| {
            let mut event = decoded(EventRecord::default());
            event.provider = Guid::from_u128(7);
            event.provider_name = Some("Contoso".into());
            event.event_name = Some("Read".into());
            event.descriptor.id = 12;
            event.descriptor.level = 3;
            event.descriptor.keyword = 6;
            event.activity = Guid::from_u128(8);
            event.related_activity = Some(Guid::from_u128(9));
            change(&mut event);
            event
        };
        let all = Selection::default();
        assert!(all.wants(&event(|_| {})));
        let level = |level| Selection { level: Some(level), ..Selection::default() };
        assert!(level(3).wants(&event(|_| {})));
        assert!(level(4).wants(&event(|_| {})));
        assert!(!level(2).wants(&event(|_| {})));
        assert!(level(2).wants(&event(|event| event.descriptor.level = 0)));
        let keyword = |mask| Selection { keyword: Some(mask), ..Selection::default() };
        assert!(keyword(2).wants(&event(|_| {})));
        assert!(keyword(12).wants(&event(|_| {})));
        assert!(!keyword(1).wants(&event(|_| {})));
        assert!(keyword(1).wants(&event(|event| event.descriptor.keyword = 0)));
        let activity = |activity| Selection {
            activity: Some(Guid::from_u128(activity)),
            ..Selection::default()
        };
        assert!(activity(8).wants(&event(|_| {})));
        assert!(activity(9).wants(&event(|_| {})));
        assert!(!activity(7).wants(&event(|_| {})));
        let provider = |text: &str| Selection {
            providers: vec!["other".to_owned(), text.to_owned()],
            ..Selection::default()
        };
        assert!(provider("contoso").wants(&event(|_| {})));
        assert!(provider(&Guid::from_u128(7).to_string()).wants(&event(|_| {})));
        assert!(!provider("Conto").wants(&event(|_| {})));
        let named = |text: &str| Selection {
            events: vec!["other".to_owned(), text.to_owned()],
            ..Selection::default()
        };
        assert!(named("Read").wants(&event(|_| {})));
        assert!(named("12").wants(&event(|_| {})));
        assert!(!named("13").wants(&event(|_| {})));
        let process = |text: &str| Selection {
            processes: vec!["other.exe".to_owned(), text.to_owned()],
            ..Selection::default()
        };
        let of_process = |id: u32, name: &str| {
            let mut event = event(|_| {});
            event.process_id = id;
            event.process_name = Some(name.into());
            event
        };
        assert!(process("7").wants(&of_process(7, "app.exe")));
        assert!(process("App.exe").wants(&of_process(7, "app.exe")));
        assert!(!process("8").wants(&of_process(7, "app.exe")));
        assert!(!process("app").wants(&of_process(7, "app.exe")));
        let time = |from, to| {
            let [from, to] = [from, to].map(|time: Option<i64>| time.map(FileTime::from_raw));
            Selection { from, to, ..Selection::default() }
        };
        let at_five = event(|event| event.time = FileTime::from_raw(5));
        assert!(time(Some(5), Some(5)).wants(&at_five));
        assert!(!time(Some(6), None).wants(&at_five));
        assert!(!time(None, Some(4)).wants(&at_five));
        let two = Selection { level: Some(3), ..keyword(1) };
        assert!(!two.wants(&event(|_| {})));
    }
}
