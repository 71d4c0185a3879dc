//! Model checker tests for the tables in `wdk-etw-tracing`.

#![cfg(loom)]

use loom::{sync::Arc, thread};
use wdk_etw::{ActivityId, Guid};
use wdk_etw_tracing::model::{Entered, Key, Left, Span, SpanTable};

static NAMES: [&str; 4] = ["zero", "one", "two", "three"];

/// Returns the activity of the span with this number.
const fn activity(number: u16) -> ActivityId {
    ActivityId::from_guid(Guid::new(number as u32, number, number, [number as u8; 8]))
}

fn open<const N: usize>(table: &SpanTable<&'static str, N>, number: u16) -> Option<Key> {
    table.open(activity(number), &NAMES[usize::from(number)])
}

fn assert_is(span: &Span<&'static str>, number: u16) {
    assert_eq!(span.activity, activity(number));
    assert_eq!(*span.data, NAMES[usize::from(number)]);
}

#[test]
fn spans_of_two_threads_have_slots_of_their_own() {
    loom::model(|| {
        let table = Arc::new(SpanTable::<&'static str, 2>::new());
        let life = |table: &SpanTable<&'static str, 2>, number| {
            let key = open(table, number).unwrap();
            assert_is(&table.get(key).unwrap(), number);
            assert_is(&table.release(key).unwrap(), number);
            table.free(key);
            assert!(table.get(key).is_none());
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || life(&table, 1))
        };
        life(&table, 2);
        other.join().unwrap();
    });
}

/// Dropping the last of two handles, on either thread, closes the span exactly once.
#[test]
fn the_last_handle_closes_a_span_once() {
    loom::model(|| {
        let table = Arc::new(SpanTable::<&'static str, 1>::new());
        let key = open(&table, 1).unwrap();
        assert!(table.share(key));
        let drop_handle = move |table: &SpanTable<&'static str, 1>| {
            table.release(key).map_or(0, |span| {
                assert_is(&span, 1);
                table.free(key);
                1
            })
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || drop_handle(&table))
        };
        let here = drop_handle(&table);
        assert_eq!(here + other.join().unwrap(), 1);
        // The old key finds nothing, even if another span uses the slot.
        assert!(!table.share(key));
        let next = open(&table, 2).unwrap();
        assert!(table.get(key).is_none() && table.release(key).is_none());
        assert_is(&table.get(next).unwrap(), 2);
    });
}

/// A key that outlives its span, such as an explicit parent that is closed at the same time, finds
/// the span or nothing, but never the slot's next span or a mixture of the two spans.
#[test]
fn an_old_key_never_finds_the_next_span() {
    loom::model(|| {
        let table = Arc::new(SpanTable::<&'static str, 1>::new());
        let key = open(&table, 1).unwrap();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                assert!(table.release(key).is_some());
                table.free(key);
                let next = open(&table, 2).unwrap();
                assert_is(&table.get(next).unwrap(), 2);
            })
        };
        if let Some(span) = table.get(key) {
            assert_is(&span, 1);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_full_table_refuses_a_span_and_a_closing_one_is_not_reused() {
    loom::model(|| {
        let table = Arc::new(SpanTable::<&'static str, 1>::new());
        let key = open(&table, 1).unwrap();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let span = table.release(key).unwrap();
                // In the subscriber, the stop event is written here.
                thread::yield_now();
                assert_is(&span, 1);
                assert!(!table.share(key));
                table.free(key);
            })
        };
        if let Some(next) = open(&table, 2) {
            assert_is(&table.get(next).unwrap(), 2);
        }
        other.join().unwrap();
    });
}

#[test]
fn threads_leave_only_the_spans_that_they_entered() {
    loom::model(|| {
        let entered = Arc::new(Entered::<2>::new());
        let visit = |entered: &Entered<2>, thread: u64| {
            let number = u16::try_from(thread).unwrap();
            let left = Left { activity: activity(number), previous: activity(0) };
            // Both threads enter the same span.
            assert!(entered.enter(thread, 9, left.activity, left.previous));
            assert_eq!(entered.current(thread), Some((9, left.activity)));
            assert_eq!(entered.leave(thread, 9), Some(left));
            assert_eq!(entered.current(thread), None);
        };
        let other = {
            let entered = Arc::clone(&entered);
            thread::spawn(move || visit(&entered, 1))
        };
        visit(&entered, 2);
        other.join().unwrap();
        assert_eq!(entered.leave(1, 9), None);
    });
}

#[test]
fn a_full_table_of_entered_spans_refuses() {
    loom::model(|| {
        let entered = Arc::new(Entered::<1>::new());
        let visit = |entered: &Entered<1>, thread| {
            let did = entered.enter(thread, 9, activity(1), activity(0));
            assert_eq!(entered.leave(thread, 9).is_some(), did);
        };
        let other = {
            let entered = Arc::clone(&entered);
            thread::spawn(move || visit(&entered, 1))
        };
        visit(&entered, 2);
        other.join().unwrap();
        // Its entries are free again.
        assert!(entered.enter(3, 9, activity(1), activity(0)));
    });
}
