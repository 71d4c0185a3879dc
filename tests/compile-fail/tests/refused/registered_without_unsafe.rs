// A provider must be unregistered before its image is unloaded.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {}

fn main() {
    let _result = trace::register();
    let _result = trace::PROVIDER.register();
}
