// R-D3, R-K4: an event at its call site is checked like a declared event.
use wdk_etw::event;

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {}

fn main() {
    event!(trace::PROVIDER, "NoLevel", keyword = none);
    event!(trace::PROVIDER, "NoKeyword", level = Info);
    event!(trace::PROVIDER, "Float", level = Info, keyword = none, { a: f32 = 1.0 });
    event!(trace::PROVIDER, "Nul\0", level = Info, keyword = none);
    event!(trace::PROVIDER, "Large", level = Info, keyword = none, { a: [u64; 9000] = &[0; 9000] });
    event!(trace::PROVIDER, "Type", level = Info, keyword = none, { a: u32 = "text" });
}
