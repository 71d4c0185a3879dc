// R-O5: a field has a type that an event can have.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
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

fn main() {}
