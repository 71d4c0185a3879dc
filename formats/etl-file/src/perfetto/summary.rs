//! The counts of shown and omitted parts of a timeline.

use std::fmt;

/// The counts of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The events.
    pub events: u64,
    /// The packets of the file.
    pub packets: u64,
    /// The events that are instants.
    pub instants: u64,
    /// The slices of activities: pairs of events.
    pub slices: u64,
    /// The slices of activities without an end: start events whose stop event is missing, or came
    /// after too many other start events.
    pub open_slices: u64,
    /// The stop events without a start event. They are instants.
    pub unmatched_stops: u64,
    /// The flows from related activities.
    pub flows: u64,
    /// The events whose related activity has no earlier event. They have no flow.
    pub unknown_related: u64,
    /// The context switches and readied threads.
    pub scheduling: u64,
    /// The DPCs, ISRs and requests of disks that are slices.
    pub intervals: u64,
    /// The operations on files, and their ends.
    pub file_operations: u64,
    /// The samples of the program counter.
    pub samples: u64,
    /// The kernel events with a form of their own that lack its fields, or have bytes without a
    /// field. They are instants.
    pub incomplete: u64,
    /// The events with parts that could not be decoded.
    pub problems: u64,
    /// The times outside of the range of the timeline, which were moved to its start or end.
    pub clamped: u64,
}

impl Summary {
    /// Returns the counts with the names that they have among the trace's attributes.
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

/// Formats the parts of the trace that the timeline cannot show unchanged, one line each. Empty if
/// there is nothing.
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
            (self.clamped, "times are outside of the timeline, and were moved to its start or end"),
        ];
        let mut first = true;
        for (count, what) in parts {
            if count > 0 {
                let separator = if first { "" } else { "\n" };
                write!(f, "{separator}{count} {what}")?;
                first = false;
            }
        }
        Ok(())
    }
}
