//! Output for timelines: Perfetto's own format, for <https://ui.perfetto.dev>.
//!
//! A [`Writer`] takes events in the order of time and needs bounded memory. Each event appears once:
//!
//! - An event of a provider is an instant on the track of its thread.
//! - A start event and its stop event, paired as in [`spans`](crate::spans), are a slice on a track
//!   of the process that started it. The stop event's fields are in the dictionary `stop`. A slice
//!   whose stop event is missing stays open.
//! - An event with a related activity ends a flow from that activity: from an instant `flow to …` that
//!   the writer adds to the track of the activity's open slice or last event.
//! - Context switches and readied threads are packets of Perfetto's ETW schema, from which it shows
//!   scheduling, thread states and wakers. So are the operations on files.
//! - DPCs and ISRs are slices on tracks of their processors, and the requests of disks are slices on
//!   tracks of the disks: from the initial time in the event, or from the response time, to the time
//!   of the event.
//! - Samples of the program counter are profile samples with their call stacks. The call stacks of
//!   other events belong to the events.
//! - All other events of the kernel are instants.
//!
//! In addition, a counter shows each provider's events per second, in windows of 100 ms. Fields are
//! not shown as counters: nothing in an event says which of its numbers are levels of something.
//!
//! Fields are debug annotations with their types. The event's own properties are annotations as well:
//! `etw_level`, `etw_id`, `etw_keyword`, `etw_about` (the names of the keyword, opcode and task, and
//! the version and channel), `etw_message`, `etw_leftover`, `etw_problem`, and `etw_thread` where the
//! track is not the thread's. The category is the provider's name. The activity id is the correlation
//! id.
//!
//! Times are nanoseconds since the session's start, or since the first event if that is earlier. Their
//! clock is Perfetto's `BOOTTIME`, the clock in which it expects kernel events; a clock snapshot
//! relates it to UTC.

mod activities;
mod annotations;
mod core;
mod intern;
mod kernel;
mod lanes;
mod packets;
mod properties;
mod rates;
mod schema;
mod slices;
mod summary;
mod system;
mod tracks;
mod wire;
mod writer;

pub use self::summary::Summary;
pub use self::writer::Writer;
