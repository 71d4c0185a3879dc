//! Writes the header of a manifest's events, which mc.exe would write with `-km`, as far as the samples
//! use it: the functions by which a driver registers the provider and writes the events.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use roxmltree::{Document, Node};

/// What every header begins with.
const PROLOGUE: &str = "#pragma once\n#include <wdm.h>\n#include <evntrace.h>\n#include <evntprov.h>\n\
     static __inline void EventField(EVENT_DATA_DESCRIPTOR *field, const void *data, ULONG size)\n\
     { field->Ptr = (ULONGLONG)(ULONG_PTR)data; field->Size = size; field->Reserved = 0; }\n\
     static __inline ULONG EventText(const WCHAR *text)\n\
     { ULONG count = 1; while (*text++) count++; return count * sizeof(WCHAR); }\n\
     static __inline ULONG EventAnsiText(const char *text)\n\
     { ULONG count = 1; while (*text++) count++; return count; }\n";

/// Writes the header of a manifest.
///
/// # Errors
///
/// Fails if the text is not a manifest, or if it has what this code does not write.
pub fn header(manifest: &str) -> Result<String> {
    let document = Document::parse(manifest)?;
    let mut text = PROLOGUE.to_owned();
    let mut providers = elements(document.root_element(), "provider").peekable();
    if providers.peek().is_none() {
        bail!("it has no provider");
    }
    for provider in providers {
        write_provider(&mut text, provider)?;
    }
    Ok(text)
}

fn elements<'a>(of: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    of.descendants().filter(move |one| one.is_element() && one.tag_name().name() == name)
}

fn attribute<'a>(of: Node<'a, 'a>, name: &str) -> Result<&'a str> {
    of.attribute(name).with_context(|| format!("<{}> has no {name}", of.tag_name().name()))
}

fn write_provider(text: &mut String, provider: Node<'_, '_>) -> Result<()> {
    let name: String = attribute(provider, "name")?
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect();
    let symbol = attribute(provider, "symbol")?;
    let guid = guid(attribute(provider, "guid")?)?;
    writeln!(
        text,
        "__declspec(selectany) const GUID {symbol} = {guid};\n\
         __declspec(selectany) REGHANDLE {name}Handle;\n\
         #define EventRegister{name}() EtwRegister(&{symbol}, 0, 0, &{name}Handle)\n\
         #define EventUnregister{name}() EtwUnregister({name}Handle)"
    )?;
    for event in elements(provider, "event").filter(|event| event.has_attribute("symbol")) {
        write_event(text, provider, event, &name)?;
    }
    Ok(())
}

/// Returns the initializer of a GUID.
fn guid(text: &str) -> Result<String> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    if digits.len() != 32 {
        bail!("{text} is not a GUID");
    }
    let bytes: Vec<String> =
        (16..32).step_by(2).map(|at| format!("0x{}", part(at, at + 2))).collect();
    Ok(format!(
        "{{ 0x{}, 0x{}, 0x{}, {{ {} }} }}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        bytes.join(", ")
    ))
}

fn write_event(
    text: &mut String,
    provider: Node<'_, '_>,
    event: Node<'_, '_>,
    name: &str,
) -> Result<()> {
    let symbol = attribute(event, "symbol")?;
    let number = |attribute: &str| event.attribute(attribute).unwrap_or("0");
    writeln!(
        text,
        "__declspec(selectany) const EVENT_DESCRIPTOR {symbol} = {{ {}, {}, {}, {}, {}, {}, {} }};",
        attribute(event, "value")?,
        number("version"),
        channel(provider, event)?,
        named(provider, event, "level", &LEVELS)?,
        named(provider, event, "opcode", &OPCODES)?,
        named(provider, event, "task", &[("win:None", 0)])?,
        keywords(provider, event)?,
    )?;
    let (mut parameters, mut fields) = (String::new(), String::new());
    let mut count = 0;
    if let Some(template) = event.attribute("template") {
        let template = elements(provider, "template")
            .find(|one| one.attribute("tid") == Some(template))
            .with_context(|| format!("there is no template {template}"))?;
        for data in template.children().filter(Node::is_element) {
            if data.tag_name().name() != "data"
                || data.has_attribute("count")
                || data.has_attribute("length")
            {
                bail!(
                    "{symbol} has an array, a structure or a counted field, which this code does not write"
                );
            }
            let (kind, address, size) = field(attribute(data, "inType")?, count)?;
            write!(parameters, ", {kind} a{count}")?;
            write!(fields, " EventField(&fields[{count}], {address}, {size});")?;
            count += 1;
        }
    }
    writeln!(
        text,
        "static __inline NTSTATUS EventWrite{symbol}(const GUID *activity{parameters})\n\
         {{ EVENT_DATA_DESCRIPTOR fields[{}];{fields}\n  \
         return EtwWrite({name}Handle, &{symbol}, activity, {count}, fields); }}",
        count.max(1),
    )?;
    Ok(())
}

/// Returns the type of a parameter, and the address and the size of its data.
fn field(kind: &str, number: usize) -> Result<(&'static str, String, String)> {
    let value = |kind| (kind, format!("&a{number}"), format!("sizeof(a{number})"));
    let at = |kind, size: String| (kind, format!("a{number}"), size);
    Ok(match kind {
        "win:Int8" => value("signed char"),
        "win:UInt8" => value("UCHAR"),
        "win:Int16" => value("SHORT"),
        "win:UInt16" => value("USHORT"),
        "win:Int32" | "win:Boolean" => value("LONG"),
        "win:UInt32" | "win:HexInt32" => value("ULONG"),
        "win:Int64" => value("LONGLONG"),
        "win:UInt64" | "win:HexInt64" => value("ULONGLONG"),
        "win:Pointer" => value("const void *"),
        "win:GUID" => at("const GUID *", "sizeof(GUID)".to_owned()),
        "win:FILETIME" => at("const void *", "8".to_owned()),
        "win:UnicodeString" => at("const WCHAR *", format!("EventText(a{number})")),
        "win:AnsiString" => at("const char *", format!("EventAnsiText(a{number})")),
        other => bail!("the type {other} is not one that this code writes"),
    })
}

const LEVELS: [(&str, u16); 6] = [
    ("win:LogAlways", 0),
    ("win:Critical", 1),
    ("win:Error", 2),
    ("win:Warning", 3),
    ("win:Informational", 4),
    ("win:Verbose", 5),
];

const OPCODES: [(&str, u16); 11] = [
    ("win:Info", 0),
    ("win:Start", 1),
    ("win:Stop", 2),
    ("win:DC_Start", 3),
    ("win:DC_Stop", 4),
    ("win:Extension", 5),
    ("win:Reply", 6),
    ("win:Resume", 7),
    ("win:Suspend", 8),
    ("win:Send", 9),
    ("win:Receive", 240),
];

/// Returns the value of a level, an opcode or a task that an event names.
fn named(
    provider: Node<'_, '_>,
    event: Node<'_, '_>,
    what: &str,
    standard: &[(&str, u16)],
) -> Result<String> {
    let Some(name) = event.attribute(what) else {
        return Ok("0".to_owned());
    };
    if let Some((_, value)) = standard.iter().find(|(one, _)| *one == name) {
        return Ok(value.to_string());
    }
    let defined = elements(provider, what).find(|one| one.attribute("name") == Some(name));
    let value = defined.and_then(|one| one.attribute("value"));
    Ok(value.with_context(|| format!("there is no {what} {name}"))?.to_owned())
}

/// Returns the number of an event's channel: a standard one, or the next from 16 on.
fn channel(provider: Node<'_, '_>, event: Node<'_, '_>) -> Result<u8> {
    let Some(name) = event.attribute("channel") else {
        return Ok(0);
    };
    let mut next = 16;
    let all = provider.descendants().filter(|one| {
        one.is_element() && matches!(one.tag_name().name(), "channel" | "importChannel")
    });
    for one in all {
        let value = match (one.attribute("value"), one.attribute("name")) {
            (Some(value), _) => value.parse().context("a channel's value is not a number")?,
            (None, Some("System")) => 8,
            (None, Some("Application")) => 9,
            (None, Some("Security")) => 10,
            _ => {
                next += 1;
                next - 1
            }
        };
        if [one.attribute("chid"), one.attribute("name")].contains(&Some(name)) {
            return Ok(value);
        }
    }
    bail!("there is no channel {name}")
}

/// Returns the keywords of an event, as an expression. The bit of its channel is not among them.
fn keywords(provider: Node<'_, '_>, event: Node<'_, '_>) -> Result<String> {
    let mut all = vec!["0".to_owned()];
    for name in event.attribute("keywords").unwrap_or_default().split_whitespace() {
        let defined = elements(provider, "keyword").find(|one| one.attribute("name") == Some(name));
        let mask = defined.and_then(|one| one.attribute("mask"));
        all.push(mask.with_context(|| format!("there is no keyword {name}"))?.to_owned());
    }
    Ok(all.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"<instrumentationManifest><instrumentation><events>
        <provider name="Some-Driver x" guid="{00112233-4455-6677-8899-AABBCCDDEEFF}" symbol="Control">
          <channels><channel name="Some/Operational" chid="OP"/><importChannel name="System" chid="SYS"/></channels>
          <keywords><keyword name="Io" mask="0x4"/></keywords>
          <tasks><task name="Work" value="7"/></tasks>
          <templates><template tid="T">
            <data name="Count" inType="win:UInt16"/><data name="Name" inType="win:UnicodeString"/>
          </template><template tid="B"><data name="Bytes" inType="win:Binary" length="Count"/></template></templates>
          <events>
            <event symbol="Begun" value="3" version="2" channel="SYS" level="win:Warning" opcode="win:Start"
              task="Work" keywords="Io" template="T"/>
            <event symbol="Ended" value="4" channel="OP"/>
          </events>
        </provider></events></instrumentation></instrumentationManifest>"#;

    #[test]
    fn events_have_descriptors_and_functions() {
        let text = header(MANIFEST).unwrap();
        for part in [
            "const GUID Control = { 0x00112233, 0x4455, 0x6677, { 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF } };",
            "#define EventRegisterSome_Driver_x() EtwRegister(&Control, 0, 0, &Some_Driver_xHandle)",
            "const EVENT_DESCRIPTOR Begun = { 3, 2, 8, 3, 1, 7, 0 | 0x4 };",
            "const EVENT_DESCRIPTOR Ended = { 4, 0, 16, 0, 0, 0, 0 };",
            "EventWriteBegun(const GUID *activity, USHORT a0, const WCHAR * a1)",
            "EventField(&fields[0], &a0, sizeof(a0)); EventField(&fields[1], a1, EventText(a1));",
            "return EtwWrite(Some_Driver_xHandle, &Begun, activity, 2, fields);",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn what_is_not_written_is_refused() {
        for (from, to, error) in [
            (r#"template="T""#, r#"template="B""#, "Begun has an array"),
            (r#"template="T""#, r#"template="X""#, "there is no template X"),
            ("win:UInt16", "win:SID", "the type win:SID"),
            (r#"keywords="Io""#, r#"keywords="No""#, "there is no keyword No"),
            (r#"channel="SYS""#, r#"channel="NO""#, "there is no channel NO"),
            ("{00112233-", "{0011223-", "is not a GUID"),
            ("<provider ", "<source ", ""),
        ] {
            let changed = MANIFEST.replace(from, to);
            let found = header(&changed).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
        assert!(header("<instrumentationManifest/>").is_err());
    }
}
