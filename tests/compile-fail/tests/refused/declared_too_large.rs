// R-O5: a payload that can never fit is refused.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = READ)]
    pub fn large(first: u32, large: [u64; 8000]);
}

fn main() {}
