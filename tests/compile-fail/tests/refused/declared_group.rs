// R-G1: a group's GUID must be well-formed.
#[wdk_etw::provider(name = "Contoso.Driver", group = "not a guid at all, but 36 letters....")]
mod trace {
}

fn main() {}
