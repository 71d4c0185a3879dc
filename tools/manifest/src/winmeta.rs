//! What every provider can use without defining it (`winmeta.xml`).

use crate::model::{
    Channel, Keyword, Level, Manifest, Opcode, QName, Task, Text, TextRef, WINMETA,
};

/// The levels: name, number, text.
pub const STANDARD_LEVELS: &[(&str, u8, &str)] = &[
    ("LogAlways", 0, "Log Always"),
    ("Critical", 1, "Critical"),
    ("Error", 2, "Error"),
    ("Warning", 3, "Warning"),
    ("Informational", 4, "Information"),
    ("Verbose", 5, "Verbose"),
];

/// The opcodes: name, number, text.
pub const STANDARD_OPCODES: &[(&str, u8, &str)] = &[
    ("Info", 0, "Info"),
    ("Start", 1, "Start"),
    ("Stop", 2, "Stop"),
    ("DC_Start", 3, "DCStart"),
    ("DC_Stop", 4, "DCStop"),
    ("Extension", 5, "Extension"),
    ("Reply", 6, "Reply"),
    ("Resume", 7, "Resume"),
    ("Suspend", 8, "Suspend"),
    ("Send", 9, "Send"),
    ("Receive", 240, "Receive"),
];

/// The keywords: name, mask, text.
const KEYWORDS: &[(&str, u64, &str)] = &[
    ("AnyKeyword", 0, "AnyKeyword"),
    ("ResponseTime", 1 << 48, "Response Time"),
    ("WDIDiag", 1 << 50, "WDI Diag"),
    ("SQM", 1 << 51, "SQM"),
    ("AuditFailure", 1 << 52, "Audit Failure"),
    ("AuditSuccess", 1 << 53, "Audit Success"),
    ("CorrelationHint", 1 << 54, "Correlation Hint"),
    ("EventlogClassic", 1 << 55, "Classic"),
];

/// The channels: name, number, kind, isolation.
const CHANNELS: &[(&str, u8, &str, &str)] = &[
    ("TraceClassic", 0, "Debug", ""),
    ("System", 8, "Admin", "System"),
    ("Application", 9, "Admin", "Application"),
    ("Security", 10, "Admin", "System"),
    ("TraceLogging", 11, "Debug", ""),
    ("ProviderMetadata", 12, "Debug", ""),
];

/// A text of winmeta.xml, put among the manifest's if it is not there yet.
fn import(manifest: &mut Manifest, id: &str, value: &str) -> TextRef {
    let known = manifest
        .texts
        .iter()
        .position(|text| text.standard && text.id == id);
    known.unwrap_or_else(|| {
        manifest.texts.push(Text {
            id: id.to_owned(),
            value: value.to_owned(),
            standard: true,
            ..Text::default()
        });
        manifest.texts.len() - 1
    })
}

fn written(local: &str) -> QName {
    QName {
        written: format!("win:{local}"),
        namespace: WINMETA.to_owned(),
    }
}

/// A level by its name.
pub fn level(manifest: &mut Manifest, local: &str) -> Option<Level> {
    let (name, value, text) = STANDARD_LEVELS.iter().find(|known| known.0 == local)?;
    Some(Level {
        name: written(name),
        value: *value,
        message: Some(import(manifest, &format!("level.{name}"), text)),
        standard: true,
        ..Level::default()
    })
}

/// A level by its number.
pub fn standard_level(manifest: &mut Manifest, value: u8) -> Option<Level> {
    let (name, ..) = STANDARD_LEVELS.iter().find(|known| known.1 == value)?;
    level(manifest, name)
}

/// An opcode by its number.
pub fn standard_opcode(manifest: &mut Manifest, value: u8) -> Option<Opcode> {
    let (name, ..) = STANDARD_OPCODES.iter().find(|known| known.1 == value)?;
    opcode(manifest, name)
}

/// An opcode by its name.
pub fn opcode(manifest: &mut Manifest, local: &str) -> Option<Opcode> {
    let (name, value, text) = STANDARD_OPCODES.iter().find(|known| known.0 == local)?;
    Some(Opcode {
        name: written(name),
        value: *value,
        message: Some(import(manifest, &format!("opcode.{text}"), text)),
        standard: true,
        ..Opcode::default()
    })
}

/// A task by its name.
pub fn task(manifest: &mut Manifest, local: &str) -> Option<Task> {
    (local == "None").then(|| Task {
        name: written("None"),
        message: Some(import(manifest, "task.None", "None")),
        standard: true,
        ..Task::default()
    })
}

/// A keyword by its name.
pub fn keyword(manifest: &mut Manifest, local: &str) -> Option<Keyword> {
    let (name, mask, text) = KEYWORDS.iter().find(|known| known.0 == local)?;
    let id = format!("keyword.{}", text.replace(' ', ""));
    Some(Keyword {
        name: written(name),
        mask: *mask,
        message: Some(import(manifest, &id, text)),
        standard: true,
        ..Keyword::default()
    })
}

/// Returns whether an imported channel is one of winmeta.xml's.
pub fn is_channel(channel: &Channel) -> bool {
    let id = channel.id.as_deref().unwrap_or(&channel.name);
    CHANNELS
        .iter()
        .any(|known| known.0 == id || known.0 == channel.name)
}

/// The number, kind and isolation of a channel, and its text.
pub fn channel(manifest: &mut Manifest, name: &str) -> Option<Channel> {
    let (name, value, kind, isolation) = CHANNELS.iter().find(|known| known.0 == name)?;
    Some(Channel {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        value: *value,
        isolation: (!isolation.is_empty()).then(|| (*isolation).to_owned()),
        message: Some(import(manifest, &format!("channel.{name}"), name)),
        imported: true,
        ..Channel::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_imported_once() {
        let mut manifest = Manifest::default();
        let first = level(&mut manifest, "Error").unwrap();
        let second = level(&mut manifest, "Error").unwrap();
        assert_eq!(first.message, second.message);
        assert_eq!(manifest.texts.len(), 1);
        assert!(level(&mut manifest, "ReservedLevel6").is_none());
        assert!(opcode(&mut manifest, "DC_Start").is_some());
        assert!(task(&mut manifest, "Some").is_none());
        assert_eq!(
            keyword(&mut manifest, "SQM").unwrap().mask,
            0x8_0000_0000_0000
        );
        assert_eq!(channel(&mut manifest, "Security").unwrap().value, 10);
    }
}
