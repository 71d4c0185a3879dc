// An event is a declaration without a body.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod bodies {
    #[event(level = Info, keyword = none)]
    pub fn with_a_body(length: u32) {
        let _length = length;
    }
    #[event(level = Info, keyword = none)]
    const fn constant(length: u32);
}

// For an argument in the wrong form, the error says what to write.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod arguments {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[tasks]
    enum Task {
        Transfer = 1,
    }

    #[event(level = Info, keyword = READ, opcode = 10)]
    pub fn opcode();
    #[event(level = Info, keyword = READ, task = 1)]
    pub fn task();
    #[event(level = Info, keyword = READ, task = Task::Transfer)]
    pub fn path();
    #[event(id = 1, level = Info, keyword = READ, channel = "Operational")]
    pub fn channel();
    #[event(level = Info, keyword = 0x1)]
    pub fn keyword();
    #[event(level = Info, keyword = READ | 2)]
    pub fn second_keyword();
    #[event(level = "Info", keyword = READ)]
    pub fn level();
    #[event(level = Level::INFO, keyword = READ)]
    pub fn constant_level();
    #[event(level = VERBOSE, keyword = READ)]
    pub fn capital_level();
    #[event(id = 65536, level = Info, keyword = READ)]
    pub fn id();
    #[event(id = First, level = Info, keyword = READ)]
    pub fn id_that_is_a_name();
    #[event(id = 2, version = 256, level = Info, keyword = READ)]
    pub fn version();
    #[event(level = Info, level = Error, keyword = READ)]
    pub fn twice();
    #[event(level = Info, keyword = READ)]
    #[event(id = 4)]
    pub fn two_attributes();
}

// Nothing is silently ignored.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod ignored {
    #[event(level = Info, keyword = none, message = "It happened.")]
    pub fn message_without_manifest();
    #[event(version = 1, level = Info, keyword = none)]
    pub fn version_without_id();
    #[event(level = Info, keyword = none)]
    pub fn two_formats(#[hex] #[address] a: u32);
    #[event(level = Info, keyword = none)]
    pub fn twice(#[hex] #[hex] a: u32);
    #[event(level = Info, keyword = none)]
    pub fn no_array(#[array] a: u32);
}

// A message refers only to existing fields, and each percent sign begins a valid sequence.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod messages {
    #[event(id = 1, level = Info, keyword = none, message = "%1 and %9")]
    pub fn missing(a: u32, b: u32);
    #[event(id = 2, level = Info, keyword = none, message = "%1")]
    pub fn without_fields();
    #[event(id = 3, level = Info, keyword = none, message = "100% of %1")]
    pub fn percent(a: u32);
    #[event(id = 4, level = Info, keyword = none, message = "%1 is 100%")]
    pub fn percent_at_the_end(a: u32);
    #[event(id = 5, level = Info, keyword = none, message = "%1!x")]
    pub fn format(a: u32);
    #[event(id = 6, level = Info, keyword = none, message = "a\0b")]
    pub fn nul();
    #[event(id = 7, level = Info, keyword = none, name = "a\u{1}b")]
    pub fn control();
}

// A type has a known size, and an array has a known length.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod types {
    pub const LENGTH: usize = 4;

    #[event(level = Info, keyword = none)]
    pub fn text(name: str);
    #[event(level = Info, keyword = none)]
    pub fn c_text(name: CStr);
    #[event(level = Info, keyword = none)]
    pub fn slice(name: [u8]);
    #[event(level = Info, keyword = none)]
    pub fn array(a: [u32; LENGTH]);
    #[event(level = Info, keyword = none)]
    pub fn empty(a: [u32; 0]);
    #[event(level = Info, keyword = none)]
    pub fn texts(texts: &[&str]);
    #[event(level = Info, keyword = none)]
    pub fn float(a: f32);
    #[event(level = Info, keyword = none)]
    pub fn optional(a: Option<u32>);
    #[event(level = Info, keyword = none)]
    pub fn number(a: &u32);
    #[event(level = Info, keyword = none)]
    pub fn counted(a: &UnicodeString<'_>);
    #[event(level = Info, keyword = none)]
    pub fn twice(a: &&str);
    #[event(level = Info, keyword = none)]
    pub fn of_wdk(a: NTSTATUS);
    #[event(level = Info, keyword = none)]
    pub fn with_path(a: wdk_sys::UNICODE_STRING);
    #[event(level = Warn, keyword = none)]
    pub fn level_of_log();
}

// A structure contains its members, except text and slices.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod members {
    #[structure]
    pub struct Place {
        pub x: u32,
    }

    #[structure]
    pub struct Number<'a> {
        pub x: &'a u32,
    }

    #[structure]
    pub struct Array<'a> {
        pub x: &'a [u32; 4],
    }

    #[structure]
    pub struct Inner<'a> {
        pub place: &'a Place,
    }

    #[structure]
    pub struct Lost {
        #[doc(hidden)]
        pub x: u32,
    }
}

// Array elements are structures without padding, with the same bytes in memory and in the event.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod elements {
    #[map]
    pub enum Kind {
        Read = 1,
    }

    #[structure]
    pub struct Name<'a> {
        pub length: u32,
        pub name: &'a str,
    }

    #[structure]
    pub struct Place {
        pub x: u32,
    }

    #[structure]
    pub struct Places {
        pub places: [Place; 2],
    }

    #[structure]
    pub struct Hidden {
        pub address: Pointer,
    }

    #[structure]
    pub struct Nothing {}

    #[event(level = Info, keyword = none)]
    pub fn names(names: &[Name]);
    #[event(level = Info, keyword = none)]
    pub fn hidden(hidden: &[Hidden]);
    #[event(level = Info, keyword = none)]
    pub fn nothing(nothing: [Nothing; 2]);
    #[event(level = Info, keyword = none)]
    pub fn maps(kinds: &[Kind]);
    #[event(level = Info, keyword = none)]
    pub fn unknown(unknown: &[Unknown]);
    #[structure]
    pub struct Lifetime<'a> {
        pub x: u32,
    }

    #[event(level = Info, keyword = none)]
    pub fn lifetimes(all: &[Lifetime]);
    #[event(level = Info, keyword = none)]
    pub fn hex(#[hex] places: &[Place]);
}

// A manifest's template has at most 99 fields.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod too_many_fields {
    #[event(id = 1, level = Info, keyword = none)]
    pub fn many(f0: &[u8], f1: &[u8], f2: &[u8], f3: &[u8], f4: &[u8], f5: &[u8], f6: &[u8], f7: &[u8], f8: &[u8], f9: &[u8], f10: &[u8], f11: &[u8], f12: &[u8], f13: &[u8], f14: &[u8], f15: &[u8], f16: &[u8], f17: &[u8], f18: &[u8], f19: &[u8], f20: &[u8], f21: &[u8], f22: &[u8], f23: &[u8], f24: &[u8], f25: &[u8], f26: &[u8], f27: &[u8], f28: &[u8], f29: &[u8], f30: &[u8], f31: &[u8], f32: &[u8], f33: &[u8], f34: &[u8], f35: &[u8], f36: &[u8], f37: &[u8], f38: &[u8], f39: &[u8], f40: &[u8], f41: &[u8], f42: &[u8], f43: &[u8], f44: &[u8], f45: &[u8], f46: &[u8], f47: &[u8], f48: &[u8], f49: &[u8]);
}

// A structure's field that borrows needs a lifetime.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod lifetimes {
    #[structure]
    pub struct Name {
        pub name: &str,
    }
}

// A map is an enum with a value for each name. A field can use only a declared map.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod maps {
    #[map]
    pub enum Kind {
        Read = 1,
    }

    #[map]
    pub struct Place {
        x: u32,
    }

    #[map]
    #[repr(u64)]
    pub enum Wide {
        Read = 1,
    }

    #[map]
    pub enum WithoutValue {
        Read,
    }

    #[map]
    pub enum WithFields {
        Read(u32) = 1,
    }

    #[map]
    pub enum Twice {
        Read = 1,
        Read = 2,
    }

    #[map]
    pub enum Empty {}

    #[event(level = Info, keyword = none)]
    pub fn kind(kind: Kinds);
    #[event(level = Info, keyword = none)]
    pub fn hex(#[hex] kind: Kind);
}

// If a task and the provider have opcodes with the same number, the task's opcode is used.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod opcodes {
    #[tasks]
    enum Task {
        Transfer = 1,
        Other = 2,
    }

    #[opcodes]
    enum Opcode {
        Split = 10,
    }

    #[opcodes(task = Transfer)]
    enum TransferOpcode {
        Begin = 10,
    }

    #[event(level = Info, keyword = none, task = Transfer, opcode = Split)]
    pub fn shown_as_begin();
    #[event(level = Info, keyword = none, task = Other, opcode = Split)]
    pub fn shown_as_split();
    #[event(level = Info, keyword = none, opcode = Split)]
    pub fn without_task();
}

// Every name has one meaning.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod names {
    #[keyword]
    pub const none: Keyword = Keyword::bit(0);

    #[opcodes]
    enum Opcode {
        Start = 10,
        Split = 11,
        Split = 12,
    }

    #[tasks]
    enum Task {
        #[channel(Debug)]
        Transfer = 1,
    }

    #[map]
    pub enum told {
        One = 1,
    }

    #[event(level = Info, keyword = none)]
    pub fn told();
    #[event(level = Info, keyword = none)]
    pub fn __wdk_etw();
    #[event(level = Info, keyword = none)]
    pub fn twice(#[name = "B"] a: u32, a: u32);
}

// The attributes of a declaration apply to items of the right kind.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod kinds {
    #[keyword]
    pub static READ: Keyword = Keyword::bit(0);
    #[structure]
    pub enum Place {}
    #[tasks]
    pub const TASK: u16 = 1;
}

// Only `usize` and `isize` have a selectable size, and only manifests count structure arrays.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod sizes {
    #[structure]
    pub struct Place {
        x: u32,
    }

    #[structure]
    pub struct Short {
        #[repr(u32)]
        length: usize,
    }

    #[event(level = Info, keyword = none)]
    pub fn fixed_size(#[repr(u32)] size: u64);
    #[event(level = Info, keyword = none)]
    pub fn unsigned(#[repr(u32)] offset: isize);
    #[event(level = Info, keyword = none)]
    pub fn negative(#[repr(i8)] size: usize);
    #[event(level = Info, keyword = none)]
    pub fn in_c(#[repr(C)] size: usize);
    #[event(level = Info, keyword = none)]
    pub fn whole(#[repr(u32)] place: Place);
    #[event(level = Info, keyword = none)]
    pub fn repeated(#[repr(u32)] sizes: [usize; 2]);
    #[event(level = Info, keyword = none)]
    pub fn numbers(#[repr(u32)] numbers: &[u64]);
    #[event(level = Info, keyword = none)]
    pub fn shorter(shorts: &[Short]);
    #[event(id = 6, level = Info, keyword = none)]
    pub fn signed_count(#[repr(i32)] count: isize, #[count(field = count)] places: &[Place]);
    #[event(id = 7, level = Info, keyword = none)]
    pub fn wide_count(count: usize, #[count(field = count)] places: &[Place]);
    #[event(id = 1, level = Info, keyword = none)]
    pub fn narrowed(#[length(u32)] size: usize);
    #[event(id = 2, level = Info, keyword = none)]
    pub fn single(#[count(u8)] place: Place);
    #[event(id = 3, level = Info, keyword = none)]
    pub fn fixed(#[count(u8)] places: [Place; 2]);
    #[event(id = 4, level = Info, keyword = none)]
    pub fn lengthy(#[length(u8)] places: &[Place]);
    #[event(level = Info, keyword = none)]
    pub fn self_describing(#[count(u8)] places: &[Place]);
    #[event(id = 5, level = Info, keyword = none)]
    pub fn signed(count: i32, #[count(field = count)] places: &[Place]);
}

// A manifest cannot have a structure without members.
#[wdk_etw::provider(name = "Contoso.Driver", encoding = manifest)]
mod empty {
    #[structure]
    pub struct Empty {}

    #[event(id = 1, level = Info, keyword = none)]
    pub fn nothing(empty: Empty);
}

// R-T5: each type identifies one trait.
#[wdk_etw::provider(name = "Contoso.Driver", trait_(128, b"x"), trait_(129, b"y"), trait_(128, b"z"))]
mod trait_twice {}

#[wdk_etw::provider(name = "Contoso.Driver", name = "Contoso.Other")]
mod name_twice {}

fn main() {}
