// The bytes of structures are written only if the compiler knows that they are initialized, whatever the
// generated paths of their members' types lead to.
extern crate self as core;

pub use std::*;

pub mod primitive {
    pub use std::primitive::{bool, str, u8, u16, u64, usize};

    #[allow(non_camel_case_types)]
    pub type u32 = std::mem::MaybeUninit<std::primitive::u32>;
}

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[structure]
    pub struct Place {
        pub x: u32,
    }

    #[event(level = Info, keyword = none)]
    pub fn places(places: &[Place]);
}

fn main() {}
