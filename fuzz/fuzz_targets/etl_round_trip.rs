//! See [`etw_fuzz::etl_round_trip`].
#![no_main]

use etw_fuzz::etl_round_trip::{Session, check};

libfuzzer_sys::fuzz_target!(|session: Session| {
    let _ = check(&session);
});
