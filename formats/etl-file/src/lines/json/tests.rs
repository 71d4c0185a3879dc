use super::*;
use crate::decode::{Value, decoded};
use crate::read::Event;
use crate::record::EventRecord;

fn event() -> Event {
    Event { record: EventRecord::default(), ..Event::default() }
}

fn named() -> Decoded {
    let name = |text: &str| Some(Arc::from(text));
    let mut event = decoded(EventRecord::default());
    event.provider_name = name("provider");
    event.channel_name = name("channel");
    event.level_name = name("level");
    event.opcode_name = name("opcode");
    event.task_name = name("task");
    event.keywords.names = ["keyword".into()].into();
    event
}

#[test]
fn the_text_of_a_kind_is_of_events_that_are_equal_in_all_its_parts() {
    // Equal names can be in different memory.
    let kind = KindText::new(&named());
    assert!(kind.is_of(&named()));
    assert!(kind.is_of(&Decoded { fields: vec![("a".into(), Value::UInt(1))], ..named() }));
    let changes: [fn(&mut Decoded); 13] = [
        |event| event.provider = Guid::from_u128(1),
        |event| event.descriptor.keyword = 1,
        |event| event.kind = Kind::Wpp,
        |event| event.group = Some(Guid::from_u128(2)),
        |event| event.provider_name = Some("other".into()),
        |event| event.channel_name = Some("other".into()),
        |event| event.level_name = Some("other".into()),
        |event| event.opcode_name = Some("other".into()),
        |event| event.task_name = Some("other".into()),
        |event| event.provider_name = None,
        |event| event.task_name = None,
        |event| event.keywords.names = ["other".into()].into(),
        |event| event.keywords.names = Arc::new([]),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut other = named();
        change(&mut other);
        assert!(!kind.is_of(&other), "change {number}");
    }
    let nameless = KindText::new(&decoded(EventRecord::default()));
    assert!(nameless.is_of(&decoded(EventRecord::default())));
    assert!(!nameless.is_of(&named()));
}

#[test]
fn the_texts_of_kinds_are_remembered() {
    let event = event();
    let remembered = |events: &mut dyn FnMut() -> Decoded| {
        let mut members = Members::default();
        for level in [1, 2, 3, 1, 2, 3] {
            let mut decoded = events();
            decoded.descriptor.level = level;
            members.line(&event.view(), &decoded, &mut Vec::new()).unwrap();
        }
        members.kinds.len()
    };
    assert_eq!(remembered(&mut named), 6, "the names are six times in memory");
    let shared = named();
    assert_eq!(remembered(&mut || shared.clone()), 3);
}
