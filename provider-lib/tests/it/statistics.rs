//! Tests a provider's own counters.

use etl_file::decode::Value;
use mock_etw::{ACCESS_DENIED, CAPTURE_STATE, NO_MEMORY, Turn, enabled, register, turn};
use wdk_etw::{
    DynamicEvent, EventDescriptor, Keyword, Level, NtStatus, Opcode, Registered, Statistics,
    WriteOptions, emit, event,
};

#[wdk_etw::provider(name = "Test.Statistics", statistics, on_enable = super::on_enable)]
mod counted {
    #[event(level = Info, keyword = none)]
    pub fn text(text: &str);

    #[event(id = 1, level = Info, keyword = none)]
    pub fn plain(number: u32);
}

#[wdk_etw::provider(name = "Test.Uncounted")]
mod uncounted {
    #[event(level = Info, keyword = none)]
    pub fn plain(number: u32);
}

/// Writes a declared and a dynamic event in each notification.
fn on_enable(provider: &wdk_etw::Provider, _notification: &wdk_etw::Notification<'_>) {
    emit!(counted::plain(0));
    let mut dynamic = DynamicEvent::<32, 32>::new();
    dynamic.start("Dynamic");
    assert_eq!(dynamic.write(provider, &EVENT, &WriteOptions::new()), Ok(()));
}

static EVENT: EventDescriptor = EventDescriptor::new(9, 0, Level::ERROR, Keyword::NONE);

/// Returns the counters' growth since `before`. They are never reset, and tests share the provider.
fn growth(before: &Statistics, now: &Statistics) -> (u64, u64, u64, u64) {
    (
        now.written.unwrap() - before.written.unwrap(),
        now.failed_in_total() - before.failed_in_total(),
        now.cut - before.cut,
        now.dropped - before.dropped,
    )
}

fn registered() -> Turn {
    enabled(&counted::PROVIDER, 5)
}

#[test]
fn every_accepted_event_is_counted_once() {
    let etw = registered();
    let before = counted::PROVIDER.statistics();
    emit!(counted::plain(1));
    emit!(counted::text("one"));
    event!(counted::PROVIDER, "AdHoc", level = Info, keyword = none, { a: u32 = 1 });
    counted::PROVIDER.write(&EVENT, &WriteOptions::new(), &[]).unwrap();
    assert_eq!(etw.writes().len(), 4);
    let now = counted::PROVIDER.statistics();
    assert_eq!(growth(&before, &now), (4, 0, 0, 0));
    // `FieldCut` counts as an event too.
    emit!(counted::text(&"x".repeat(70_000)));
    assert_eq!(etw.writes().len(), 2);
    let now = counted::PROVIDER.statistics();
    assert_eq!(growth(&before, &now), (6, 0, 1, 0));
}

#[test]
fn failed_writes_are_counted_by_status_only() {
    let etw = registered();
    let before = counted::PROVIDER.statistics();
    etw.set(|etw| etw.write_status = NO_MEMORY);
    emit!(counted::plain(1));
    etw.set(|etw| etw.write_status = ACCESS_DENIED);
    emit!(counted::plain(1));
    let now = counted::PROVIDER.statistics();
    assert_eq!(growth(&before, &now), (0, 2, 0, 0));
    let no_memory = |statistics: &Statistics| {
        let mut all = statistics.failed.iter();
        all.find(|(status, _)| *status == NtStatus::NO_MEMORY).unwrap().1
    };
    assert_eq!(no_memory(&now) - no_memory(&before), 1);
    assert_eq!(now.failed_otherwise - before.failed_otherwise, 1);
}

#[test]
fn events_in_a_notification_during_registration_are_counted_as_dropped() {
    let etw = turn();
    let before = counted::PROVIDER.statistics();
    etw.set(|etw| etw.enabled_before = Some((5, 0, 0)));
    assert_eq!(register(&counted::PROVIDER), Ok(Registered::Complete));
    assert_eq!(etw.writes(), []);
    let now = counted::PROVIDER.statistics();
    assert_eq!(growth(&before, &now), (0, 0, 0, 2));
    counted::unregister().unwrap();
    // Without a registration, only a write without a check is counted as dropped.
    emit!(counted::plain(1));
    let written = counted::PROVIDER.write(&EVENT, &WriteOptions::new(), &[]);
    assert_eq!(written, Ok(()));
    let now = counted::PROVIDER.statistics();
    assert_eq!(growth(&before, &now), (0, 0, 0, 3));
}

#[test]
fn a_capture_state_request_writes_the_counters() {
    let etw = registered();
    emit!(counted::plain(1));
    etw.calls();
    let before = counted::PROVIDER.statistics();
    etw.notify(CAPTURE_STATE, 5, 0, 0);
    let writes = etw.writes();
    let [written] = writes.as_slice() else {
        panic!("one event is expected: {writes:?}");
    };
    assert_eq!(written.event.level(), Level::LOG_ALWAYS);
    assert_eq!(written.event.opcode(), Opcode::DC_START);
    let schema = written.schema().unwrap();
    assert_eq!(schema.event_name, "ProviderStatistics");
    let fields = written.values(&schema);
    let named = |name: &str, value| (name.to_owned(), Value::UInt(value));
    assert_eq!(fields[0], named("Written", before.written.unwrap()));
    let Value::Struct(failed) = &fields[1].1 else {
        panic!("a structure is expected: {:?}", fields[1]);
    };
    assert_eq!(failed.len(), 7);
    assert_eq!(
        fields[2..],
        [
            named("FieldsCut", before.cut),
            named("DroppedWhileUnregistered", before.dropped),
            named("LeftOut", before.left_out),
        ]
    );
}

#[test]
fn a_provider_without_the_word_counts_no_written_events_and_writes_no_statistics() {
    let etw = enabled(&uncounted::PROVIDER, 5);
    emit!(uncounted::plain(1));
    etw.notify(CAPTURE_STATE, 5, 0, 0);
    assert_eq!(etw.writes().len(), 1);
    assert_eq!(uncounted::PROVIDER.statistics().written, None);
}
