//! See [`etw_fuzz::resources`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::resources::check(data);
});
