//! The counts of packets that were written, and of packets that cannot be written.

use std::fmt;

/// The counts of a pcapng file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of events with fragments or metadata of packets.
    pub events: u64,
    /// The number of packets in the file.
    pub packets: u64,
    /// The number of interfaces in the file.
    pub interfaces: u64,
    /// The number of events whose payload ends within a field.
    pub malformed: u64,
    /// The number of fragments without the first fragment of their packet.
    pub without_start: u64,
    /// The number of packets whose last fragment is missing, or came after too many other packets.
    pub incomplete: u64,
    /// The number of packets that are longer than 262,144 bytes, Wireshark's limit.
    pub too_large: u64,
    /// The number of packets of a medium whose form is unknown.
    pub unknown_medium: u64,
    /// The media keywords of these packets.
    pub unknown_media: u64,
    /// The number of packets of interfaces beyond the first 4,096.
    pub without_interface: u64,
    /// The number of reception descriptions that no packet follows, or that have an unknown layout.
    pub unused_metadata: u64,
    /// The number of times before 1970 or after 2554, which were moved to the start or the end of
    /// this range.
    pub clamped: u64,
}

/// Formats the parts of the trace that are omitted or changed in the file, one per line. Empty if
/// there are none.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let medium = format!(
            "packets of an unknown medium are omitted (keywords {:#x})",
            self.unknown_media
        );
        let parts = [
            (self.malformed, "packet events end within a field, and are omitted"),
            (self.without_start, "fragments have no first fragment, and are omitted"),
            (self.incomplete, "packets have no last fragment, and are omitted"),
            (self.too_large, "packets are longer than 262144 bytes, and are omitted"),
            (self.unknown_medium, medium.as_str()),
            (self.without_interface, "packets belong to further interfaces, and are omitted"),
            (self.unused_metadata, "descriptions of a reception belong to no packet"),
            (self.clamped, "timestamps are outside the range of pcapng and were moved into it"),
        ];
        let shown = parts.into_iter().filter(|(count, _)| *count > 0).enumerate();
        for (n, (count, what)) in shown {
            write!(f, "{}{count} {what}", if n == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
