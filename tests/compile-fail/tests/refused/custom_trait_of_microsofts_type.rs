// R-T5: types 1 to 127 are Microsoft's.
use wdk_etw::{Traits, traits};

static TRAITS: Traits = traits!("Contoso.Driver", 127 => *b"mine");

fn main() {
    let _traits = &TRAITS;
}
