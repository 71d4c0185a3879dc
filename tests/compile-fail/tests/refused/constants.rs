// R-T5: types 1 to 127 are reserved for Microsoft.
mod custom_trait_of_microsofts_type {
    use wdk_etw::{Traits, traits};

    static TRAITS: Traits = traits!("Contoso.Driver", 127 => *b"mine");

    pub fn used() {
        let _traits = &TRAITS;
    }
}

// R-C4: a traits blob has at most 255 bytes.
mod traits_of_256_bytes {
    use wdk_etw::{Traits, traits};

    static TRAITS: Traits = traits!("Contoso.Driver", 128 => [0; 236]);

    pub fn used() {
        let _traits = &TRAITS;
    }
}

// A GUID has only hexadecimal digits and hyphens.
mod malformed_guid {
    use wdk_etw::{Guid, guid};

    const ID: Guid = guid!("4f50731a-89cf-4782-b3e0-dce8c90476bg");

    pub fn used() {
        let _id = ID;
    }
}

// R-O2: tools disagree about the hash of a name outside ASCII.
mod name_that_has_no_hash {
    use wdk_etw::{Guid, guid_of_name};

    const ID: Guid = guid_of_name!("Contoso.Gerät");

    pub fn used() {
        let _id = ID;
    }
}

// R-K1, R-K2: a provider's keyword is one of the bits 0 to 47.
mod keyword_outside_the_low_48_bits {
    use wdk_etw::Keyword;

    const KEYWORD: Keyword = Keyword::bit::<48>();

    pub fn used() {
        let _keyword = KEYWORD;
    }
}

fn main() {}
