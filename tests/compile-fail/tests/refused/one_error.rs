// A mistake in an event is the only error, regardless of the code that uses the provider.
use wdk_etw::emit;

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[map]
    pub enum Kind {
        Read = 1,
    }

    #[event(level = Info, keyword = READ)]
    pub fn read(kind: Kind, length: u32);

    #[event(level = Info, keyword = READ)]
    pub fn faulty(length: f64);
}

fn main() {
    // SAFETY: the program's code is never unmapped.
    let _registered = unsafe { trace::register() };
    emit!(trace::read(trace::Kind::Read, 512));
    let _keyword = trace::READ;
    let _result = trace::unregister();
}
