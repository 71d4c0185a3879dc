//! Tests the parser of declarations, the layout of events and their errors.

mod accepted;
mod encoding;
mod field_types;
mod items;
mod refused;
