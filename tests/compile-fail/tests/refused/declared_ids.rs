// R-O5: an id and a version denote one layout.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
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

fn main() {}
