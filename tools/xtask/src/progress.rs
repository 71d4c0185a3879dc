//! Shows progress on standard error, as `cargo etw` does.

pub use driver_build::progress::{step, step_with_output};
