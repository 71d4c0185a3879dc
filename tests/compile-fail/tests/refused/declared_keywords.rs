// R-K1, R-K2: each keyword is a different bit of 0 to 47.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
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

fn main() {}
