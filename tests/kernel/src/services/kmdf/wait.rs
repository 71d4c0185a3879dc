//! Waits. A wait keeps its processor: what a driver waits for can come from work that is
//! queued, from timers that come due meanwhile, and from other threads, where there are any.

use super::{state::framework::Context, timer, work};

/// After so many steps without what it waits for, a wait is taken for endless: a
/// periodic timer would keep it going for ever.
const PATIENCE: u32 = 10_000;

/// Waits until `ready`, or until the counter reads `deadline`. Returns whether it
/// was ready; without a deadline, `false` means that nothing is left in this
/// kernel that could make it so.
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
