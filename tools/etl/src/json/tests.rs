use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use etl_file::EventRecord;
use etl_file::read::Event;
use etl_fixtures::decoded;

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
    Decoded { provider_name: Some("provider".into()), ..decoded(EventRecord::default()) }
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
