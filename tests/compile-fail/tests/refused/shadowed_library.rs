// A library's path that leads to other items gives no implementation of an unsafe trait.
use core::cell::Cell;

mod other {
    #[allow(unused_imports)]
    pub use core::marker::Sync as PlainData;

    pub use wdk_etw::*;

    pub type Luid = &'static super::Cell<u32>;

    pub mod __macro {
        pub use wdk_etw::__macro::*;

        pub fn bytes_of_size<T, const SIZE: usize>(_: &[T]) -> &[u8] {
            &[]
        }
    }
}

#[wdk_etw::provider(name = "Contoso.Driver", crate = crate::other)]
mod trace {
    #[structure]
    pub struct Place {
        pub id: Luid,
    }

    #[event(level = Info, keyword = none)]
    pub fn places(places: &[Place]);
}

fn main() {}
