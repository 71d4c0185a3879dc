//! Waits. A waiting thread stays on its processor. Queued work, timers that come due, and other
//! threads can end a wait.

use crate::{execution::coroutine, services::kmdf::state::framework::Context};

/// Waits until `ready` returns `true` or the counter reads `deadline`. Returns the last result of
/// `ready`. Without a deadline, `false` means that this kernel has no work left that could change
/// the result.
pub fn wait_until(
    context: &Context,
    deadline: Option<i64>,
    mut ready: impl FnMut(&Context) -> bool,
) -> bool {
    coroutine::wait_until(context, deadline, || ready(context))
}
