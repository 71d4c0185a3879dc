//! See [`etw_fuzz::manifest_compile`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::manifest_compile::check(data);
});
