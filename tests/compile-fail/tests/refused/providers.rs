// R-T1: a provider has a name.
#[wdk_etw::provider(guid = "802b686a-519d-5416-5280-4c0ead585fbb")]
mod without_name {
}

// R-O2: a GUID must be complete.
#[wdk_etw::provider(name = "Contoso.Driver", guid = "802b686a-519d-5416-5280-4c0ead585fb")]
mod guid {
}

// R-G1: a group's GUID must be complete.
#[wdk_etw::provider(name = "Contoso.Driver", group = "not a guid at all, but 36 letters....")]
mod group {
}

// R-O2: only an ASCII name has a GUID that all tools agree on.
#[wdk_etw::provider(name = "Contoso.Prüfung")]
mod name_without_hash {
}

// R-T5: custom traits have the types 128 to 255.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(127, b"x"))]
mod trait_of_microsofts_type {
}

// R-T5: custom traits have the types 128 to 255.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(256, b"x"))]
mod trait_type_too_large {
}

// R-T5: the group is not a custom trait.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(1, b"x"))]
mod trait_of_the_groups_type {
}

// R-C4: a traits blob has at most 255 bytes.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(128, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"))]
mod traits_of_256_bytes {
}

// A provider has at most eight channels.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod ninth_channel {
    #[channels]
    enum Channel {
        #[channel(Debug)]
        A = 16,
        #[channel(Debug)]
        B = 17,
        #[channel(Debug)]
        C = 18,
        #[channel(Debug)]
        D = 19,
        #[channel(Debug)]
        E = 20,
        #[channel(Debug)]
        F = 21,
        #[channel(Debug)]
        G = 22,
        #[channel(Debug)]
        H = 23,
        #[channel(Debug)]
        I = 24,
    }
}

// R-K1, R-K2: a keyword is one of the bits 0 to 47, which no other keyword has.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod keywords {
    #[keyword]
    pub const FIRST: Keyword = Keyword::bit(3);
    #[keyword]
    pub const AGAIN: Keyword = 0x8;
    #[keyword]
    pub const MICROSOFTS: Keyword = Keyword::bit(48);
    #[keyword]
    pub const TWO_BITS: Keyword = 0x3;
    #[keyword]
    pub const NO_BIT: Keyword = 0;
}

// R-D4: the provider's own opcodes are 10 to 239.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod opcodes {
    #[opcodes]
    enum Opcode {
        Start = 1,
    }

    #[opcodes]
    enum More {
        Receive = 240,
    }

    #[opcodes]
    enum Twice {
        One = 10,
        Other = 10,
    }

    #[tasks]
    enum Task {
        None = 0,
    }
}

// R-E7: a stripe's index consists of bits of an address.
#[wdk_etw::provider(name = "Contoso.Driver", stripes = 3)]
mod three_stripes {}

#[wdk_etw::provider(name = "Contoso.Driver", stripes = 128)]
mod too_many_stripes {}

#[wdk_etw::provider(name = "Contoso.Driver", stripes = 2, stripes = 4)]
mod stripes_twice {}

// The generated code is in several modules, where a relative path leads to different items.
#[wdk_etw::provider(name = "Contoso.Driver", crate = super::wdk_etw)]
mod relative_path {}

// For an argument in the wrong form, the error says what to write.
#[wdk_etw::provider("Contoso.Driver")]
mod name_alone {}

#[wdk_etw::provider(name = NAME)]
mod name_of_a_constant {}

#[wdk_etw::provider(name = "Contoso.Driver", statistics = true)]
mod word_with_a_value {}

fn main() {}
