// R-K1, R-K2: a provider's keyword is one of the bits 0 to 47.
use wdk_etw::Keyword;

const KEYWORD: Keyword = Keyword::bit::<48>();

fn main() {
    let _keyword = KEYWORD;
}
