//! How an event's fields become the pieces that a write hands over.
//!
//! Fields of a fixed size that follow one another, and the length of a text, lie in
//! one block and are one piece. What is longer, or as long as it comes, is a piece of
//! its own. ETW puts the pieces together without padding, so readers see no
//! difference, and fewer pieces cost less.

use etw_wire::limits::{
    EVENT_HEADER_SIZE, MAX_DATA_DESCRIPTORS, MAX_EVENT_SIZE, MAX_SID_SIZE, MAX_SOCKADDR_SIZE,
};
use proc_macro2::Span;
use syn::Ident;

use crate::{
    Encoding, Field, FieldType, Format, Representation, Scalar, Shape, Text, tracelogging::Types,
};

/// The most bytes of an event's content.
///
/// An event has 64 KiB at most, with its header of 80 bytes and its extended items, of which the traits (255 bytes), the related
/// activity (16) and the stack (192 addresses of 8) are not under the event's control.
/// A description of more than 256 bytes comes off this.
pub const MAX_CONTENT: usize = MAX_EVENT_SIZE - EVENT_HEADER_SIZE - 2_560;

/// A field, or a structure's field, at the place where it stands in the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The parameter, and the structures' fields to go through.
    pub path: Vec<Ident>,
    /// Which of the event's fields it is or belongs to, from 0.
    pub field: usize,
    /// How it travels.
    pub wire: Wire,
}

/// How a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// A value of a fixed size.
    Plain(Scalar, Format),
    /// A number that a map names.
    Map(Scalar),
    /// An array of so many values, without a count.
    Fixed(Scalar, u16),
    /// An array with a count.
    Counted(Scalar),
    /// Text or bytes, with a length in bytes before them.
    Text(Text),
    /// Text with a NUL after it.
    Terminated(Text),
    /// A security identifier, which says itself how long it is.
    Sid,
    /// An IPv6 address with a length before it.
    CountedIpv6,
    /// A socket address with a length before it.
    SocketAddr,
}

impl Wire {
    /// The same for all that are written alike: how a value is shown makes no
    /// difference, except for an address, which is told or not.
    #[must_use]
    pub const fn travels_as(self) -> Self {
        match self {
            Self::Plain(scalar, format) if !matches!(format, Format::Address) => {
                Self::Plain(scalar, Format::Default)
            }
            other => other,
        }
    }

    /// The most bytes that cannot be cut.
    fn size(self) -> usize {
        match self {
            Self::Plain(scalar, _) | Self::Map(scalar) => scalar.size().unwrap_or(0),
            Self::Fixed(scalar, count) => scalar.size().unwrap_or(0) * usize::from(count),
            Self::Counted(_) | Self::Text(_) => 2,
            Self::Terminated(text) => text.unit(),
            Self::Sid => MAX_SID_SIZE,
            Self::CountedIpv6 => 18,
            Self::SocketAddr => 2 + MAX_SOCKADDR_SIZE,
        }
    }
}

/// A part of an event's content, by the number of its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wired {
    /// The value itself.
    Value(usize),
    /// A length or count before what it counts.
    Length(usize),
    /// The NUL after a text.
    Nul(usize),
}

/// A piece of an event's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Several parts of fixed sizes in one block.
    Block(Vec<Wired>),
    /// What lies elsewhere, by the number of its leaf.
    Apart(usize),
}

/// How an event's content is handed over.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The fields, structures taken apart.
    pub leaves: Vec<Leaf>,
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// The bytes that are left for what can be cut.
    pub room: usize,
}

impl Layout {
    /// The layout of an event with these fields, whose description has `described`
    /// bytes.
    ///
    /// # Errors
    ///
    /// When the event could never be written: too many pieces, or too many bytes. The
    /// error is at the field that is too much, or else at `span`.
    pub fn of(
        fields: &[Field],
        encoding: Encoding,
        types: Types<'_>,
        described: usize,
        span: Span,
    ) -> syn::Result<Self> {
        let leaves = leaves(fields, encoding, types)?;
        let most = MAX_CONTENT.saturating_sub(described.saturating_sub(256));
        let mut used = 0;
        for leaf in &leaves {
            used += leaf.wire.size();
            if used > most {
                let ident = &fields[leaf.field].ident;
                return Err(syn::Error::new(
                    ident.span(),
                    format!(
                        "the event never fits: it has {used} bytes up to this field, of {most} \
                         that an event can have; drop fields, shorten arrays, or pass a slice, \
                         which is cut where it must"
                    ),
                ));
            }
        }
        let pieces = pieces(&leaves);
        let leading = match encoding {
            Encoding::TraceLogging => 2,
            Encoding::Manifest => 0,
        };
        if leading + pieces.len() > MAX_DATA_DESCRIPTORS {
            return Err(syn::Error::new(
                span,
                format!(
                    "the event has {} data descriptors, and ETW takes {MAX_DATA_DESCRIPTORS}; put texts \
                     and arrays together, or split the event",
                    leading + pieces.len()
                ),
            ));
        }
        Ok(Self {
            leaves,
            pieces,
            room: most - used,
        })
    }
}

/// The fields, structures taken apart.
///
/// # Errors
///
/// When a field's type was not declared.
pub fn leaves(fields: &[Field], encoding: Encoding, types: Types<'_>) -> syn::Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        put_leaves(&mut leaves, &mut Vec::new(), at, field, encoding, types)?;
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
    path.push(field.ident.clone());
    let wire = match &field.kind {
        FieldType::Values(scalar, format, shape) => Some(wire(*scalar, *format, *shape, encoding)),
        FieldType::Named(name) => {
            if let Some(map) = types.map(name) {
                Some(Wire::Map(map.scalar))
            } else if let Some(structure) = types.structure(name) {
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
        // A manifest says that the address has 16 bytes.
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

fn pieces(leaves: &[Leaf]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut block = Vec::new();
    for (at, leaf) in leaves.iter().enumerate() {
        match leaf.wire {
            Wire::Plain(..) | Wire::Map(_) => block.push(Wired::Value(at)),
            Wire::CountedIpv6 => block.extend([Wired::Length(at), Wired::Value(at)]),
            Wire::Fixed(..) | Wire::Sid => {
                close(&mut pieces, &mut block);
                pieces.push(Piece::Apart(at));
            }
            Wire::Counted(_) | Wire::Text(_) | Wire::SocketAddr => {
                block.push(Wired::Length(at));
                close(&mut pieces, &mut block);
                pieces.push(Piece::Apart(at));
            }
            Wire::Terminated(_) => {
                close(&mut pieces, &mut block);
                pieces.push(Piece::Apart(at));
                block.push(Wired::Nul(at));
            }
        }
    }
    close(&mut pieces, &mut block);
    pieces
}

fn close(pieces: &mut Vec<Piece>, block: &mut Vec<Wired>) {
    if !block.is_empty() {
        pieces.push(Piece::Block(std::mem::take(block)));
    }
}
