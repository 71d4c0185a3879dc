// R-D3: an event has a level and a keyword, or is declared explicitly to have none.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
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

fn main() {}
