//! See [`etw_fuzz::unwind`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::unwind::check(data);
});
