//! Tests that the macros work where the library has another path, as in a crate that exports it again.

mod prelude {
    pub use wdk_etw as etw;
}

use mock_etw::enabled;

use self::prelude::etw;

#[etw::provider(crate = crate::exported::prelude::etw, name = "Test.Exported")]
mod trace {
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
    etw::event!(trace::PROVIDER, "Other", level = Info, keyword = none, { value: u32 = 3 });
    assert_eq!(etw.writes().len(), 2);
}
