//! Compares what the library writes, and what the readers of resources find, with third-party readers.

mod goldens;
mod library;
mod resources;
