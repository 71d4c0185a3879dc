//! See [`etw_fuzz::kernel`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = etw_fuzz::kernel::check(data);
});
