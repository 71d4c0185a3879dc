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

/// Defines functions that return a definition by its name, and add its string to the manifest. The
/// string's id follows from the name or the text of the definition.
macro_rules! by_name {
    ($($(#[$doc:meta])* $function:ident: $type:ident in $table:ident, $value:ident, $id:expr;)*) => {$(
        $(#[$doc])*
        pub fn $function(manifest: &mut Manifest, local: &str) -> Option<$type> {
            let known = $table.iter().find(|known| known.name == local)?;
            let id: fn(&str, &str) -> String = $id;
            let id = format!("{}.{}", stringify!($function), id(known.name, known.text));
            Some($type {
                name: written(known.name),
                $value: known.value,
                message: Some(import(manifest, &id, known.text)),
                standard: true,
                ..$type::default()
            })
        }
    )*};
}

by_name! {
    /// Returns a level by its name.
    level: Level in LEVELS, value, |name, _| name.to_owned();
    /// Returns an opcode by its name.
    opcode: Opcode in OPCODES, value, |_, text| text.to_owned();
    /// Returns a task by its name.
    task: Task in TASKS, value, |_, text| text.to_owned();
    /// Returns a keyword by its name.
    keyword: Keyword in KEYWORDS, mask, |_, text| text.replace(' ', "");
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
