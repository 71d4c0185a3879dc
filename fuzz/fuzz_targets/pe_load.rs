//! See [`etw_fuzz::pe_load`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::pe_load::check(data);
});
