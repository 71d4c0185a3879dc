//! Names that Windows predefines for every provider (winmeta.xml).

/// Predefined levels: value, name in manifests, name for people.
pub const LEVELS: [(u8, &str, &str); 6] = [
    (0, "win:LogAlways", "Log Always"),
    (1, "win:Critical", "Critical"),
    (2, "win:Error", "Error"),
    (3, "win:Warning", "Warning"),
    (4, "win:Informational", "Information"),
    (5, "win:Verbose", "Verbose"),
];

/// Predefined opcodes: value, name in manifests, name for people.
pub const OPCODES: [(u8, &str, &str); 11] = [
    (0, "win:Info", "Info"),
    (1, "win:Start", "Start"),
    (2, "win:Stop", "Stop"),
    (3, "win:DC_Start", "DCStart"),
    (4, "win:DC_Stop", "DCStop"),
    (5, "win:Extension", "Extension"),
    (6, "win:Reply", "Reply"),
    (7, "win:Resume", "Resume"),
    (8, "win:Suspend", "Suspend"),
    (9, "win:Send", "Send"),
    (240, "win:Receive", "Receive"),
];

/// Predefined keywords: mask, name in manifests, name for people.
pub const KEYWORDS: [(u64, &str, &str); 8] = [
    (1 << 48, "win:ResponseTime", "Response Time"),
    (1 << 49, "win:WDIContext", "WDI Context"),
    (1 << 50, "win:WDIDiag", "WDI Diag"),
    (1 << 51, "win:SQM", "SQM"),
    (1 << 52, "win:AuditFailure", "Audit Failure"),
    (1 << 53, "win:AuditSuccess", "Audit Success"),
    (1 << 54, "win:CorrelationHint", "Correlation Hint"),
    (1 << 55, "win:EventlogClassic", "Classic"),
];

/// The name for people of a level.
pub fn level(value: u8) -> Option<&'static str> {
    LEVELS
        .iter()
        .find(|(v, ..)| *v == value)
        .map(|(.., name)| *name)
}

/// The name for people of an opcode.
pub fn opcode(value: u8) -> Option<&'static str> {
    OPCODES
        .iter()
        .find(|(v, ..)| *v == value)
        .map(|(.., name)| *name)
}
