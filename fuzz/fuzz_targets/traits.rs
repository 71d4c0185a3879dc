//! See [`etw_fuzz::traits`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::traits::check(data);
});
