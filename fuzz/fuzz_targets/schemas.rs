//! See [`etw_fuzz::schemas`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::schemas::check(data);
});
