//! The counts of written packets, and of those that cannot be written.

use std::fmt;

/// The counts of a pcapng file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The events with fragments or metadata of packets.
    pub events: u64,
    /// The packets in the file.
    pub packets: u64,
    /// The interfaces in the file.
    pub interfaces: u64,
    /// The events whose payload ends within a field.
    pub malformed: u64,
    /// The fragments without the first fragment of their packet.
    pub without_start: u64,
    /// The packets whose last fragment is missing, or came after too many other packets.
    pub incomplete: u64,
    /// The packets of more than 262,144 bytes, the most that Wireshark reads.
    pub too_large: u64,
    /// The packets of a medium whose form is not known.
    pub unknown_medium: u64,
    /// The keywords for media that these packets have.
    pub unknown_media: u64,
    /// The packets of interfaces beyond the first 4,096.
    pub without_interface: u64,
    /// The descriptions of a reception that no packet follows, or that have an unknown layout.
    pub unused_metadata: u64,
    /// The times before 1970 or after 2554, which were moved to the start or the end of this range.
    pub clamped: u64,
}

/// Formats the parts of the trace that the file does not have unchanged, one line each. Empty if there is
/// nothing.
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
            (self.clamped, "times are outside of the range of pcapng, and were moved into it"),
        ];
        let shown = parts.into_iter().filter(|(count, _)| *count > 0).enumerate();
        for (n, (count, what)) in shown {
            write!(f, "{}{count} {what}", if n == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
