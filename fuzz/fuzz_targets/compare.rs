//! See [`etw_fuzz::compare`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::compare::check(data);
});
