// R-O2: a provider's GUID must be well-formed.
#[wdk_etw::provider(name = "Contoso.Driver", guid = "802b686a-519d-5416-5280-4c0ead585fb")]
mod trace {
}

fn main() {}
