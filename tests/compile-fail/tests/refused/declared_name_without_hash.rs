// R-O2: only ASCII names have a GUID that all tools agree on.
#[wdk_etw::provider(name = "Contoso.Prüfung")]
mod trace {
}

fn main() {}
