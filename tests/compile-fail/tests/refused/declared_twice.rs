// R-O5: names are not used twice.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[keyword]
    pub const ID: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = ID)]
    pub fn register();
    #[event(level = Info, keyword = ID)]
    pub fn told();
    #[event(level = Info, keyword = ID)]
    pub fn told();
}

fn main() {}
