// `emit!` takes one value for each field of the event, of the field's type.
use wdk_etw::emit;

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[map]
    pub enum Kind {
        Read = 1,
    }

    #[bitmap]
    pub enum Flags {
        Cached = 1,
    }

    #[event(level = Info, keyword = none)]
    pub fn read_complete(offset: u64, name: &str);
    #[event(level = Info, keyword = none)]
    pub fn told();
    #[event(level = Info, keyword = none)]
    pub fn kind(kind: Kind);
}

fn main() {
    emit!(trace::read_complete(1));
    emit!(trace::read_complete(1, "x", 2));
    emit!(trace::told(1), flags = wdk_etw::WriteFlags::NONE);
    emit!(trace::read_complete(1), flags = wdk_etw::WriteFlags::NONE);
    emit!(trace::kind(trace::Flags::Cached));
    emit!(trace::kind(trace::Kind::Write));
    emit!(trace::kind(1));
    emit!(trace::unknown(1));
    emit!(trace::told(), color = 1);
    emit!(trace::told(), keyword = wdk_etw::Keyword::NONE);
    emit!(trace::told(), level = wdk_etw::Level::INFO);
    emit!(trace::told);
    emit!(trace::told(), Info);
    trace::read_complete(1);
}
