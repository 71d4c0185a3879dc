//! The numbers of shown and omitted parts of a timeline.

use std::fmt;

/// The counts for a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of events.
    pub events: u64,
    /// The number of packets in the file.
    pub packets: u64,
    /// The number of events shown as instants.
    pub instants: u64,
    /// The number of activity slices, each made of two events.
    pub slices: u64,
    /// The number of activity slices without an end: the stop event is missing, or came after too
    /// many other start events.
    pub open_slices: u64,
    /// The number of stop events without a start event, shown as instants.
    pub unmatched_stops: u64,
    /// The number of flows from related activities.
    pub flows: u64,
    /// The number of events without a flow because their related activity has no earlier event.
    pub unknown_related: u64,
    /// The number of context switches and readied threads.
    pub scheduling: u64,
    /// The number of DPCs, ISRs and disk requests, shown as slices.
    pub intervals: u64,
    /// The number of file operations and their ends.
    pub file_operations: u64,
    /// The number of instruction pointer samples.
    pub samples: u64,
    /// The number of kernel events shown as instants because they lack their form's fields, or have
    /// surplus bytes.
    pub incomplete: u64,
    /// The number of events with parts that could not be decoded.
    pub problems: u64,
    /// The number of times outside the timeline's range, which were moved to its start or end.
    pub clamped: u64,
}

impl Summary {
    /// Returns the counts and their names as trace attributes.
    pub(super) const fn attributes(&self) -> [(&'static str, u64); 14] {
        [
            ("etl.events", self.events),
            ("etl.instants", self.instants),
            ("etl.slices", self.slices),
            ("etl.open_slices", self.open_slices),
            ("etl.unmatched_stops", self.unmatched_stops),
            ("etl.flows", self.flows),
            ("etl.unknown_related", self.unknown_related),
            ("etl.scheduling", self.scheduling),
            ("etl.intervals", self.intervals),
            ("etl.file_operations", self.file_operations),
            ("etl.samples", self.samples),
            ("etl.incomplete", self.incomplete),
            ("etl.problems", self.problems),
            ("etl.clamped", self.clamped),
        ]
    }
}

/// Formats the parts of the trace that the timeline cannot show unchanged, one per line. Empty if
/// there are none.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.open_slices, "activities have no end: no stop event follows"),
            (self.unmatched_stops, "stop events without a start event are shown as instants"),
            (
                self.unknown_related,
                "events name a related activity that has no earlier event, and have no flow",
            ),
            (
                self.incomplete,
                "kernel events do not have the fields of their form, and are shown as instants",
            ),
            (
                self.problems,
                "events could not be decoded completely; their annotation etw_problem says why",
            ),
            (
                self.clamped,
                "timestamps are outside the timeline and were moved to its start or end",
            ),
        ];
        let shown = parts.into_iter().filter(|(count, _)| *count > 0).enumerate();
        for (n, (count, what)) in shown {
            write!(f, "{}{count} {what}", if n == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
