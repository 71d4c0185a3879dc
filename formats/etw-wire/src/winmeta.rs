//! The names that every manifest can use without defining them (winmeta.xml, prefix `win:`).

/// The XML namespace of the prefix `win:`.
pub const NAMESPACE: &str = "http://manifests.microsoft.com/win/2004/08/windows/events";

/// A level, an opcode, a task or a keyword of winmeta.xml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard<T> {
    /// The value; for a keyword, its mask.
    pub value: T,
    /// The name in manifests, without the prefix `win:`.
    pub name: &'static str,
    /// The English text that decoders show.
    pub text: &'static str,
    /// The identifier in a Rust declaration.
    pub ident: &'static str,
}

/// A channel of winmeta.xml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardChannel {
    /// The value.
    pub value: u8,
    /// The name in manifests, without the prefix `win:`.
    pub name: &'static str,
    /// The channel's type, in a manifest's spelling (attribute `type`).
    pub kind: &'static str,
    /// The isolation, in a manifest's spelling (attribute `isolation`).
    pub isolation: Option<&'static str>,
}

/// The characters that the name of a manifest's provider or channel cannot contain, besides control
/// characters.
pub const FORBIDDEN_IN_NAMES: [char; 10] = ['>', '<', '&', '"', '|', '\\', ':', '\'', '?', '*'];

/// Returns whether the name of a manifest's provider or channel cannot contain a character.
#[must_use]
pub fn is_forbidden_in_names(character: char) -> bool {
    character.is_control() || FORBIDDEN_IN_NAMES.contains(&character)
}

/// The levels, in ascending order.
pub const LEVELS: &[Standard<u8>] = &[
    standard(0, "LogAlways", "Log Always", "LogAlways"),
    standard(1, "Critical", "Critical", "Critical"),
    standard(2, "Error", "Error", "Error"),
    standard(3, "Warning", "Warning", "Warning"),
    standard(4, "Informational", "Information", "Info"),
    standard(5, "Verbose", "Verbose", "Verbose"),
];

/// The opcodes, in ascending order.
pub const OPCODES: &[Standard<u8>] = &[
    standard(0, "Info", "Info", "Info"),
    standard(1, "Start", "Start", "Start"),
    standard(2, "Stop", "Stop", "Stop"),
    standard(3, "DC_Start", "DCStart", "DcStart"),
    standard(4, "DC_Stop", "DCStop", "DcStop"),
    standard(5, "Extension", "Extension", "Extension"),
    standard(6, "Reply", "Reply", "Reply"),
    standard(7, "Resume", "Resume", "Resume"),
    standard(8, "Suspend", "Suspend", "Suspend"),
    standard(9, "Send", "Send", "Send"),
    standard(240, "Receive", "Receive", "Receive"),
];

/// The only task.
pub const TASKS: &[Standard<u16>] = &[standard(0, "None", "None", "None")];

/// The keywords, in ascending order of their masks; the first mask is 0.
pub const KEYWORDS: &[Standard<u64>] = &[
    standard(0, "AnyKeyword", "AnyKeyword", "AnyKeyword"),
    standard(1 << 48, "ResponseTime", "Response Time", "ResponseTime"),
    standard(1 << 49, "WDIContext", "WDI Context", "WdiContext"),
    standard(1 << 50, "WDIDiag", "WDI Diag", "WdiDiag"),
    standard(1 << 51, "SQM", "SQM", "Sqm"),
    standard(1 << 52, "AuditFailure", "Audit Failure", "AuditFailure"),
    standard(1 << 53, "AuditSuccess", "Audit Success", "AuditSuccess"),
    standard(1 << 54, "CorrelationHint", "Correlation Hint", "CorrelationHint"),
    standard(1 << 55, "EventlogClassic", "Classic", "EventlogClassic"),
];

/// The keyword bits that winmeta.xml reserves (`win:ReservedKeyword56` to `win:ReservedKeyword63`);
/// providers' manifests assign them to their channels.
pub const RESERVED_KEYWORDS: u64 = 0xFF << 56;

/// The channels, in ascending order.
pub const CHANNELS: &[StandardChannel] = &[
    channel(0, "TraceClassic", "Debug", None),
    channel(8, "System", "Admin", Some("System")),
    channel(9, "Application", "Admin", Some("Application")),
    channel(10, "Security", "Admin", Some("System")),
    channel(11, "TraceLogging", "Debug", None),
    channel(12, "ProviderMetadata", "Debug", None),
];

const fn standard<T: Copy>(
    value: T,
    name: &'static str,
    text: &'static str,
    ident: &'static str,
) -> Standard<T> {
    Standard { value, name, text, ident }
}

const fn channel(
    value: u8,
    name: &'static str,
    kind: &'static str,
    isolation: Option<&'static str>,
) -> StandardChannel {
    StandardChannel { value, name, kind, isolation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, Keyword, Level, Opcode};

    // R-D2, R-D3, R-D4
    #[test]
    fn the_tables_agree_with_the_constants() {
        let level = |Level(value)| LEVELS.iter().find(|one| one.value == value).unwrap().name;
        assert_eq!(level(Level::LOG_ALWAYS), "LogAlways");
        assert_eq!(level(Level::INFO), "Informational");
        assert_eq!(level(Level::VERBOSE), "Verbose");
        let opcode = |Opcode(value)| OPCODES.iter().find(|one| one.value == value).unwrap().name;
        assert_eq!(opcode(Opcode::DC_START), "DC_Start");
        assert_eq!(opcode(Opcode::SEND), "Send");
        assert_eq!(opcode(Opcode::RECEIVE), "Receive");
        let keyword =
            |mask: Keyword| KEYWORDS.iter().find(|one| one.value == mask.bits()).unwrap().name;
        assert_eq!(keyword(Keyword::RESPONSE_TIME), "ResponseTime");
        assert_eq!(keyword(Keyword::SQM), "SQM");
        assert_eq!(keyword(Keyword::EVENTLOG_CLASSIC), "EventlogClassic");
        let channel = |Channel(value)| CHANNELS.iter().find(|one| one.value == value).unwrap().name;
        assert_eq!(channel(Channel::SECURITY), "Security");
        assert_eq!(channel(Channel::TRACELOGGING), "TraceLogging");
        assert_eq!(channel(Channel::PROVIDER_METADATA), "ProviderMetadata");
    }

    #[test]
    fn values_are_in_ascending_order() {
        assert!(LEVELS.is_sorted_by_key(|known| known.value));
        assert!(OPCODES.is_sorted_by_key(|known| known.value));
        assert!(KEYWORDS.is_sorted_by_key(|known| known.value));
        assert!(CHANNELS.is_sorted_by_key(|known| known.value));
    }
}
