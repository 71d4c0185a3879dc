//! Tests the forms in which a declaration can be written: inside `macro_rules!`, whose fragments reach the
//! macros as groups, and with attributes inside the module.

use mock_etw::enabled;
use wdk_etw::{Keyword, emit, event};

/// Declares a provider with fragments of each kind that its parts can be.
macro_rules! declared {
    ($bit:literal, $entry:expr, $id:literal, $count:literal, $number:ty, $text:ty, $place:ty) => {
        #[wdk_etw::provider(name = "Test.Written")]
        mod trace {
            #![allow(unused_qualifications)]
            //! The provider's documentation.

            #[keyword]
            pub const READ: Keyword = Keyword::bit($bit);

            #[map]
            pub enum Kind {
                One = $entry,
            }

            #[bitmap]
            pub enum Flags {
                Bit = 1 << $bit,
                Mask = $bit | 1,
            }

            #[structure]
            pub struct Place {
                pub x: $number,
            }

            #[structure]
            pub struct Name<'a> {
                pub text: &'a $text,
                pub place: $place,
            }

            #[event(id = $id, level = Info, keyword = READ)]
            pub fn fields(
                number: $number,
                text: &$text,
                numbers: &[$number],
                fixed: [$number; $count],
                place: $place,
                places: &[$place],
                kind: Kind,
            );

            #[event(level = Info, keyword = READ)]
            pub fn named(name: Name<'_>, parenthesized: (u32));
        }
    };
}

declared!(2, 7, 3, 2, u32, str, Place);

/// Writes an event at its call site, with fragments.
macro_rules! at_call {
    ($name:literal, $keyword:expr, $text:ty, $count:literal) => {
        event!(trace::PROVIDER, $name, level = Info, keyword = $keyword, {
            text: &$text = "text",
            numbers: [u32; $count] = &[1; $count],
        });
    };
}

#[test]
fn declarations_can_be_in_macros_and_have_inner_attributes() {
    assert_eq!((trace::Kind::One.0, trace::Flags::Bit.0, trace::Flags::Mask.0), (7, 4, 3));
    let etw = enabled(&trace::PROVIDER, 5);
    let place = trace::Place { x: 9 };
    emit!(trace::fields(1, "a", &[2], &[3, 4], place, &[place], trace::Kind::One));
    emit!(trace::named(trace::Name { text: "b", place }, 5));
    at_call!("AtCall", trace::READ, str, 2);
    let writes = etw.writes();
    assert_eq!(writes.len(), 3);
    let mut content = vec![1, 0, 0, 0, 1, 0, b'a', 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
    content.extend([9, 0, 0, 0, 1, 0, 9, 0, 0, 0, 7, 0, 0, 0]);
    assert_eq!(writes[0].content(), content);
    assert_eq!(writes[0].event.id(), 3);
    assert_eq!(writes[1].content(), [1, 0, b'b', 9, 0, 0, 0, 5, 0, 0, 0]);
}

#[test]
fn the_keywords_of_an_event_at_its_call_site_can_be_joined() {
    const OTHER: Keyword = Keyword::bit::<9>();
    let etw = enabled(&trace::PROVIDER, 5);
    event!(trace::PROVIDER, "Joined", level = Info, keyword = trace::READ | OTHER);
    at_call!("Fragment", trace::READ | OTHER, str, 1);
    for write in etw.writes() {
        assert_eq!(write.event.keyword().bits(), 1 << 2 | 1 << 9);
    }
}

#[test]
fn an_event_between_awaits_leaves_the_future_sendable() {
    const fn sendable<T: Send>(future: T) -> T {
        future
    }
    let etw = enabled(&trace::PROVIDER, 5);
    let future = sendable(async {
        let place = trace::Place { x: 1 };
        emit!(trace::named(trace::Name { text: "b", place }, std::future::ready(1_u32).await));
        event!(trace::PROVIDER, "Awaited", level = Info, keyword = none, {
            first: u32 = 1,
            second: u32 = std::future::ready(1_u32).await,
        });
    });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(future).as_mut().poll(&mut context).is_ready());
    assert_eq!(etw.writes().len(), 2);
}
