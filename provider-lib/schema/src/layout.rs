//! The layout of an event's data: the data descriptors that a write passes to ETW.
//!
//! Consecutive fixed-size fields, and the length before a string or an array, are copied into one
//! block, which needs one data descriptor. Variable-size fields and arrays have their own data
//! descriptors, which point to the caller's memory. ETW concatenates the data without padding, so
//! decoders see no difference, and fewer data descriptors make the write cheaper.

use etw_wire::limits::{
    EVENT_HEADER_SIZE, MAX_DATA_DESCRIPTORS, MAX_EVENT_SIZE, MAX_SID_SIZE, MAX_SOCKADDR_SIZE,
};
use proc_macro2::Span;
use syn::{Ident, Type};

use crate::{
    Encoding, Field, FieldType, Format, Representation, Scalar, Shape, Text,
    elements::element_size,
    errors::{bail, error},
    tracelogging::Types,
};

/// The maximum size of an event's data in bytes, if the event metadata is at most 256 bytes long.
///
/// The data shares the maximum size of an event with the header (80 bytes) and the extended data
/// items: the event metadata, the traits (at most 255 bytes), the related activity id (16 bytes)
/// and the stack trace (at most 192 addresses of 8 bytes). Larger event metadata leaves less room
/// for the data.
pub const MAX_CONTENT: usize = MAX_EVENT_SIZE - EVENT_HEADER_SIZE - 2_560;

/// The maximum number of bytes of kernel stack that a write takes for an event's values: formatted
/// strings, socket addresses, structures that are passed by value, and blocks of fixed-size fields.
///
/// A kernel stack on x64 is 24 KiB in size, and an event can be written anywhere, in an interrupt
/// too. The data descriptors take 16 bytes each in addition, so up to 2 KiB. The slow path holds blocks,
/// socket addresses and descriptors twice.
const MAX_STACK: usize = 2_048;

/// The size in bytes of a formatted string on the stack, and that of a socket address.
const FORMATTED: usize = 272;
const SOCKET: usize = 40;

/// The size in bytes of a number that is passed on the stack, whatever its type.
const ARGUMENT: usize = 8;

/// The size in bytes of a structure that is passed in registers.
const IN_REGISTERS: usize = 16;

/// A field of an event, or a member of a structure, that is not itself a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The parameter, followed by the nested members down to the value.
    pub path: Vec<Ident>,
    /// The index of the event field that is or contains the value.
    pub field: usize,
    /// The value's form in the event.
    pub wire: Wire,
    /// The type of the length or count before the value, if it is not the default `u16`.
    pub counter: Option<Scalar>,
    /// The index of the earlier leaf with the length or count, if it is not right before the value.
    pub counted_by: Option<usize>,
}

impl Leaf {
    /// Returns the size in bytes of one unit of a length or count.
    #[must_use]
    pub fn unit(&self) -> usize {
        match self.wire {
            Wire::Counted(scalar) => scalar.size().unwrap_or(1),
            Wire::CountedStructures(size) => size,
            Wire::Text(text) => text.unit(),
            Wire::Plain(..)
            | Wire::Sized(_)
            | Wire::Map(_)
            | Wire::Fixed(..)
            | Wire::FixedStructures(..)
            | Wire::Terminated(_)
            | Wire::Sid
            | Wire::CountedIpv6
            | Wire::SocketAddr => 1,
        }
    }

    /// Returns the maximum size in bytes of a value whose length or count is an 8-bit number.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        (self.counter == Some(Scalar::U8)).then_some(usize::from(u8::MAX) * self.unit())
    }

    /// Returns the size in bytes of the value in the caller's memory, or of the reference to it.
    fn size_in_memory(&self) -> usize {
        match self.wire {
            Wire::Sized(_) => 8,
            Wire::Plain(..) | Wire::Map(_) | Wire::Fixed(..) | Wire::FixedStructures(..) => {
                self.wire.size()
            }
            Wire::SocketAddr => 32,
            Wire::Counted(_)
            | Wire::CountedStructures(_)
            | Wire::Text(_)
            | Wire::Terminated(_)
            | Wire::Sid
            | Wire::CountedIpv6 => 16,
        }
    }

    /// Returns the maximum size in bytes of the parts that cannot be cut.
    fn size(&self) -> usize {
        let counter = self.counter.and_then(Scalar::size).unwrap_or(2);
        match self.wire {
            Wire::Counted(_) | Wire::CountedStructures(_) | Wire::Text(_)
                if self.counted_by.is_some() =>
            {
                0
            }
            Wire::Counted(_) | Wire::CountedStructures(_) | Wire::Text(_) => counter,
            Wire::SocketAddr => counter + MAX_SOCKADDR_SIZE,
            other => other.size(),
        }
    }
}

/// The form of a value in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// A fixed-size value.
    Plain(Scalar, Format),
    /// A `usize` or `isize` that is written as this integer type.
    Sized(Scalar),
    /// A value of a map's type.
    Map(Scalar),
    /// An array of a fixed number of values, without a count.
    Fixed(Scalar, u16),
    /// An array with a count before it.
    Counted(Scalar),
    /// An array of a fixed number of structures of this size in bytes, without a count.
    FixedStructures(usize, u16),
    /// An array of structures of this size in bytes, with a count before it.
    CountedStructures(usize),
    /// A string or bytes, with a length in bytes before them.
    Text(Text),
    /// A string with a NUL after it.
    Terminated(Text),
    /// A security identifier, which contains its own length.
    Sid,
    /// An IPv6 address with a length before it.
    CountedIpv6,
    /// A socket address with a length before it.
    SocketAddr,
}

impl Wire {
    /// Returns the form without the format, which does not affect the value's bytes.
    /// [`Format::Address`] stays, because it does affect them.
    #[must_use]
    pub const fn without_format(self) -> Self {
        match self {
            Self::Plain(scalar, format) if !matches!(format, Format::Address) => {
                Self::Plain(scalar, Format::Default)
            }
            other => other,
        }
    }

    /// Returns the maximum size in bytes of the parts that cannot be cut.
    fn size(self) -> usize {
        match self {
            Self::Plain(scalar, _) | Self::Sized(scalar) | Self::Map(scalar) => {
                scalar.size().unwrap_or(0)
            }
            Self::Fixed(scalar, count) => scalar.size().unwrap_or(0) * usize::from(count),
            Self::FixedStructures(size, count) => size.saturating_mul(usize::from(count)),
            // The length or count before them determines their size.
            Self::Counted(_) | Self::CountedStructures(_) | Self::Text(_) | Self::SocketAddr => 0,
            Self::Terminated(text) => text.unit(),
            Self::Sid => MAX_SID_SIZE,
            Self::CountedIpv6 => 18,
        }
    }
}

/// A part of a block. Each variant contains the index of its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPart {
    /// The value itself.
    Value(usize),
    /// The length or count before the value.
    Length(usize),
    /// The NUL after a string.
    Nul(usize),
}

impl BlockPart {
    /// Returns the part's size in bytes. `leaves` are the leaves of its layout.
    #[must_use]
    pub fn size(self, leaves: &[Leaf]) -> usize {
        let (Self::Value(at) | Self::Length(at) | Self::Nul(at)) = self;
        let leaf = leaves.get(at);
        let wire = leaf.map(|leaf| leaf.wire);
        let counter = leaf.and_then(|leaf| leaf.counter);
        match (self, wire) {
            (
                Self::Value(_),
                Some(Wire::Plain(scalar, _) | Wire::Sized(scalar) | Wire::Map(scalar)),
            ) => scalar.size().unwrap_or(0),
            (Self::Value(_), Some(Wire::CountedIpv6)) => 16,
            (Self::Length(_), _) => counter.and_then(Scalar::size).unwrap_or(2),
            (Self::Nul(_), Some(Wire::Terminated(text))) => text.unit(),
            // A block has no other parts.
            _ => 0,
        }
    }
}

/// A data descriptor of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDescriptor {
    /// Refers to a block of parts with fixed sizes, which the write assembles on its stack.
    Block(Vec<BlockPart>),
    /// Refers to a value in the caller's memory. Contains the index of its leaf.
    InPlace(usize),
}

/// The layout of an event's data.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The fields, with structures replaced by their members.
    pub leaves: Vec<Leaf>,
    /// The data descriptors.
    pub descriptors: Vec<DataDescriptor>,
    /// The size in bytes that remains for strings and arrays of variable size, which can be cut.
    pub room: usize,
    /// The fields with structures that the event takes by value. Its write function takes them by
    /// reference, except those that are passed in registers.
    pub by_reference: Vec<usize>,
}

impl Layout {
    /// Computes the layout of an event whose metadata is `metadata_size` bytes long.
    ///
    /// # Errors
    ///
    /// Returns an error if the event can never be written: at the first field that does not fit in
    /// the event, or at `span` if there are too many data descriptors.
    pub fn of(
        fields: &[Field],
        encoding: Encoding,
        types: Types<'_>,
        metadata_size: usize,
        span: Span,
    ) -> syn::Result<Self> {
        let leaves = leaves(fields, encoding, types)?;
        let Some(most) = MAX_CONTENT.checked_sub(metadata_size.saturating_sub(256)) else {
            bail!(
                span,
                "the event's metadata is {metadata_size} bytes long, which leaves no room for data \
                 in an event of at most 64 KiB; shorten the names of the event and its fields",
            );
        };
        let mut used = 0;
        for leaf in &leaves {
            used += leaf.size();
            if used > most {
                let ident = &fields[leaf.field].ident;
                bail!(
                    ident.span(),
                    "the event is too large: its fields up to this one take {used} bytes, but an \
                     event's data can be at most {most} bytes long; remove fields, shorten arrays, \
                     or use a slice, which is cut if it does not fit",
                );
            }
        }
        let descriptors = descriptors(&leaves);
        let leading = match encoding {
            Encoding::TraceLogging => 2,
            Encoding::Manifest => 0,
        };
        if leading + descriptors.len() > MAX_DATA_DESCRIPTORS {
            bail!(
                span,
                "the event has {} data descriptors, and ETW accepts at most \
                 {MAX_DATA_DESCRIPTORS}; combine strings and arrays, or split the event",
                leading + descriptors.len(),
            );
        }
        let by_value = |at: usize| {
            let is_reference = matches!(fields[at].written, Type::Reference(_));
            let members = leaves.iter().filter(|leaf| leaf.field == at && leaf.path.len() > 1);
            if is_reference { 0 } else { members.map(Leaf::size_in_memory).sum() }
        };
        check_stack(fields, &leaves, &descriptors, by_value)?;
        let by_reference = (0..fields.len()).filter(|at| by_value(*at) > IN_REGISTERS).collect();
        Ok(Self { leaves, descriptors, room: most - used, by_reference })
    }
}

/// Checks that a write does not take too much of the stack. `by_value` returns the size of a field's
/// structure that is passed by value, or 0.
fn check_stack(
    fields: &[Field],
    leaves: &[Leaf],
    descriptors: &[DataDescriptor],
    by_value: impl Fn(usize) -> usize,
) -> syn::Result<()> {
    let mut sizes: Vec<(usize, usize)> = (0..fields.len()).map(|at| (at, by_value(at))).collect();
    for leaf in leaves {
        sizes[leaf.field].1 += match leaf.wire {
            Wire::Text(Text::Formatted) => FORMATTED,
            Wire::SocketAddr => SOCKET,
            _ => 0,
        };
    }
    for descriptor in descriptors {
        let DataDescriptor::Block(parts) = descriptor else {
            continue;
        };
        for part in parts {
            let (BlockPart::Value(at) | BlockPart::Length(at) | BlockPart::Nul(at)) = *part;
            let is_argument = matches!(part, BlockPart::Value(_)) && leaves[at].path.len() == 1;
            let least = if is_argument { ARGUMENT } else { 0 };
            sizes[leaves[at].field].1 += part.size(leaves).max(least);
        }
    }
    let all: usize = sizes.iter().map(|(_, size)| size).sum();
    if all <= MAX_STACK {
        return Ok(());
    }
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let named = |(at, size): &(usize, usize)| format!("{size} for `{}`", fields[*at].ident);
    let largest: Vec<String> = sizes.iter().take(4).map(named).collect();
    Err(error!(
        fields[sizes[0].0].ident.span(),
        "a write of this event takes {all} bytes of the kernel stack for its values, but at most \
         {MAX_STACK} are allowed; the largest parts are {}; take a structure by reference (`page: \
         &Page`), put an array in the event's own fields, write several `Arguments` as one, or \
         split the event",
        largest.join(", "),
    ))
}

/// Returns the fields, with structures replaced by their members.
///
/// # Errors
///
/// Returns an error if the type of a field is not declared.
pub fn leaves(fields: &[Field], encoding: Encoding, types: Types<'_>) -> syn::Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        put_leaves(&mut leaves, &mut Vec::new(), at, field, encoding, types)?;
    }
    for at in 0..leaves.len() {
        let counter = fields[leaves[at].field].form.counter.as_ref();
        if let Some(named) = counter.and_then(|counter| counter.field.as_ref()) {
            let is_named = |leaf: &Leaf| fields[leaf.field].ident == *named;
            leaves[at].counted_by = leaves[..at].iter().position(is_named);
            leaves[at].counter = None;
        }
    }
    Ok(leaves)
}

fn put_leaves(
    leaves: &mut Vec<Leaf>,
    path: &mut Vec<Ident>,
    at: usize,
    field: &Field,
    encoding: Encoding,
    types: Types<'_>,
) -> syn::Result<()> {
    if encoding == Encoding::TraceLogging {
        field.form.check_tracelogging()?;
    }
    path.push(field.ident.clone());
    let wire = match &field.kind {
        FieldType::Values(scalar, format, shape) => Some(
            field.form.sized.map_or_else(|| wire(*scalar, *format, *shape, encoding), Wire::Sized),
        ),
        FieldType::Structures(name, shape) => {
            let structure = types.structure(name).ok_or_else(|| crate::types::undeclared(name))?;
            let size = element_size(structure, types)?;
            Some(match shape {
                Shape::Fixed(count) => Wire::FixedStructures(size, *count),
                Shape::One | Shape::Counted => Wire::CountedStructures(size),
            })
        }
        FieldType::Named(name) => {
            if let Some(map) = types.map(name) {
                Some(Wire::Map(map.scalar))
            } else if let Some(structure) = types.structure(name) {
                // `event_metadata` checks `TraceLogging` events.
                if encoding == Encoding::Manifest && structure.fields.is_empty() {
                    bail!(
                        structure.ident.span(),
                        "the structure `{}` has no members, and a manifest has no such structure; \
                         add a member",
                        structure.ident,
                    );
                }
                for member in &structure.fields {
                    put_leaves(leaves, path, at, member, encoding, types)?;
                }
                None
            } else {
                return Err(crate::types::undeclared(name));
            }
        }
    };
    leaves.extend(wire.map(|wire| Leaf {
        path: path.clone(),
        field: at,
        wire,
        counter: field.form.counter.as_ref().map(|counter| counter.scalar),
        counted_by: None,
    }));
    path.pop();
    Ok(())
}

const fn wire(scalar: Scalar, format: Format, shape: Shape, encoding: Encoding) -> Wire {
    match shape {
        Shape::Fixed(count) => return Wire::Fixed(scalar, count),
        Shape::Counted => return Wire::Counted(scalar),
        Shape::One => {}
    }
    match (scalar.row().representation, encoding) {
        (Representation::Counted(text), _) => Wire::Text(text),
        (Representation::Terminated(text), _) => Wire::Terminated(text),
        (Representation::Sid, _) => Wire::Sid,
        (Representation::SocketAddr, _) => Wire::SocketAddr,
        (Representation::Octets16, Encoding::TraceLogging) => Wire::CountedIpv6,
        // In a manifest, the address is preceded by its length of 16 bytes.
        (Representation::Octets16, Encoding::Manifest)
        | (
            Representation::Memory(_)
            | Representation::Cast8
            | Representation::Cast64
            | Representation::Pointer
            | Representation::BigEndian16
            | Representation::Octets4,
            _,
        ) => Wire::Plain(scalar, format),
    }
}

fn descriptors(leaves: &[Leaf]) -> Vec<DataDescriptor> {
    let mut descriptors = Vec::new();
    let mut block = Vec::new();
    for (at, leaf) in leaves.iter().enumerate() {
        match leaf.wire {
            Wire::Plain(..) | Wire::Sized(_) | Wire::Map(_) => block.push(BlockPart::Value(at)),
            Wire::CountedIpv6 => block.extend([BlockPart::Length(at), BlockPart::Value(at)]),
            Wire::Fixed(..) | Wire::FixedStructures(..) | Wire::Sid => {
                close(&mut descriptors, &mut block);
                descriptors.push(DataDescriptor::InPlace(at));
            }
            Wire::Counted(_) | Wire::CountedStructures(_) | Wire::Text(_) | Wire::SocketAddr => {
                if leaf.counted_by.is_none() {
                    block.push(BlockPart::Length(at));
                }
                close(&mut descriptors, &mut block);
                descriptors.push(DataDescriptor::InPlace(at));
            }
            Wire::Terminated(_) => {
                close(&mut descriptors, &mut block);
                descriptors.push(DataDescriptor::InPlace(at));
                block.push(BlockPart::Nul(at));
            }
        }
    }
    close(&mut descriptors, &mut block);
    descriptors
}

fn close(descriptors: &mut Vec<DataDescriptor>, block: &mut Vec<BlockPart>) {
    if !block.is_empty() {
        descriptors.push(DataDescriptor::Block(std::mem::take(block)));
    }
}
