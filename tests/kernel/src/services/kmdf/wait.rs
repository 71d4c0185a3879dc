//! Waits. A waiting thread keeps its processor. Queued work, timers that come due, and other
//! threads can end a wait.

use super::{state::framework::Context, timer, work};

/// The number of steps after which a wait counts as endless. A periodic timer could otherwise
/// keep it running forever.
const PATIENCE: u32 = 10_000;

/// Waits until `ready` returns `true`, or until the counter reads `deadline`. Returns the last
/// result of `ready`. Without a deadline, `false` means that this kernel has no work left that
/// could change the result.
pub fn wait_until(
    context: &Context,
    deadline: Option<i64>,
    mut ready: impl FnMut(&Context) -> bool,
) -> bool {
    let mut looks = 0;
    for _ in 0..PATIENCE {
        if ready(context) {
            return true;
        }
        if work::run_one(context) {
            continue;
        }
        let due = timer::next_due(context);
        let due = due.filter(|due| deadline.is_none_or(|deadline| *due <= deadline));
        if context.has_company() && context.give_way(looks) {
            looks += 1;
        } else if let Some(due) = due {
            timer::run_timers(context, due);
        } else {
            break;
        }
    }
    if let Some(deadline) = deadline {
        context.clock().move_to(deadline);
    }
    ready(context)
}
