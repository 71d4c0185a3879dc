// R-C4: the traits blob has 255 bytes at most.
use wdk_etw::{Traits, traits};

static TRAITS: Traits = traits!("Contoso.Driver", 128 => [0; 236]);

fn main() {
    let _traits = &TRAITS;
}
