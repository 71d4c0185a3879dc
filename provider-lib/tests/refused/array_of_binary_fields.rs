// R-O5: a description that decoders could not take apart.
use wdk_etw::{field, tracelogging};

static SENT: &[u8] = tracelogging!("Sent", "Frames": field::BINARY.array());

fn main() {
    let _sent = SENT;
}
