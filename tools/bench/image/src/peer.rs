//! The peer: the `tracelogging` crate in kernel mode.

use tracelogging::{Guid, define_provider};

use crate::callers;

define_provider!(PROVIDER, "Contoso.Driver");

macro_rules! peer {
    ($status:expr, $bytes:expr, $text:expr) => {
        tracelogging::write_event!(
            PROVIDER,
            "ReadComplete",
            level(Informational),
            keyword(2),
            u32("Status", &$status),
            u64("Bytes", &$bytes),
            str8("Name", $text),
        )
    };
}
callers!(
    peer: peer_five, peer_four, peer_request, peer_leaf, peer_evaluated
);
#[cfg(feature = "timing")]
crate::loops::writes!(peer: peer_writes);
#[cfg(feature = "timing")]
crate::loops::arrays!(peer: peer_sum, peer_checksum);

/// Writes one event or nine between the same calls. The difference is the size of eight events in
/// the image.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn peer_many(status: u32, bytes: u64, start: *const u8, length: usize) {
    // SAFETY: the caller upholds the function's contract.
    let name = unsafe { crate::text(start, length) };
    let status = crate::other(status, bytes, start, length);
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete0",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete1",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete2",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete3",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete4",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete5",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete6",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete7",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    #[cfg(feature = "more-of-the-peer")]
    tracelogging::write_event!(
        PROVIDER,
        "ReadComplete8",
        level(Informational),
        keyword(2),
        u32("Status", &status),
        u64("Bytes", &bytes),
        str8("Name", name),
    );
    let status = crate::other(status, bytes, start, length);
    crate::other(status, bytes, start, length);
}

#[unsafe(no_mangle)]
pub extern "system" fn peer_register() {
    let _id: Guid = *PROVIDER.id();
    // SAFETY: the image is never unloaded.
    unsafe { PROVIDER.register() };
}
