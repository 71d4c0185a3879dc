//! Tests the rate limits of events.

use std::cell::Cell;

use mock_etw::{DISABLE, ENABLE, Turn, enabled};
use wdk_etw::{ActivityId, RateLimit, emit, event, guid};

#[wdk_etw::provider(name = "Test.Limits")]
mod trace {
    #[keyword]
    pub const ANY: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = ANY)]
    pub fn sample(number: u32);
}

fn registered() -> Turn {
    enabled(&trace::PROVIDER, 5)
}

/// Returns the numbers in the events that were written.
fn written(etw: &Turn) -> Vec<u32> {
    let writes = etw.writes().into_iter();
    let data = writes.map(|one| one.data.last().unwrap().1.clone());
    data.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn every_nth_occurrence_is_written_and_only_its_arguments_are_evaluated() {
    let etw = registered();
    let before = trace::PROVIDER.statistics().left_out;
    let evaluated = Cell::new(0);
    let evaluate = |number| {
        evaluated.set(evaluated.get() + 1);
        number
    };
    for number in 0..10 {
        emit!(trace::sample(evaluate(number)), every = 4);
    }
    assert_eq!(written(&etw), [0, 4, 8]);
    assert_eq!(evaluated.get(), 3);
    // The provider's counter includes the occurrences before each written event.
    assert_eq!(trace::PROVIDER.statistics().left_out - before, 6);
}

#[test]
fn each_place_has_its_own_limit() {
    let etw = registered();
    for number in 0..3 {
        emit!(trace::sample(number), every = 2);
        emit!(trace::sample(10 + number), every = 3);
    }
    assert_eq!(written(&etw), [0, 10, 2]);
}

#[test]
fn a_once_event_is_written_once_and_the_rest_is_counted() {
    let etw = registered();
    let before = trace::PROVIDER.statistics().left_out;
    for number in 0..5 {
        emit!(trace::sample(number), once);
    }
    assert_eq!(written(&etw), [0]);
    assert_eq!(trace::PROVIDER.statistics().left_out - before, 4);
}

#[test]
fn a_named_limit_is_shared_read_and_reset() {
    static LIMIT: RateLimit = RateLimit::every(3);
    static ONCE: RateLimit = RateLimit::once();
    let etw = registered();
    for number in 0..4 {
        emit!(trace::sample(number), limit = LIMIT);
        event!(trace::PROVIDER, "Other", level = Info, keyword = none, limit = LIMIT, {
            number: u32 = 10 + number,
        });
        emit!(trace::sample(20), limit = ONCE);
    }
    // Occurrences 1, 4 and 7 of eight.
    assert_eq!(written(&etw), [0, 20, 11, 3]);
    assert_eq!((LIMIT.left_out(), ONCE.left_out()), (5, 3));
    LIMIT.reset();
    ONCE.reset();
    assert_eq!((LIMIT.left_out(), ONCE.left_out()), (0, 0));
    emit!(trace::sample(30), limit = LIMIT);
    emit!(trace::sample(31), limit = ONCE);
    assert_eq!(written(&etw), [30, 31]);
}

// A driver must not crash because a caller or its settings say 0.
#[test]
fn a_limit_of_zero_admits_every_occurrence() {
    let limit = RateLimit::every(std::hint::black_box(0));
    let etw = registered();
    for number in 0..3 {
        emit!(trace::sample(number), limit = limit);
    }
    assert_eq!(written(&etw), [0, 1, 2]);
    assert_eq!(limit.left_out(), 0);
}

#[test]
fn events_at_their_call_site_have_limits_too() {
    let etw = registered();
    for number in 0..5 {
        event!(trace::PROVIDER, "Every", level = Info, keyword = none, every = 2, {
            number: u32 = number,
        });
        event!(trace::PROVIDER, "Once", level = Info, keyword = none, once, {
            number: u32 = 10 + number,
        });
    }
    assert_eq!(written(&etw), [0, 10, 2, 4]);
}

#[test]
fn nothing_is_counted_while_no_session_enables_the_event() {
    static LIMIT: RateLimit = RateLimit::every(2);
    let etw = registered();
    etw.notify(DISABLE, 0, 0, 0);
    emit!(trace::sample(1), limit = LIMIT);
    etw.notify(ENABLE, 5, 2, 0);
    emit!(trace::sample(2), limit = LIMIT);
    assert_eq!(LIMIT.left_out(), 0);
    etw.notify(ENABLE, 5, 1, 0);
    emit!(trace::sample(3), limit = LIMIT);
    assert_eq!(written(&etw), [3], "the first occurrence that counts");
}

#[test]
fn other_options_follow_the_limit() {
    let etw = registered();
    let activity = ActivityId::from_guid(guid!("00000001-0000-0000-0000-000000000001"));
    emit!(trace::sample(1), every = 2, activity = activity);
    emit!(trace::sample(1), once, activity = activity,);
    let writes = etw.writes();
    let activities: Vec<_> = writes.iter().map(|one| one.activity).collect();
    assert_eq!(activities, [Some(activity.guid()); 2]);
}

#[test]
fn occurrences_on_several_threads_are_all_counted() {
    static LIMIT: RateLimit = RateLimit::every(7);
    const EACH: u32 = 700;
    let etw = registered();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..EACH {
                    emit!(trace::sample(number), limit = LIMIT);
                }
            });
        }
    });
    assert_eq!(etw.writes().len(), 400);
    assert_eq!(LIMIT.left_out(), 2400);
}
