// R-T1: a provider has a name.
#[wdk_etw::provider(guid = "802b686a-519d-5416-5280-4c0ead585fbb")]
mod trace {
}

fn main() {}
