//! This project's event with helpers, in the caller with five arguments.

use wdk_etw::{HexDump, NtStatus, RateLimit, Traced as _, emit};

use crate::{another, other, provider, text};

#[wdk_etw::provider(name = "Contoso.Helpers")]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(1);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);

    #[event(level = Info, keyword = READ)]
    pub fn failed(status: NtStatus);

    #[event(level = Info, keyword = READ)]
    pub fn dumped(status: u32, bytes: u64, name: HexDump<'_>);
}

provider!(counted(name = "Contoso.Counted", statistics): read_complete);
provider!(single(name = "Contoso.Single", stripes = 1): read_complete);

static LIMIT: RateLimit = RateLimit::every(100);

/// Defines a caller.
macro_rules! caller {
    ($name:ident: |$status:ident, $bytes:ident, $text:ident| $write:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name(
            $status: u32,
            $bytes: u64,
            start: *const u8,
            length: usize,
        ) -> u32 {
            let done = other($status, $bytes, start, length);
            {
                // SAFETY: the caller upholds the function's contract.
                let $text = unsafe { text(start, length) };
                $write
            }
            done ^ another($status, $bytes, start, length)
        }
    };
}

caller!(helper_every: |status, bytes, text| {
    emit!(trace::read_complete(status, bytes, text), every = 100);
});
caller!(helper_once: |status, bytes, text| {
    emit!(trace::read_complete(status, bytes, text), once);
});
caller!(helper_limit: |status, bytes, text| {
    emit!(trace::read_complete(status, bytes, text), limit = LIMIT);
});
caller!(helper_counted: |status, bytes, text| {
    emit!(counted::read_complete(status, bytes, text));
});
caller!(helper_single: |status, bytes, text| {
    emit!(single::read_complete(status, bytes, text));
});
caller!(helper_dump: |status, bytes, text| {
    emit!(trace::dumped(status, bytes, HexDump::window(text.as_bytes(), 2, 8)));
});
caller!(helper_traced: |status, _bytes, _text| {
    let _same = NtStatus::from_bits(status).traced(trace::failed);
});

#[unsafe(no_mangle)]
pub extern "system" fn helpers_register() {
    // SAFETY: the benchmark never unmaps the image.
    let _result = unsafe { trace::register() };
    // SAFETY: as above.
    let _result = unsafe { counted::register() };
    // SAFETY: as above.
    let _result = unsafe { single::register() };
}
