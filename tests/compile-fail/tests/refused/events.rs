// R-O5: an id and a version identify one layout.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod ids {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(id = 1, level = Info, keyword = READ)]
    pub fn first(a: u32);
    #[event(id = 1, version = 1, level = Info, keyword = READ)]
    pub fn second(a: u32, b: u32);
    #[event(id = 1, level = Info, keyword = READ)]
    pub fn third(b: u64);
    #[event(level = Info, keyword = READ, encoding = manifest)]
    pub fn without_id();
}

// R-D3: an event has a level and a keyword, or explicitly has no keyword.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod levels_and_keywords {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(level = 0, keyword = READ)]
    pub fn level_0();
    #[event(keyword = READ)]
    pub fn without_level();
    #[event(level = Info)]
    pub fn without_keyword();
    #[event(level = 7, keyword = READ)]
    pub fn microsofts_level();
    pub fn without_anything();
}

// R-K4: every name in an event is declared.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod names {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[tasks]
    enum Task {
        Transfer = 1,
    }

    #[event(level = Info, keyword = WRITE)]
    pub fn keyword();
    #[event(level = Info, keyword = READ, task = Transfers)]
    pub fn task();
    #[event(level = Info, keyword = READ, opcode = Split)]
    pub fn opcode();
    #[event(id = 1, level = Info, keyword = READ, channel = Operational)]
    pub fn channel();
    #[event(level = Info, keyword = READ)]
    pub fn kind(kind: Kind);
    #[event(level = Loud, keyword = READ)]
    pub fn level();
}

// R-O5: names must be unique.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod twice {
    #[keyword]
    pub const ID: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = ID)]
    pub fn register();
    #[event(level = Info, keyword = ID)]
    pub fn told();
    #[event(level = Info, keyword = ID)]
    pub fn told();
}

// R-O5: a field has a type that an event can have.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod types {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[structure]
    pub struct Endless {
        inner: Endless,
    }

    #[map]
    #[derive(PartialOrd)]
    enum Derived {
        One = 1,
    }

    #[bitmap]
    enum Bits {
        Both = 3,
    }

    #[event(level = Info, keyword = READ)]
    pub fn float(a: f64);
    #[event(level = Info, keyword = READ)]
    pub fn string(a: String);
    #[event(level = Info, keyword = READ)]
    pub fn hex(#[hex] a: &str);
    #[event(level = Info, keyword = READ)]
    pub fn texts(a: &[&str]);
    #[event(level = Info, keyword = READ)]
    pub fn twice(a: u32, #[name = "A"] b: u32);
    #[event(id = 4, level = Info, keyword = READ)]
    pub fn tagged(#[tag = 1] a: u32);
    #[event(level = Info, keyword = READ)]
    pub fn returns() -> u32;
    #[event(level = Info, keyword = READ)]
    pub fn unknown(#[octal] a: u32);
}

// R-O5: a payload that can never fit is refused.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod too_large {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = READ)]
    pub fn large(first: u32, large: [u64; 8000]);
}

// An event has at most 128 data descriptors.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod too_many_data_descriptors {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = READ)]
    pub fn many(f0: &str, f1: &str, f2: &str, f3: &str, f4: &str, f5: &str, f6: &str, f7: &str, f8: &str, f9: &str, f10: &str, f11: &str, f12: &str, f13: &str, f14: &str, f15: &str, f16: &str, f17: &str, f18: &str, f19: &str, f20: &str, f21: &str, f22: &str, f23: &str, f24: &str, f25: &str, f26: &str, f27: &str, f28: &str, f29: &str, f30: &str, f31: &str, f32: &str, f33: &str, f34: &str, f35: &str, f36: &str, f37: &str, f38: &str, f39: &str, f40: &str, f41: &str, f42: &str, f43: &str, f44: &str, f45: &str, f46: &str, f47: &str, f48: &str, f49: &str, f50: &str, f51: &str, f52: &str, f53: &str, f54: &str, f55: &str, f56: &str, f57: &str, f58: &str, f59: &str, f60: &str, f61: &str, f62: &str, f63: &str);
}

// A write takes at most 2,048 bytes of the stack for its values.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod too_much_stack {
    #[structure]
    pub struct Page {
        pub offset: u64,
        pub bytes: [u8; 4096],
    }

    #[event(level = Info, keyword = none)]
    pub fn page(used: u32, page: Page);
    #[event(level = Info, keyword = none)]
    pub fn texts(f0: Arguments<'_>, f1: Arguments<'_>, f2: Arguments<'_>, f3: Arguments<'_>, f4: Arguments<'_>, f5: Arguments<'_>, f6: Arguments<'_>, f7: Arguments<'_>);
}

fn main() {}
