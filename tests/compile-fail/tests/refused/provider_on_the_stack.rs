// ETW keeps a registered provider's address.
use wdk_etw::{__macro::StaticProvider, Traits, guid_of_name, traits};

static TRAITS: Traits = traits!("Contoso.Driver");

fn main() {
    let provider: StaticProvider = StaticProvider::new(guid_of_name!("Contoso.Driver"), &TRAITS);
    // SAFETY: the program never unmaps its code.
    let _result = unsafe { provider.register() };
}
