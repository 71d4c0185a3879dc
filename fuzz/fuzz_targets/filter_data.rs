//! See [`etw_fuzz::filter_data`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::filter_data::check(data);
});
