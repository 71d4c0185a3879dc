//! Tests the events written for spans and events, as ETW receives them and as decoders read them.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use std::{cell::Cell, sync::Once};

use mock_etw::{DISABLE, ENABLE, Endless, Turn, Written};
use tracing::{Level, Span, level_filters::LevelFilter};
use wdk_etw::{ActivityId, Guid, Keyword, Notification, Opcode, Provider, emit};
use wdk_etw_tracing::{EtwSubscriber, InstallError, MAX_TEXT};

#[wdk_etw::provider(
    name = "Test.Tracing",
    on_enable = super::sessions_changed,
    on_disable = super::sessions_changed,
)]
mod trace {
    #[keyword]
    pub const TRACING: Keyword = Keyword::bit(3);
    #[keyword]
    pub const DETAIL: Keyword = Keyword::bit(4);

    #[event(level = Info, keyword = TRACING)]
    pub fn declared();
}

/// Space for four spans.
static SUBSCRIBER: EtwSubscriber<4> = EtwSubscriber::new(&trace::PROVIDER, trace::TRACING)
    .with_trace_keyword(trace::DETAIL)
    .following_sessions();

fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
    SUBSCRIBER.sessions_changed();
}

/// Returns a turn with the subscriber installed and the provider registered, but not enabled.
fn registered() -> Turn {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| SUBSCRIBER.install().unwrap());
    let etw = mock_etw::registered(&trace::PROVIDER);
    etw.calls();
    etw
}

fn enabled(level: u8) -> Turn {
    let etw = registered();
    etw.notify(ENABLE, level, 0, 0);
    etw
}

/// Returns an event's name, opcode, and fields after the first four, which all events share.
fn decoded(written: &Written) -> (String, Opcode, Vec<String>) {
    let (name, fields) = written.described();
    (name, written.event.opcode(), fields[4..].to_vec())
}

/// Describes writes by name, with `+` for a start or `-` for a stop, `@` before the activity, and
/// `<` before the related activity. Activities are numbered in the order of their creation, 0 means
/// none, and an event without a number has the thread's.
fn outline(writes: &[Written]) -> String {
    let number = |sign: &str, id: Option<Guid>| {
        id.map_or_else(String::new, |id| {
            let bytes = id.to_bytes();
            format!(" {sign}{}", u16::from_le_bytes([bytes[4], bytes[5]]))
        })
    };
    let describe = |write: &Written| {
        let opcode = ["", "+", "-"][usize::from(write.event.opcode().0)];
        let (activity, related) = (number("@", write.activity), number("<", write.related));
        format!("{}{opcode}{activity}{related}", write.described().0)
    };
    writes.iter().map(describe).collect::<Vec<_>>().join(", ")
}

#[test]
fn an_event_has_its_level_target_module_line_message_and_typed_fields() {
    let etw = enabled(5);
    let at = line!() + 1;
    tracing::warn!(target: "disk", count = 3_u32, delta = -1, ratio = 0.5, ready = true, name = "a", list = ?[1, 2], big = 1_u128 << 70, "{} of {}", 1, 2);
    let bytes: &[u8] = &[1, 2];
    tracing::event!(name: "Named", Level::INFO, bytes, shown = %3);
    tracing::info!(name: "event of the disk:1", "x");
    let writes = etw.writes();
    let expected = [
        "Level=\"WARN\"".to_owned(),
        "Target=\"disk\"".to_owned(),
        "Module=\"events\"".to_owned(),
        format!("Line={at}"),
        "Message=\"1 of 2\"".to_owned(),
        "count=3".to_owned(),
        "delta=-1".to_owned(),
        "ratio=0.5".to_owned(),
        "ready=true".to_owned(),
        "name=\"a\"".to_owned(),
        "list=\"[1, 2]\"".to_owned(),
        "big=\"1180591620717411303424\"".to_owned(),
    ];
    assert_eq!(writes[0].described(), ("Event".to_owned(), expected.to_vec()));
    assert_eq!(decoded(&writes[2]).0, "event of the disk:1");
    let (name, _, fields) = decoded(&writes[1]);
    assert_eq!(
        (name.as_str(), fields),
        ("Named", ["bytes=hex:0102", "shown=\"3\""].map(str::to_owned).to_vec())
    );
    let event = writes[0].event;
    assert_eq!((event.level().0, event.keyword()), (3, trace::TRACING));
}

#[test]
fn every_level_has_its_level_and_keyword() {
    let etw = enabled(5);
    tracing::error!("x");
    tracing::warn!("x");
    tracing::info!("x");
    tracing::debug!("x");
    tracing::trace!("x");
    let writes = etw.writes();
    let told: Vec<_> = writes
        .iter()
        .map(|write| {
            let (_, fields) = write.described();
            (write.event.level().0, write.event.keyword(), fields[0].clone())
        })
        .collect();
    let expected = [
        (2, trace::TRACING, "Level=\"ERROR\""),
        (3, trace::TRACING, "Level=\"WARN\""),
        (4, trace::TRACING, "Level=\"INFO\""),
        (5, trace::TRACING, "Level=\"DEBUG\""),
        (5, trace::DETAIL, "Level=\"TRACE\""),
    ];
    let expected = expected.map(|(level, keyword, name)| (level, keyword, name.to_owned()));
    assert_eq!(told, expected);
}

#[test]
fn a_span_is_an_activity_from_its_creation_to_its_last_handle() {
    let etw = enabled(5);
    let span = tracing::info_span!("read", length = 4_u64, status = tracing::field::Empty);
    let other = span.clone();
    drop(span);
    other.record("status", 7_u64);
    drop(other);
    let writes = etw.writes();
    let expected = "read+ @1, read @1, read- @1";
    assert_eq!(outline(&writes), expected);
    let fields: Vec<_> = writes.iter().map(|write| decoded(write).2).collect();
    assert_eq!(fields, [vec!["length=4"], vec!["status=7"], vec![]]);
}

#[test]
fn inside_a_span_the_threads_activity_is_the_spans() {
    let client = ActivityId::from_guid(Guid::new(0xC11E, 99, 0, [0; 8]));
    let etw = enabled(5);
    etw.set(|etw| etw.thread_activity = client.guid());
    let outer = tracing::info_span!("outer");
    outer.in_scope(|| {
        assert_eq!(Span::current(), outer);
        // Both facades' and declared events have the thread's activity.
        assert_eq!(ActivityId::current().unwrap().guid(), Guid::new(0xAC71, 1, 1, [0; 8]));
        tracing::info!("inside");
        emit!(trace::declared());
        let inner = tracing::info_span!("inner").entered();
        assert_eq!(ActivityId::current().unwrap().guid(), Guid::new(0xAC71, 2, 1, [0; 8]));
        drop(inner);
        assert_eq!(Span::current(), outer);
        let root = tracing::info_span!(parent: None, "root");
        tracing::info!(parent: &root, "in root");
        tracing::info!(parent: None, "nowhere");
    });
    assert!(Span::current().is_none());
    assert_eq!(ActivityId::current(), Ok(client));
    drop(outer);
    let expected = "outer+ @1 <99, Event, Declared, inner+ @2 <1, inner- @2, root+ @3, Event @3, \
                    Event @0, root- @3, outer- @1";
    assert_eq!(outline(&etw.writes()), expected);
}

#[test]
fn a_thread_without_activity_id_is_in_its_span_nevertheless() {
    const UNSUCCESSFUL: i32 = 0xC000_0001_u32.cast_signed();
    let etw = enabled(5);
    etw.set(|etw| etw.thread_activity_status = UNSUCCESSFUL);
    let outer = tracing::info_span!("outer");
    outer.in_scope(|| {
        assert_eq!(Span::current(), outer);
        tracing::info!("inside");
        let inner = tracing::info_span!("inner").entered();
        tracing::info!("further inside");
        drop(inner);
        tracing::info!("inside again");
        etw.set(|etw| etw.irql = 2);
        tracing::info!("above");
        etw.set(|etw| etw.irql = 0);
    });
    assert!(Span::current().is_none());
    tracing::info!("outside");
    drop(outer);
    let expected = "outer+ @1, Event @1, inner+ @2 <1, Event @2, inner- @2, Event @1, Event @0, \
                    Event @0, outer- @1";
    assert_eq!(outline(&etw.writes()), expected);
    etw.set(|etw| etw.thread_activity_status = 0);
}

fn thread_activity() -> u16 {
    let bytes = ActivityId::current().unwrap().guid().to_bytes();
    u16::from_le_bytes([bytes[4], bytes[5]])
}

#[test]
fn guards_can_be_dropped_in_any_order() {
    let _etw = enabled(5);
    let [one, two, three] =
        [tracing::info_span!("one"), tracing::info_span!("two"), tracing::info_span!("three")];
    let (first, second, third) = (one.enter(), two.enter(), three.enter());
    assert_eq!(thread_activity(), 3);
    drop(second);
    assert_eq!(thread_activity(), 3);
    drop(third);
    assert_eq!(thread_activity(), 1);
    drop(first);
    assert_eq!(thread_activity(), 0);
    // Enter the same span twice, and another one in between.
    let (first, second, third) = (one.enter(), two.enter(), one.enter());
    assert_eq!(thread_activity(), 1);
    drop(third);
    assert_eq!(thread_activity(), 2);
    drop(first);
    assert_eq!(thread_activity(), 2);
    drop(second);
    assert_eq!(thread_activity(), 0);
}

#[test]
fn activities_that_other_code_sets_inside_a_span_stay() {
    let _etw = enabled(5);
    let span = tracing::info_span!("span");
    let guard = span.enter();
    let own = ActivityId::from_guid(Guid::new(5, 77, 0, [0; 8]));
    own.set_for_thread().unwrap();
    assert!(Span::current().is_none());
    drop(guard);
    assert_eq!(ActivityId::current(), Ok(own));
}

#[test]
fn above_apc_level_only_explicit_parents_count() {
    let etw = enabled(5);
    let ignored = SUBSCRIBER.ignored_enters();
    let parent = tracing::info_span!("parent");
    let inside = parent.enter();
    etw.set(|etw| etw.irql = 2);
    tracing::info!("interrupted or not");
    let child = tracing::info_span!(parent: &parent, "child");
    child.in_scope(|| tracing::info!(parent: &child, "explicit"));
    assert!(Span::current().is_none());
    drop(child);
    // The activity is not the entered span's, because the code cannot know that its own thread
    // entered the span.
    drop(tracing::info_span!("orphan"));
    assert_eq!(SUBSCRIBER.ignored_enters() - ignored, 2);
    etw.set(|etw| etw.irql = 0);
    drop(inside);
    drop(parent);
    let expected = "parent+ @1, Event @0, child+ @2 <1, Event @2, child- @2, orphan+ @3, \
                    orphan- @3, parent- @1";
    assert_eq!(outline(&etw.writes()), expected);
    assert_eq!(thread_activity(), 0);
}

#[test]
fn a_span_that_is_left_at_dispatch_level_is_left_later() {
    let etw = enabled(5);
    let [one, two] = [tracing::info_span!("one"), tracing::info_span!("two")];
    let (first, second) = (one.enter(), two.enter());
    etw.set(|etw| etw.irql = 2);
    drop((first, second));
    etw.set(|etw| etw.irql = 0);
    assert_eq!(thread_activity(), 2);
    // Entering another span restores the activity.
    let three = tracing::info_span!("three");
    three.in_scope(|| assert_eq!(thread_activity(), 3));
    assert_eq!(thread_activity(), 0);
}

#[test]
fn a_dpc_that_enters_the_span_of_the_thread_it_interrupts_does_not_leave_it_for_the_thread() {
    let etw = enabled(5);
    let [device, request] = [tracing::info_span!("device"), tracing::info_span!("request")];
    let inside = device.enter();
    assert_eq!(thread_activity(), 1);
    // The DPC's current thread is the thread that it interrupted.
    etw.set(|etw| etw.irql = 2);
    device.in_scope(|| device.in_scope(|| ()));
    etw.set(|etw| etw.irql = 0);
    // The thread is still in the span, even after it was in another.
    request.in_scope(|| assert_eq!(thread_activity(), 2));
    assert_eq!(thread_activity(), 1);
    assert!(!Span::current().is_none());
    drop(inside);
    assert_eq!(thread_activity(), 0);
    // A guard from a lower IRQL, dropped at DISPATCH_LEVEL, leaves the span later, as before.
    let inside = device.enter();
    etw.set(|etw| etw.irql = 2);
    device.in_scope(|| ());
    drop(inside);
    etw.set(|etw| etw.irql = 0);
    request.in_scope(|| ());
    assert_eq!(thread_activity(), 0);
    // A guard from DISPATCH_LEVEL, dropped at a lower IRQL, does not leave the span that the thread is in.
    let inside = device.enter();
    etw.set(|etw| etw.irql = 2);
    let raised = device.enter();
    etw.set(|etw| etw.irql = 0);
    drop(raised);
    assert_eq!(thread_activity(), 1);
    drop(inside);
    assert_eq!(thread_activity(), 0);
}

#[test]
fn spans_without_space_are_disabled_and_counted() {
    let etw = enabled(5);
    let refused = SUBSCRIBER.refused_spans();
    let spans: Vec<_> = (0..5).map(|number| tracing::info_span!("span", number)).collect();
    assert_eq!(SUBSCRIBER.refused_spans() - refused, 1);
    etw.writes();
    let last = &spans[4];
    last.in_scope(|| tracing::info!("inside none"));
    let again = last.clone();
    last.follows_from(&spans[0]);
    drop(again);
    tracing::info!(parent: last, "in none");
    assert_eq!(outline(&etw.writes()), "Event, Event @0");
    drop(spans);
    let stops = etw.writes();
    assert_eq!(stops.len(), 4, "{stops:?}");
    // There is space for a span again.
    drop(tracing::info_span!("next"));
    assert_eq!(etw.writes().len(), 2);
    assert_eq!(SUBSCRIBER.refused_spans() - refused, 1);
}

#[test]
fn a_thread_that_is_in_too_many_spans_stays_in_the_last_that_fits() {
    let _etw = enabled(5);
    let ignored = SUBSCRIBER.ignored_enters();
    let span = tracing::info_span!("span");
    let guards: Vec<_> = (0..5).map(|_| span.enter()).collect();
    assert_eq!(SUBSCRIBER.ignored_enters() - ignored, 1);
    drop(guards);
    assert_eq!(thread_activity(), 0);
}

#[test]
fn a_span_that_follows_from_another_names_it() {
    let etw = enabled(5);
    let [one, two] = [tracing::info_span!("one"), tracing::info_span!("two")];
    two.follows_from(&one);
    assert_eq!(outline(&etw.writes()[2..]), "FollowsFrom @2 <1");
}

#[test]
fn nothing_is_evaluated_above_the_level_that_a_session_enables() {
    let evaluated = Cell::new(0);
    let argument = || {
        evaluated.set(evaluated.get() + 1);
        evaluated.get()
    };
    let etw = registered();
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
    tracing::error!("{}", argument());
    etw.notify(ENABLE, 4, trace::TRACING.bits(), 0);
    assert_eq!(LevelFilter::current(), LevelFilter::INFO);
    tracing::debug!("{}", argument());
    let span = tracing::debug_span!("span", value = argument());
    assert!(span.is_disabled());
    assert_eq!((evaluated.get(), etw.writes().len()), (0, 0));
    tracing::info!("{}", argument());
    assert_eq!((evaluated.get(), etw.writes().len()), (1, 1));
    // `DEBUG` and `TRACE` have the same level and two keywords, which only the subscriber
    // distinguishes.
    etw.notify(ENABLE, 5, trace::DETAIL.bits(), 0);
    assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
    tracing::debug!("{}", argument());
    tracing::trace!("{}", argument());
    assert_eq!((evaluated.get(), etw.writes().len()), (2, 1));
    etw.notify(DISABLE, 0, 0, 0);
    trace::unregister().unwrap();
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
}

#[test]
fn a_long_text_is_cut_and_the_other_fields_are_there() {
    let etw = enabled(5);
    tracing::info!(after = 1_u64, "{}", "ß".repeat(MAX_TEXT));
    let writes = etw.writes();
    assert_eq!(writes[0].described().0, "FieldCut");
    let (_, _, fields) = decoded(&writes[1]);
    let kept = format!("Message=\"{}\"", "ß".repeat(MAX_TEXT / 2));
    assert_eq!(fields, [kept, "after=1".to_owned()]);
    // `FieldCut` has the activity of the event that follows it.
    let parent = tracing::info_span!("parent");
    etw.writes();
    let child = tracing::info_span!(parent: &parent, "child", text = "x".repeat(2 * MAX_TEXT));
    assert_eq!(outline(&etw.writes()), "FieldCut @2, child+ @2 <1");
    drop((child, parent));
}

#[test]
fn a_value_without_an_end_is_formatted_until_it_is_full() {
    let etw = enabled(5);
    let parts = Cell::new(0);
    tracing::info!(value = %Endless(&parts, "x"));
    assert_eq!((parts.get(), etw.writes().len()), (MAX_TEXT + 1, 2));
}

#[test]
fn a_span_that_ends_after_its_session_writes_no_stop() {
    let etw = enabled(5);
    let span = tracing::info_span!("span");
    etw.notify(DISABLE, 0, 0, 0);
    etw.calls();
    drop(span);
    assert_eq!(etw.writes(), []);
}

#[test]
fn only_one_subscriber_can_be_installed() {
    static OTHER: EtwSubscriber = EtwSubscriber::new(&trace::PROVIDER, Keyword::NONE);
    let etw = enabled(5);
    etw.set(|etw| etw.irql = 1);
    assert_eq!(OTHER.install(), Err(InstallError::TooHighIrql(1)));
    etw.set(|etw| etw.irql = 0);
    assert_eq!(SUBSCRIBER.install(), Err(InstallError::AlreadyInstalled));
    assert_eq!(OTHER.install(), Err(InstallError::AlreadyInstalled));
    // The first subscriber still works as before.
    tracing::info!("x");
    assert_eq!(etw.writes().len(), 1);
}
