//! Tests that the macros work where the library has another path, as in a crate that re-exports it.

mod deps {
    pub mod wdk_etw {
        pub const OTHER: u32 = 7;
    }
}

mod prelude {
    pub use wdk_etw as etw;
}

use mock_etw::enabled;

use self::prelude::etw;

/// The provider of the tests.
#[etw::provider(crate = crate::exported::prelude::etw, name = "Test.Exported")]
pub mod trace {
    // The path of another item with the library's name.
    use crate::exported::deps::wdk_etw::OTHER;

    /// The value of `OTHER`, imported under the library's name.
    pub const SAME: u32 = OTHER;

    #[event(level = Info, keyword = none)]
    pub fn number(value: u32, #[cfg(test)] port: Port);
}

#[test]
fn the_library_can_have_another_path() {
    // A crate of this name in scope is not used.
    #[allow(unused_imports, reason = "the macros do not use it")]
    use std as wdk_etw;
    let etw = enabled(&trace::PROVIDER, 5);
    etw::emit!(trace::number(1, etw::Port(2)));
    etw::event!(trace::PROVIDER, "Other", level = Info, keyword = none, {
        value: u32 = crate::exported::deps::wdk_etw::OTHER + trace::SAME,
    });
    etw::emit!(::itself::exported::trace::number(4, etw::Port(5)), once);
    assert_eq!(etw.writes().len(), 3);
}

/// Code with its own keywords.
struct Unit;

impl Unit {
    const KEYWORD: etw::Keyword = etw::Keyword::bit::<3>();

    fn write(level: etw::Level, keyword: etw::Keyword, text: &str) {
        etw::event!(trace::PROVIDER, "Constant", level = Info, keyword = Self::KEYWORD);
        etw::event!(
            trace::PROVIDER, "Known", level = runtime(level), keyword = runtime(keyword),
            { text: &str = text }
        );
    }
}

#[test]
fn an_event_has_a_level_and_a_keyword_that_are_known_at_run_time() {
    let etw = enabled(&trace::PROVIDER, 4);
    let long = "a".repeat(70_000);
    for text in ["", &long] {
        for level in [etw::Level::WARNING, etw::Level::VERBOSE] {
            Unit::write(level, etw::Keyword::bit::<5>(), text);
        }
    }
    let writes = etw.writes();
    let written: Vec<_> =
        writes.iter().map(|one| (one.event.level(), one.event.keyword().bits())).collect();
    let (constant, known) = ((etw::Level::INFO, 8), (etw::Level::WARNING, 32));
    // The event that reports the cut text has the level and the keyword of the event it reports.
    assert_eq!(written, [constant, known, constant, constant, known, known, constant]);
}
