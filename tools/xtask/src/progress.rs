//! Shows progress on standard error, like `cargo etw`.

pub use driver_build::progress::{step, step_with_output};
