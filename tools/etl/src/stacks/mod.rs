//! Output for viewers of profiles: call stacks with their number or their time.
//!
//! The stacks are those of profile samples or, if the selection names events or providers, of the
//! selected events. A sample without a stack has the sampled code as its only frame.

mod by_thread;
mod folded;
mod speedscope;

pub use by_thread::Stacks;
pub(crate) use by_thread::{interval_of, label, name as frame_name};
pub use folded::write_folded;
pub use speedscope::write_speedscope;
