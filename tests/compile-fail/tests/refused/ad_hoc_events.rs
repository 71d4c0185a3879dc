// R-D3, R-K4: an event at its call site is checked like a declared event.
use wdk_etw::event;

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[map]
    pub enum Kind {
        Read = 1,
    }
}

fn main() {
    event!(trace::PROVIDER, "NoLevel", keyword = none);
    event!(trace::PROVIDER, "NoKeyword", level = Info);
    event!(trace::PROVIDER, "Float", level = Info, keyword = none, { a: f32 = 1.0 });
    event!(trace::PROVIDER, "Nul\0", level = Info, keyword = none);
    event!(trace::PROVIDER, "Large", level = Info, keyword = none, { a: [u64; 9000] = &[0; 9000] });
    event!(trace::PROVIDER, "Type", level = Info, keyword = none, { a: u32 = "text" });
    event!(trace::PROVIDER, "Path", level = wdk_etw::Level::INFO, keyword = none);
    event!(trace::PROVIDER, "Case", level = INFO, keyword = none);
    let level = wdk_etw::Level::INFO;
    event!(trace::PROVIDER, "Local", level = level, keyword = none);
    event!(trace::PROVIDER, "Map", level = Info, keyword = none, { a: Kind = trace::Kind::Read });
    event!(trace::PROVIDER, "Option", level = Info, keyword = none, { a: Option<u32> = None });
    event!(trace::PROVIDER, "Untyped", level = Info, keyword = none, { a = 1 });
    event!(trace::PROVIDER, "Unset", level = Info, keyword = none, { a: u32 });
    event!(trace::PROVIDER, "Unbraced", level = Info, keyword = none, a: u32 = 1);
    const NAME: &str = "Name";
    event!(trace::PROVIDER, NAME, level = Info, keyword = none);
    event!(trace::PROVIDER, level = Info, keyword = none);
    event!("Name", level = Info, keyword = none);
}
