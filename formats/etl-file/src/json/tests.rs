use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::decode::{Value, decoded};
use crate::read::Event;
use crate::record::EventRecord;

/// An output that records the length of each write.
#[derive(Clone, Default)]
struct Noted(Rc<RefCell<(Vec<usize>, Vec<u8>)>>);

impl Write for Noted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut noted = self.0.borrow_mut();
        noted.0.push(bytes.len());
        noted.1.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
    let mut writer = Writer::new(Vec::new());
    let event = event();
    for level in [1, 2, 3, 1, 2, 3] {
        let mut decoded = named();
        decoded.descriptor.level = level;
        writer.event(&event.view(), &decoded).unwrap();
    }
    assert_eq!(writer.members.kinds.len(), 6, "the names are six times in memory");
    let mut writer = Writer::new(Vec::new());
    let shared = named();
    for level in [1, 2, 3, 1, 2, 3] {
        let mut decoded = shared.clone();
        decoded.descriptor.level = level;
        writer.event(&event.view(), &decoded).unwrap();
    }
    assert_eq!(writer.members.kinds.len(), 3);
}

#[test]
fn lines_are_written_together_and_at_the_latest_when_the_writer_is_dropped() {
    let out = Noted::default();
    let mut writer = Writer::new(out.clone());
    let event = event();
    for _ in 0..3 {
        writer.event(&event.view(), &named()).unwrap();
    }
    assert_eq!(out.0.borrow().0, [0; 0]);
    drop(writer);
    assert_eq!(out.0.borrow().0.len(), 1);
    let lines = String::from_utf8(out.0.borrow().1.clone()).unwrap();
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.ends_with("}\n"));

    let out = Noted::default();
    let mut writer = Writer::new(out.clone());
    let mut count = 0;
    while out.0.borrow().0.is_empty() {
        writer.event(&event.view(), &named()).unwrap();
        count += 1;
    }
    let line = lines.len() / 3;
    let written = out.0.borrow().0[0];
    assert_eq!(written, count * line);
    assert!((0x1_0000..0x1_0000 + line).contains(&written), "{written}");
}
