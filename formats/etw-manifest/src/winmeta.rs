//! The definitions of winmeta.xml, in the model's types.

use etw_wire::winmeta::{CHANNELS, KEYWORDS, LEVELS, NAMESPACE, OPCODES, TASKS};

use crate::model::{Channel, Keyword, Level, Manifest, Opcode, QName, Task, Text, TextRef};

/// Returns a string of winmeta.xml, adding it to the manifest's strings if necessary.
fn import(manifest: &mut Manifest, id: &str, value: &str) -> TextRef {
    let known = manifest.texts.iter().position(|text| text.standard && text.id == id);
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
    QName { written: format!("win:{local}"), namespace: NAMESPACE.to_owned() }
}

/// Returns a level by its name.
pub fn level(manifest: &mut Manifest, local: &str) -> Option<Level> {
    let known = LEVELS.iter().find(|known| known.name == local)?;
    Some(Level {
        name: written(known.name),
        value: known.value,
        message: Some(import(manifest, &format!("level.{}", known.name), known.text)),
        standard: true,
        ..Level::default()
    })
}

/// Returns winmeta.xml's level with this value, and adds its string to the manifest.
pub fn standard_level(manifest: &mut Manifest, value: u8) -> Option<Level> {
    let known = LEVELS.iter().find(|known| known.value == value)?;
    level(manifest, known.name)
}

/// Returns winmeta.xml's opcode with this value, and adds its string to the manifest.
pub fn standard_opcode(manifest: &mut Manifest, value: u8) -> Option<Opcode> {
    let known = OPCODES.iter().find(|known| known.value == value)?;
    opcode(manifest, known.name)
}

/// Returns winmeta.xml's channel with this value, in the form in which providers import it, and
/// adds its string to the manifest.
pub fn standard_channel(manifest: &mut Manifest, value: u8) -> Option<Channel> {
    let known = CHANNELS.iter().find(|known| known.value == value)?;
    Some(Channel { declared: true, ..channel(manifest, known.name)? })
}

/// Returns an opcode by its name.
pub fn opcode(manifest: &mut Manifest, local: &str) -> Option<Opcode> {
    let known = OPCODES.iter().find(|known| known.name == local)?;
    Some(Opcode {
        name: written(known.name),
        value: known.value,
        message: Some(import(manifest, &format!("opcode.{}", known.text), known.text)),
        standard: true,
        ..Opcode::default()
    })
}

/// Returns a task by its name.
pub fn task(manifest: &mut Manifest, local: &str) -> Option<Task> {
    let known = TASKS.iter().find(|known| known.name == local)?;
    Some(Task {
        name: written(known.name),
        value: known.value,
        message: Some(import(manifest, &format!("task.{}", known.name), known.text)),
        standard: true,
        ..Task::default()
    })
}

/// Returns a keyword by its name.
pub fn keyword(manifest: &mut Manifest, local: &str) -> Option<Keyword> {
    let known = KEYWORDS.iter().find(|known| known.name == local)?;
    let id = format!("keyword.{}", known.text.replace(' ', ""));
    Some(Keyword {
        name: written(known.name),
        mask: known.value,
        message: Some(import(manifest, &id, known.text)),
        standard: true,
        ..Keyword::default()
    })
}

/// Returns whether winmeta.xml defines an imported channel.
pub fn is_channel(channel: &Channel) -> bool {
    let id = channel.id.as_deref().unwrap_or(&channel.name);
    CHANNELS.iter().any(|known| known.name == id || known.name == channel.name)
}

/// Returns winmeta.xml's channel with this name, and adds its string to the manifest.
pub fn channel(manifest: &mut Manifest, name: &str) -> Option<Channel> {
    let known = CHANNELS.iter().find(|known| known.name == name)?;
    Some(Channel {
        name: known.name.to_owned(),
        kind: known.kind.to_owned(),
        value: known.value,
        isolation: known.isolation.map(str::to_owned),
        message: Some(import(manifest, &format!("channel.{name}"), known.name)),
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
        assert_eq!(keyword(&mut manifest, "SQM").unwrap().mask, 0x8_0000_0000_0000);
        assert_eq!(channel(&mut manifest, "Security").unwrap().value, 10);
    }
}
