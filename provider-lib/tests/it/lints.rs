//! Tests that a declaration's code causes no warning: a driver need not use everything in a
//! declaration, its items may have the names of a header, and their docs are the declaration's.

#![deny(warnings, missing_docs)]

/// Items that nothing uses, in the style of C.
#[wdk_etw::provider(
    name = "Test.Lints",
    statistics,
    group = "2e651177-aeab-5ffc-66e2-144601de7da8"
)]
mod unused {
    /// A keyword.
    #[keyword]
    const Read: Keyword = Keyword::bit(0);

    /// A map.
    #[map]
    #[repr(u8)]
    enum request_kind {
        /// An entry.
        by_name = 1,
    }

    /// Bits.
    #[bitmap]
    #[repr(u16)]
    enum request_flags {
        /// A bit.
        no_wait = 1,
    }

    /// A structure.
    #[structure]
    struct request_place {
        /// A member.
        Sector: u32,
    }

    /// An event.
    #[event(level = Info, keyword = Read)]
    fn RequestSent(Kind: request_kind, Flags: request_flags, Place: request_place);
}

/// Items that have documentation, and that other crates may see.
#[wdk_etw::provider(name = "Test.Lints.Documented")]
pub mod documented {
    /// A keyword.
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    /// A map.
    #[map]
    #[repr(u8)]
    pub enum Kind {
        /// An entry.
        ByName = 1,
    }

    /// A structure.
    #[structure]
    pub struct Place {
        /// A member.
        pub sector: u32,
    }

    /// An event.
    #[event(level = Info, keyword = READ)]
    pub fn request_sent(kind: Kind, place: Place);
}

#[test]
fn a_declaration_has_no_warning() {
    // The compiler has already checked it.
    assert_eq!(documented::Kind::ByName.0, 1);
}
