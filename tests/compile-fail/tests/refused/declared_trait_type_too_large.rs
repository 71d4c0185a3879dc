// R-T5: custom traits have the types 128 to 255.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(256, b"x"))]
mod trace {
}

fn main() {}
