//! Output for timelines: Perfetto's own format, for <https://ui.perfetto.dev>.
//!
//! A [`Writer`] takes events in time order and uses a limited amount of memory. Each event appears
//! once:
//!
//! - A provider's event is an instant on the track of its thread.
//! - A start event and its stop event, paired as in [`spans`](etl_file::internals::spans), are a slice on a track
//!   of the process that wrote the start event. The dictionary `stop` contains the stop event's
//!   fields. A slice without a stop event stays open.
//! - An event with a related activity ends a flow from that activity: the flow starts at an instant
//!   `flow to …`, which the writer adds to the track of the activity's open slice or last event.
//! - Context switches and readied threads are packets of Perfetto's ETW schema; Perfetto derives
//!   scheduling, thread states and wakers from them. File operations are such packets, too.
//! - DPCs and ISRs are slices on their processors' tracks, and disk requests are slices on the
//!   disks' tracks. A slice ends at the event's time; its start is derived from the initial time or
//!   response time in the event.
//! - Instruction pointer samples are profile samples with call stacks. The call stacks of other
//!   events are attached to the events.
//! - All other kernel events are instants.
//!
//! In addition, a counter shows each provider's events per second, in windows of 100 ms. Fields are
//! not shown as counters, because an event does not state which of its numbers are levels.
//!
//! Fields are typed debug annotations. The event's properties are annotations as well: `etw_level`,
//! `etw_id`, `etw_keyword`, `etw_about` (the names of the keyword, opcode and task, and the version
//! and channel), `etw_message`, `etw_leftover`, `etw_problem`, and `etw_thread` if the track is not
//! the thread's. The category is the provider's name, and the correlation id is the activity id.
//!
//! Times are nanoseconds since the session's start, or since the first event if it is earlier. The
//! clock is Perfetto's `BOOTTIME`, which it expects for kernel events; a clock snapshot relates it
//! to UTC.

mod activities;
mod annotations;
mod core;
mod intern;
pub(crate) mod kernel;
mod lanes;
mod packets;
mod properties;
mod rates;
mod schema;
mod slices;
mod summary;
mod system;
mod tracks;
pub(crate) mod wire;
mod writer;

pub use self::summary::Summary;
pub use self::writer::Writer;
