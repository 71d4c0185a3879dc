//! An event as a line of text, and as an object in JSON.

mod json;
mod line;

pub use json::Members;
#[doc(hidden)]
pub use line::Cells;
pub use line::line;
