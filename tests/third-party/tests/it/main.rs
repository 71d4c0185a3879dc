//! Compares what the library writes, and what the readers of resources find, with third-party readers.

#![expect(clippy::significant_drop_tightening, reason = "a test's turn lasts until its end")]

mod goldens;
mod library;
mod resources;
