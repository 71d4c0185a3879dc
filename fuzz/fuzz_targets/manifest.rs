//! See [`etw_fuzz::manifest`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::manifest::check(data);
});
