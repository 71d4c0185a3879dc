// ETW keeps a registered provider's address.
use wdk_etw::{Provider, Traits, guid_of_name, traits};

static TRAITS: Traits = traits!("Contoso.Driver");

fn main() {
    let provider = Provider::new(guid_of_name!("Contoso.Driver"), &TRAITS);
    let _result = provider.register();
}
