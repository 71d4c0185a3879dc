//! Not part of the public API: what the programs, tests and fuzz targets of this repository share
//! with this crate. It can change in each version.

pub use crate::decode::value::{distinct_names, serialize_fields};
pub use crate::image::described;
pub use crate::pipeline::{AddressHider, available_threads};

/// The compression of buffers.
pub mod compression {
    pub use crate::compression::{MAX_SIZE, compress, decompress, decompress_into};
}

/// The records of the kernel and of classic providers, and the layouts of their classes.
pub mod kernel {
    pub use crate::decode::kernel::{
        Class, Classes, Field, Form, MofErrorKind, Record, RecordHeader, Type, classes, decode,
        decode_record, hook, wpp_flags,
    };
}

/// The names of processes, threads and images.
pub mod names {
    pub use crate::names::{Names, Running};
}

/// The descriptions of providers, events and fields.
pub mod schema {
    pub use crate::decode::catalog::{Channel, EventDefinition, Provider};
    pub use crate::decode::payload::Payload;
    pub use crate::decode::schema::{
        Count, Encoding, Field, Length, Presentation, Schema, ValueMap,
    };
    pub use etw_wire::InType;
}

/// Printable forms of bytes and untrusted text.
pub mod show {
    pub use crate::show::{Escaped, Hex, text};
}

/// The times between the start and the end of operations.
pub mod spans {
    pub use crate::spans::{OpenSpans, Part, Span, SpanKey, spans};
}

/// Stacks that are joined with their events.
pub mod stacks {
    pub use crate::stacks::{Definitions, Joiner};
}
