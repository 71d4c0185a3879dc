//! This project's events.

use wdk_etw::emit;

use crate::{callers, many, provider};

provider!(
    trace(name = "Contoso.Driver"):
    read_complete, read_complete0, read_complete1, read_complete2, read_complete3, read_complete4,
    read_complete5, read_complete6, read_complete7, read_complete8
);

// The same events, but as manifest events. They have a separate provider, because a provider with
// only manifest events is registered without traits.
provider!(
    manifest(name = "Contoso.Driver"):
    read_complete = 1, read_complete0 = 10, read_complete1 = 11, read_complete2 = 12,
    read_complete3 = 13, read_complete4 = 14, read_complete5 = 15, read_complete6 = 16,
    read_complete7 = 17, read_complete8 = 18
);

// The events of `trace`, without rundown protection.
provider!(
    unprotected(name = "Contoso.Driver", rundown = none):
    read_complete, read_complete0, read_complete1, read_complete2, read_complete3, read_complete4,
    read_complete5, read_complete6, read_complete7, read_complete8
);

macro_rules! described {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(trace::read_complete($status, $bytes, $text))
    };
}
callers!(
    described: described_five, described_four, described_request, described_leaf, described_evaluated
);

macro_rules! in_manifest {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(manifest::read_complete($status, $bytes, $text))
    };
}
callers!(
    in_manifest: manifest_five, manifest_four, manifest_request, manifest_leaf, manifest_evaluated
);

macro_rules! without_rundown {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(unprotected::read_complete($status, $bytes, $text))
    };
}
callers!(
    without_rundown: unprotected_five, unprotected_four, unprotected_request, unprotected_leaf,
    unprotected_evaluated
);

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
