// R-T5: the group is not a custom trait.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(1, b"x"))]
mod trace {
}

fn main() {}
