//! This project's events.

use wdk_etw::emit;

use crate::{callers, many};

#[wdk_etw::provider(name = "Contoso.Driver")]
pub mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(1);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete0(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete1(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete2(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete3(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete4(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete5(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete6(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete7(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete8(status: u32, bytes: u64, name: &str);
}

/// The same events, but as manifest events. They have a separate provider, because a provider with
/// only manifest events is registered without traits.
#[wdk_etw::provider(name = "Contoso.Driver")]
pub mod manifest {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(1);

    #[event(id = 1, level = Info, keyword = READ)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);

    #[event(id = 10, level = Info, keyword = READ)]
    pub fn read_complete0(status: u32, bytes: u64, name: &str);
    #[event(id = 11, level = Info, keyword = READ)]
    pub fn read_complete1(status: u32, bytes: u64, name: &str);
    #[event(id = 12, level = Info, keyword = READ)]
    pub fn read_complete2(status: u32, bytes: u64, name: &str);
    #[event(id = 13, level = Info, keyword = READ)]
    pub fn read_complete3(status: u32, bytes: u64, name: &str);
    #[event(id = 14, level = Info, keyword = READ)]
    pub fn read_complete4(status: u32, bytes: u64, name: &str);
    #[event(id = 15, level = Info, keyword = READ)]
    pub fn read_complete5(status: u32, bytes: u64, name: &str);
    #[event(id = 16, level = Info, keyword = READ)]
    pub fn read_complete6(status: u32, bytes: u64, name: &str);
    #[event(id = 17, level = Info, keyword = READ)]
    pub fn read_complete7(status: u32, bytes: u64, name: &str);
    #[event(id = 18, level = Info, keyword = READ)]
    pub fn read_complete8(status: u32, bytes: u64, name: &str);
}

/// The events of `trace`, without rundown protection.
#[wdk_etw::provider(name = "Contoso.Driver", rundown = none)]
pub mod unprotected {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(1);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete0(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete1(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete2(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete3(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete4(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete5(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete6(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete7(status: u32, bytes: u64, name: &str);
    #[event(level = Info, keyword = READ)]
    pub fn read_complete8(status: u32, bytes: u64, name: &str);
}

macro_rules! described {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(trace::read_complete($status, $bytes, $text))
    };
}
callers!(
    described: described_five, described_four, described_request, described_leaf, described_evaluated
);
#[cfg(feature = "timing")]
crate::loops::writes!(described: described_writes);
#[cfg(feature = "timing")]
crate::loops::arrays!(described: described_sum, described_checksum);

macro_rules! in_manifest {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(manifest::read_complete($status, $bytes, $text))
    };
}
callers!(
    in_manifest: manifest_five, manifest_four, manifest_request, manifest_leaf, manifest_evaluated
);
#[cfg(feature = "timing")]
crate::loops::writes!(in_manifest: manifest_writes);
#[cfg(feature = "timing")]
crate::loops::arrays!(in_manifest: manifest_sum, manifest_checksum);

macro_rules! without_rundown {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(unprotected::read_complete($status, $bytes, $text))
    };
}
callers!(
    without_rundown: unprotected_five, unprotected_four, unprotected_request, unprotected_leaf,
    unprotected_evaluated
);
#[cfg(feature = "timing")]
crate::loops::writes!(without_rundown: unprotected_writes);
#[cfg(feature = "timing")]
crate::loops::arrays!(without_rundown: unprotected_sum, unprotected_checksum);

macro_rules! one_described {
    ($event:ident, $status:expr, $bytes:expr, $text:expr) => {
        emit!(trace::$event($status, $bytes, $text))
    };
}
many!(
    described_many, "more-described", one_described: read_complete0;
    read_complete1, read_complete2, read_complete3, read_complete4,
    read_complete5, read_complete6, read_complete7, read_complete8
);

macro_rules! one_in_manifest {
    ($event:ident, $status:expr, $bytes:expr, $text:expr) => {
        emit!(manifest::$event($status, $bytes, $text))
    };
}
many!(
    manifest_many, "more-in-manifest", one_in_manifest: read_complete0;
    read_complete1, read_complete2, read_complete3, read_complete4,
    read_complete5, read_complete6, read_complete7, read_complete8
);

macro_rules! one_without_rundown {
    ($event:ident, $status:expr, $bytes:expr, $text:expr) => {
        emit!(unprotected::$event($status, $bytes, $text))
    };
}
many!(
    unprotected_many, "more-without-rundown", one_without_rundown: read_complete0;
    read_complete1, read_complete2, read_complete3, read_complete4,
    read_complete5, read_complete6, read_complete7, read_complete8
);

#[unsafe(no_mangle)]
pub extern "system" fn ours_register() {
    // SAFETY: the benchmark never unmaps the image.
    let _result = unsafe { trace::register() };
    // SAFETY: as above.
    let _result = unsafe { manifest::register() };
    // SAFETY: as above.
    let _result = unsafe { unprotected::register() };
}
