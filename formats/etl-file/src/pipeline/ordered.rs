//! Work on several threads, with results in order.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The number of items in memory for each thread: items in progress, and items that wait before or
/// after the work.
const AHEAD: usize = 3;

/// A result, and the way back to the thread that drops it.
type Returned<U> = (U, Sender<U>);

/// Passes the items of `feed` through `work` on several threads, and passes the results to `take`
/// on the caller's thread, in the order of the items.
///
/// Each thread has its own state, and drops its results when `take` has finished with them: freeing
/// what another thread allocated makes both threads contend for the allocator and for cache lines.
/// With one thread, everything runs on the caller's thread.
///
/// `feed` calls its argument with each item, until the argument returns false.
///
/// # Errors
/// Fails with the error of `take` or, if there is none, of `feed`.
pub(super) fn ordered<T: Send, S, U: Send, E: Send>(
    threads: NonZeroUsize,
    feed: impl FnOnce(&mut dyn FnMut(T) -> bool) -> Result<(), E> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> U + Sync,
    mut take: impl FnMut(&mut U) -> Result<(), E>,
) -> Result<(), E> {
    if threads.get() == 1 {
        let mut state = state();
        let mut taken = Ok(());
        let end = feed(&mut |item| {
            if taken.is_ok() {
                taken = take(&mut work(&mut state, item));
            }
            taken.is_ok()
        });
        return taken.and(end);
    }
    let limit = threads.get().saturating_mul(AHEAD);
    let (items, waiting) = sync_channel::<(T, SyncSender<Returned<U>>)>(limit);
    // Receivers of the results, in the order of the items.
    let (places, results) = sync_channel::<Receiver<Returned<U>>>(limit);
    // Only the threads own the receiver, so that feeding ends when they end.
    let waiting = Arc::new(Mutex::new(waiting));
    let (state, work) = (&state, &work);
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let waiting = Arc::clone(&waiting);
            scope.spawn(move || {
                let mut state = state();
                let (back, finished) = channel();
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((item, place)) = next else {
                        break;
                    };
                    drop(finished.try_recv());
                    // After an error, nobody waits for the result.
                    let _unwanted = place.send((work(&mut state, item), back.clone()));
                }
            });
        }
        drop(waiting);
        let feeding = scope.spawn(move || {
            feed(&mut |item| {
                let (place, result) = sync_channel(1);
                places.send(result).is_ok() && items.send((item, place)).is_ok()
            })
        });
        let mut results_of_work = results.iter().map_while(|result| result.recv().ok());
        let taken = results_of_work.try_for_each(|(mut result, back)| {
            let taken = take(&mut result);
            // Without more items, the thread has ended.
            let _dropped = back.send(result);
            taken
        });
        // Feeding ends because the receiver of its next result is gone.
        drop(results);
        match feeding.join() {
            Ok(end) => taken.and(end),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn threads(number: usize) -> NonZeroUsize {
        NonZeroUsize::new(number).unwrap()
    }

    /// Feeds the numbers below 500, doubles them, and takes results up to `last`.
    fn doubled(number: usize, last: usize) -> (Vec<usize>, Result<(), &'static str>) {
        let mut taken = Vec::new();
        let result = ordered(
            threads(number),
            |push| {
                let fed = (0..500).all(&mut *push);
                // Nobody takes an item after an error.
                let fed = push(500) && fed;
                if fed { Err("the end of the items") } else { Ok(()) }
            },
            || (),
            |(), item: usize| {
                // The first of every three items takes longest.
                thread::sleep(std::time::Duration::from_micros(if item.is_multiple_of(3) {
                    50
                } else {
                    0
                }));
                2 * item
            },
            |result| {
                taken.push(*result);
                if *result == last { Err("enough") } else { Ok(()) }
            },
        );
        (taken, result)
    }

    #[test]
    fn results_keep_the_order_of_items_on_any_number_of_threads() {
        for number in [1, 2, 3, 16] {
            let (taken, result) = doubled(number, usize::MAX);
            assert!(taken.iter().copied().eq((0..=1000).step_by(2)), "{number}: {taken:?}");
            assert_eq!(result, Err("the end of the items"));
            let (taken, result) = doubled(number, 100);
            assert!(taken.iter().copied().eq((0..=100).step_by(2)), "{number}: {taken:?}");
            assert_eq!(result, Err("enough"));
        }
    }

    #[test]
    fn a_bounded_number_of_items_is_in_memory() {
        for number in [1, 2, 8] {
            let (fed, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut taken = 0;
            let result: Result<(), ()> = ordered(
                threads(number),
                |push| {
                    let _whole = (0..300).all(|item| {
                        fed.fetch_add(1, Ordering::SeqCst);
                        push(item)
                    });
                    Ok(())
                },
                || (),
                |(), item: usize| item,
                |_| {
                    thread::sleep(std::time::Duration::from_micros(100));
                    most.fetch_max(fed.load(Ordering::SeqCst) - taken, Ordering::SeqCst);
                    taken += 1;
                    Ok(())
                },
            );
            assert_eq!((result, taken), (Ok(()), 300));
            // One more item is waiting to be queued, and one is being taken.
            let limit = if number == 1 { 1 } else { number * AHEAD + 2 };
            let most = most.into_inner();
            assert!(most <= limit, "{number}: {most} of {limit}");
        }
    }
}
