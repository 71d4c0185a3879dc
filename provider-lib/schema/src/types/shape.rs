//! The number of values of a field.

/// The number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// One value.
    One,
    /// A fixed number of values.
    Fixed(u16),
    /// A number of values that differs between events.
    Counted,
}
