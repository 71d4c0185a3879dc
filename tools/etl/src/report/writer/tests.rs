use super::*;
use etl_file::EventRecord;
use etl_file::decode::Problem;
use etl_fixtures::decoded;

#[test]
fn problems_beyond_the_limit_are_counted_together() {
    let mut problems = Problems::default();
    let mut number = |bytes| {
        problems.number(&Decoded {
            problems: vec![Problem::Surplus { bytes }, Problem::NoSchema],
            ..decoded(EventRecord::default())
        })
    };
    assert_eq!(number(1), 1);
    assert_eq!(number(2), 2);
    assert_eq!(number(1), 1);
    for bytes in 3..MAX_PROBLEMS {
        assert_eq!(usize::from(number(bytes)), bytes);
    }
    assert_eq!(usize::from(number(MAX_PROBLEMS)), MAX_PROBLEMS);
    assert_eq!(usize::from(number(MAX_PROBLEMS + 1)), MAX_PROBLEMS);
    assert_eq!(number(2), 2, "a problem that is counted already stays separate");
    assert_eq!(problems.number(&decoded(EventRecord::default())), 0);
    let counts: Vec<u64> = problems.list.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts[..3], [2, 2, 1]);
    assert_eq!(problems.list.last(), Some(&("other problems".to_owned(), 2)));
}

#[test]
fn kinds_with_the_same_hash_are_told_apart() {
    let event = decoded(EventRecord::default());
    let mut id = event.clone();
    id.descriptor.id = 1;
    let kind = Decoded { kind: Form::Wpp, ..event.clone() };
    let name = Decoded { event_name: Some("N".into()), ..event.clone() };
    let provider_name = Decoded { provider_name: Some("P".into()), ..event.clone() };
    let provider = Decoded { provider: Guid::from_u128(7), ..event.clone() };
    let events = [event, id, kind, name, provider_name, provider];
    let mut kinds = Kinds::default();
    for _ in 0..2 {
        for (number, event) in (0..).zip(&events) {
            assert_eq!(kinds.number_of(event, 0), Some(number), "{event:?}");
        }
    }
    assert_eq!(kinds.list.len(), events.len());
}

#[test]
fn threads_beyond_the_limit_have_no_number_and_their_events_are_counted() {
    let event = |thread_id| Decoded { thread_id, ..decoded(EventRecord::default()) };
    let mut page = Writer::new("Page", 10).unwrap();
    let thread = |n| (u32::MAX, n, 0, None);
    page.threads.list = (1..1 << 20).map(thread).collect();
    assert_eq!(page.threads.number(&event(1)), Some(0xF_FFFF));
    assert_eq!(page.threads.number(&event(2)), None);
    assert_eq!(page.threads.number(&event(1)), Some(0xF_FFFF));
    for thread in [1, 2, 3] {
        page.push(&event(thread)).unwrap();
    }
    assert_eq!((page.events, page.unlisted, page.spill.rows()), (3, 2, 1));
}

#[test]
fn the_first_hundred_events_of_a_kind_are_of_a_class_of_their_own() {
    let mut page = Writer::new("Page", 1000).unwrap();
    for _ in 0..102 {
        page.push(&decoded(EventRecord::default())).unwrap();
    }
    assert_eq!(page.sample.totals(), [0, 100, 0, 2]);
}

#[test]
fn the_temporary_file_has_less_than_twice_as_many_events_as_the_page() {
    let mut page = Writer::new("Page", 10).unwrap();
    let mut most = 0;
    for number in 0..1_000 {
        page.push(&decoded(EventRecord::default())).unwrap();
        most = most.max(page.spill.rows());
        assert!(page.spill.rows() >= number.min(9), "{number}");
    }
    assert_eq!(most, 19);
    let written = page.finish(Vec::new()).unwrap();
    assert_eq!(written.events, 1_000);
    assert!((5..=10).contains(&written.shown), "{written:?}");
}

#[test]
fn starts_and_stops_with_an_activity_are_of_a_class_of_their_own() {
    let of = |opcode, activity| {
        let mut event = decoded(EventRecord::default());
        event.descriptor.opcode = opcode;
        event.activity = Guid::from_u128(activity);
        class(&event, 0)
    };
    for opcode in [START, STOP] {
        assert_eq!(of(opcode, 7), Class::Activity);
        assert_eq!(of(opcode, 0), Class::First);
    }
    for opcode in [0, 3] {
        assert_eq!(of(opcode, 7), Class::First);
    }
}

#[test]
fn an_event_with_a_problem_is_an_alarm() {
    let sound = decoded(EventRecord::default());
    assert!(matches!(class(&sound, FIRST_OF_KIND - 1), Class::First));
    assert!(matches!(class(&sound, FIRST_OF_KIND), Class::Other));
    let damaged = Decoded { problems: vec![Problem::NoSchema], ..sound };
    assert!(matches!(class(&damaged, FIRST_OF_KIND), Class::Alarm));
}
