//! Tests the parser of declarations, the layout of events and their errors.

mod autologger;
mod encoding;
mod field_types;
mod forms;
mod items;
mod refused;
