// R-O5: a description that decoders could not take apart.
use wdk_etw::{field, tracelogging};

static MOVED: &[u8] = tracelogging!("Moved", "From": field::structure(2), "Disk": field::U8);

fn main() {
    let _moved = MOVED;
}
