//! Waits. A wait keeps its processor: what a driver waits for can come from work that is
//! queued, from timers that come due meanwhile, and from other threads, where there are any.

use super::{timer, work};
use crate::thread::Thread;

/// After so many steps without what it waits for, a wait is taken for endless: a
/// periodic timer would keep it going for ever.
const PATIENCE: u32 = 10_000;

/// Waits until `ready`, or until the counter reads `deadline`. Returns whether it
/// was ready; without a deadline, `false` means that nothing is left on this
/// machine that could make it so.
pub fn wait_until(
    thread: &Thread,
    deadline: Option<i64>,
    mut ready: impl FnMut(&Thread) -> bool,
) -> bool {
    let mut looks = 0;
    for _ in 0..PATIENCE {
        if ready(thread) {
            return true;
        }
        if work::run_one(thread) {
            continue;
        }
        let due = timer::next_due(thread);
        let due = due.filter(|due| deadline.is_none_or(|deadline| *due <= deadline));
        if thread.has_company() && thread.give_way(looks) {
            looks += 1;
        } else if let Some(due) = due {
            timer::run_timers(thread, due);
        } else {
            break;
        }
    }
    if let Some(deadline) = deadline {
        thread.shared().clock.move_to(deadline);
    }
    ready(thread)
}
