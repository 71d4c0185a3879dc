//! See [`etw_fuzz::tmf`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::tmf::check(data);
});
