//! The peer: the `tracelogging` crate in kernel mode.

use tracelogging::{Guid, define_provider};

use crate::{callers, many};

define_provider!(PROVIDER, "Contoso.Driver");

macro_rules! one_of_peer {
    ($name:tt, $status:expr, $bytes:expr, $text:expr) => {
        tracelogging::write_event!(
            PROVIDER,
            $name,
            level(Informational),
            keyword(2),
            u32("Status", &$status),
            u64("Bytes", &$bytes),
            str8("Name", $text),
        )
    };
}
many!(
    peer_many, "more-of-the-peer", one_of_peer: "ReadComplete0";
    "ReadComplete1", "ReadComplete2", "ReadComplete3", "ReadComplete4",
    "ReadComplete5", "ReadComplete6", "ReadComplete7", "ReadComplete8"
);

macro_rules! peer {
    ($status:expr, $bytes:expr, $text:expr) => {
        one_of_peer!("ReadComplete", $status, $bytes, $text)
    };
}
callers!(
    peer: peer_five, peer_four, peer_request, peer_leaf, peer_evaluated
);

#[unsafe(no_mangle)]
pub extern "system" fn peer_register() {
    let _id: Guid = *PROVIDER.id();
    // SAFETY: the image is never unloaded.
    unsafe { PROVIDER.register() };
}
