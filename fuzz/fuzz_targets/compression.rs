//! See [`etw_fuzz::compression`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::compression::check(data);
});
