//! See [`etw_fuzz::etl_read`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::etl_read::check(data);
});
