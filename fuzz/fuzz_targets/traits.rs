//! See [`etw_fuzz::traits`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| etw_fuzz::traits::check(data));
