//! See [`etw_fuzz::script`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::script::check(data);
});
