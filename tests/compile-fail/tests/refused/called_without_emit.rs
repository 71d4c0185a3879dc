// Calling an event's function evaluates its arguments even if no session enables the event.
#![deny(unused_must_use)]

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[event(level = Info, keyword = none)]
    pub fn read(length: u32);

    #[event(level = Info, keyword = none)]
    pub fn loaded();
}

fn main() {
    trace::loaded();
    trace::read(512);
}
