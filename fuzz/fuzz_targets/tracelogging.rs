//! See [`etw_fuzz::tracelogging`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::tracelogging::check(data);
});
