//! Counts of the records and events of a trace.

use std::collections::BTreeMap;

use crate::decode::{Decoded, Problem};
use crate::read::{Damages, Other};
use crate::stacks::StackCounts;

/// The number and total size of the records of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCount {
    /// The number of records.
    pub records: u64,
    /// The total size in bytes, without padding.
    pub bytes: u64,
}

/// Counts of records by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// The counts by kind name. Kinds beyond [`MAX_KINDS`](Self::MAX_KINDS) are counted together.
    kinds: BTreeMap<String, RecordCount>,
}

impl RecordCounts {
    /// The maximum number of separately counted kinds.
    #[doc(hidden)]
    pub const MAX_KINDS: usize = 1000;

    /// Counts a record.
    pub fn add(&mut self, record: &Other) {
        let one = RecordCount { records: 1, bytes: record.size.into() };
        self.add_all(record.kind.to_string(), one);
    }

    /// Adds other counts.
    pub(crate) fn absorb(&mut self, others: Self) {
        for (kind, other) in others.kinds {
            self.add_all(kind, other);
        }
    }

    fn add_all(&mut self, mut kind: String, other: RecordCount) {
        if self.kinds.len() >= Self::MAX_KINDS && !self.kinds.contains_key(&kind) {
            "other kinds".clone_into(&mut kind);
        }
        let count = self.kinds.entry(kind).or_default();
        count.records += other.records;
        count.bytes += other.bytes;
    }

    /// Returns the counts by kind name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, RecordCount)> {
        let kinds = self.kinds.iter();
        kinds.map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Returns true if no records were counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// The numbers of records that a pipeline decoded, selected and skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of decoded records.
    pub decoded: u64,
    /// The number of decoded records that were selected.
    pub selected: u64,
    /// The number of selected records that could not be decoded completely, not including system
    /// records.
    pub with_problems: u64,
    /// The number of selected system records with an unknown layout.
    pub of_system: u64,
    /// The number of selected WPP messages without a loaded format.
    pub without_format: u64,
    /// The records that were not decoded.
    pub skipped: RecordCounts,
    /// The number of records that followed a record with a later time; see [`Records`](crate::Records).
    pub late: u64,
    /// The damaged parts of the file.
    pub damages: Damages,
    /// The counts of stack records.
    pub stacks: StackCounts,
    /// The number of entries for names and stacks that were dropped because the tables were full.
    pub dropped: u64,
}

impl Summary {
    /// Counts a selected event.
    pub(crate) fn count(&mut self, decoded: &Decoded) {
        self.selected += 1;
        let of_system = decoded.problems.iter().any(Problem::is_of_system);
        self.of_system += u64::from(of_system);
        self.with_problems += u64::from(!of_system && !decoded.problems.is_empty());
        self.without_format += u64::from(decoded.problems.contains(&Problem::NoFormat));
    }

    /// Adds the counts of other events and records, except for the values that exist only for a
    /// whole trace.
    #[doc(hidden)]
    pub fn absorb(&mut self, other: Self) {
        self.decoded += other.decoded;
        self.selected += other.selected;
        self.with_problems += other.with_problems;
        self.of_system += other.of_system;
        self.without_format += other.without_format;
        self.skipped.absorb(other.skipped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::OtherKind;

    #[test]
    fn kinds_of_records_beyond_the_limit_are_counted_together() {
        let mut counts = RecordCounts::default();
        assert!(counts.is_empty());
        let mut add = |hook: usize| {
            counts.add(&Other {
                kind: OtherKind::System { hook: hook.try_into().unwrap() },
                offset: 0,
                size: 40,
                buffer: 1,
                processor: 0,
                timestamp: None,
            });
        };
        (0..RecordCounts::MAX_KINDS).for_each(&mut add);
        // Kinds that are already counted stay separate.
        add(1);
        add(RecordCounts::MAX_KINDS);
        add(RecordCounts::MAX_KINDS + 1);
        assert!(!counts.is_empty());
        assert_eq!(counts.iter().count(), RecordCounts::MAX_KINDS + 1);
        let of = |name: &str| {
            let (_, count) = counts.iter().find(|(kind, _)| *kind == name).unwrap();
            (count.records, count.bytes)
        };
        assert_eq!(of("system 0x0000"), (1, 40));
        assert_eq!(of("system 0x0001"), (2, 80));
        assert_eq!(of("other kinds"), (2, 80));
    }
}
