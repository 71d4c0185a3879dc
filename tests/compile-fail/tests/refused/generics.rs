// A structure's parameters and a field's arguments are lifetimes: a type parameter could replace a map or
// structure of its name by a type whose bytes are not initialized or whose code runs in a write.
use core::ops::Deref;

#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        "code of the driver in a write"
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Evil {
    pub name: &'static Text,
}

#[wdk_etw::provider(name = "Contoso.Driver")]
mod parameters {
    #[map]
    pub enum Kind {
        Read = 1,
    }

    #[structure]
    pub struct Inner<'a> {
        pub name: &'a str,
    }

    #[structure]
    pub struct Uninitialized<Kind = core::mem::MaybeUninit<u32>> {
        pub kind: Kind,
    }

    #[structure]
    pub struct Borrowed<Inner = &'static str> {
        pub inner: Inner,
    }

    #[structure]
    pub struct Running<Inner = super::Evil> {
        pub inner: Inner,
    }

    #[structure]
    pub struct Counted<const N: usize> {
        pub number: u32,
    }

    #[structure]
    pub struct Bounded<'a>
    where
        'a: 'static,
    {
        pub name: &'a str,
    }

    #[event(level = Info, keyword = none)]
    pub fn uninitialized(all: &[Uninitialized]);
    #[event(level = Info, keyword = none)]
    pub fn borrowed(all: [Borrowed; 1]);
    #[event(level = Info, keyword = none)]
    pub fn running(one: Running);
}

#[wdk_etw::provider(name = "Contoso.Driver")]
mod arguments {
    #[structure]
    pub struct Inner {
        pub number: u32,
    }

    #[structure]
    pub struct Outer {
        pub inner: Inner<u32>,
    }

    #[event(level = Info, keyword = none)]
    pub fn one(inner: Inner<u8>);
    #[event(level = Info, keyword = none)]
    pub fn many(inner: &[Inner<4>]);
    #[event(level = Info, keyword = none)]
    pub fn text(text: UnicodeString<u16>);
}

// A structure's field that borrows needs a lifetime.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod lifetimes {
    #[structure]
    pub struct Name {
        pub name: &str,
    }
}

fn main() {}
