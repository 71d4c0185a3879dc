//! Writes the header that mc.exe would generate with `-km` for a manifest, to the extent that the
//! samples use it: the functions that a driver uses to register the provider and write events.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use etw_manifest::{Event, InType, Part, PropertyKind, Provider, Size};

use super::mof;

/// The start of every header.
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
/// Fails if the text is not a manifest, or contains something that this code does not support.
pub fn header(manifest: &str) -> Result<String> {
    let read = etw_manifest::read_lenient(manifest)?;
    // The header contains neither messages nor maps.
    let is_needed = |part| {
        !matches!(
            part,
            Part::Character
                | Part::Comment
                | Part::Element
                | Part::Language
                | Part::Map
                | Part::Text
        )
    };
    if let Some(skipped) = read.skipped.iter().find(|skipped| is_needed(skipped.part)) {
        bail!("{skipped}");
    }
    let mut text = PROLOGUE.to_owned();
    if read.manifest.providers.is_empty() {
        bail!("it has no provider");
    }
    for provider in &read.manifest.providers {
        write_provider(&mut text, provider)?;
    }
    Ok(text)
}

fn write_provider(text: &mut String, provider: &Provider) -> Result<()> {
    let name = provider.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    let symbol = &provider.symbol;
    let guid = mof::guid_values(&provider.guid.to_string()).context("it has no GUID")?;
    let (first, last) = guid.split_at(3);
    writeln!(
        text,
        "__declspec(selectany) const GUID {symbol} = {{ {}, {{ {} }} }};\n\
         __declspec(selectany) REGHANDLE {name}Handle;\n\
         #define EventRegister{name}() EtwRegister(&{symbol}, 0, 0, &{name}Handle)\n\
         #define EventUnregister{name}() EtwUnregister({name}Handle)",
        first.join(", "),
        last.join(", ")
    )?;
    for event in &provider.events {
        if let Some(symbol) = &event.symbol {
            write_event(text, provider, event, symbol, &name)?;
        }
    }
    Ok(())
}

fn write_event(
    text: &mut String,
    provider: &Provider,
    event: &Event,
    symbol: &str,
    name: &str,
) -> Result<()> {
    let value = |at: Option<usize>, of: &dyn Fn(usize) -> Option<u16>| at.and_then(of).unwrap_or(0);
    // The keywords do not include the channel's bit.
    let keywords = event.keywords.iter().filter_map(|at| provider.keywords.get(*at));
    writeln!(
        text,
        "__declspec(selectany) const EVENT_DESCRIPTOR {symbol} = {{ {}, {}, {}, {}, {}, {}, {:#x} }};",
        event.id,
        event.version,
        value(event.channel, &|at| Some(provider.channels.get(at)?.value.into())),
        value(event.level, &|at| Some(provider.levels.get(at)?.value.into())),
        value(event.opcode, &|at| Some(provider.opcodes.get(at)?.value.into())),
        value(event.task, &|at| Some(provider.tasks.get(at)?.value)),
        keywords.fold(0, |all, keyword| all | keyword.mask),
    )?;
    let (mut parameters, mut fields) = (String::new(), String::new());
    let template = event.template.and_then(|at| provider.templates.get(at));
    let properties = template.map_or(&[][..], |template| &template.properties);
    for (number, property) in properties.iter().enumerate() {
        let sizes = (property.count, property.length);
        let (PropertyKind::Data { in_type, .. }, (Size::None, Size::None)) =
            (&property.kind, sizes)
        else {
            bail!(
                "{symbol} has an array, a structure or a counted field, which this code does not write"
            );
        };
        let (kind, address, size) = field(*in_type, number)?;
        write!(parameters, ", {kind} a{number}")?;
        write!(fields, " EventField(&fields[{number}], {address}, {size});")?;
    }
    let count = properties.len();
    writeln!(
        text,
        "static __inline NTSTATUS EventWrite{symbol}(const GUID *activity{parameters})\n\
         {{ EVENT_DATA_DESCRIPTOR fields[{}];{fields}\n  \
         return EtwWrite({name}Handle, &{symbol}, activity, {count}, fields); }}",
        count.max(1),
    )?;
    Ok(())
}

/// Returns a parameter's type, and the address and size of its data.
fn field(kind: InType, number: usize) -> Result<(&'static str, String, String)> {
    let value = |kind| (kind, format!("&a{number}"), format!("sizeof(a{number})"));
    let at = |kind, size: String| (kind, format!("a{number}"), size);
    Ok(match kind {
        InType::Int8 => value("signed char"),
        InType::UInt8 => value("UCHAR"),
        InType::Int16 => value("SHORT"),
        InType::UInt16 => value("USHORT"),
        InType::Int32 | InType::Boolean => value("LONG"),
        InType::UInt32 | InType::HexInt32 => value("ULONG"),
        InType::Int64 => value("LONGLONG"),
        InType::UInt64 | InType::HexInt64 => value("ULONGLONG"),
        InType::Pointer => value("const void *"),
        InType::Guid => at("const GUID *", "sizeof(GUID)".to_owned()),
        InType::FileTime => at("const void *", "8".to_owned()),
        InType::UnicodeString => at("const WCHAR *", format!("EventText(a{number})")),
        InType::AnsiString => at("const char *", format!("EventAnsiText(a{number})")),
        other => bail!("the type {} is not one that this code writes", other.name().unwrap_or("?")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"<instrumentationManifest
        xmlns="http://schemas.microsoft.com/win/2004/08/events"
        xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><instrumentation><events>
        <provider name="Some-Driver x" guid="{00112233-4455-6677-8899-AABBCCDDEEFF}" symbol="Control"
          resourceFileName="x.sys" messageFileName="x.sys">
          <channels><channel name="Some/Operational" chid="OP" type="Operational"/><importChannel name="System" chid="SYS"/></channels>
          <keywords><keyword name="Io" mask="0x4"/></keywords>
          <tasks><task name="Work" value="7"/></tasks>
          <templates><template tid="T">
            <data name="Count" inType="win:UInt16"/><data name="Name" inType="win:UnicodeString"/>
          </template><template tid="B"><data name="Bytes" inType="win:Binary" length="4"/></template></templates>
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
            "const GUID Control = { 0x00112233, 0x4455, 0x6677, { 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff } };",
            "#define EventRegisterSome_Driver_x() EtwRegister(&Control, 0, 0, &Some_Driver_xHandle)",
            "const EVENT_DESCRIPTOR Begun = { 3, 2, 8, 3, 1, 7, 0x4 };",
            "const EVENT_DESCRIPTOR Ended = { 4, 0, 16, 0, 0, 0, 0x0 };",
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
            (r#"template="T""#, r#"template="X""#, "X"),
            ("win:UInt16", "win:SID", "the type win:SID"),
            (r#"keywords="Io""#, r#"keywords="No""#, "No"),
            (r#"channel="SYS""#, r#"channel="NO""#, "NO"),
            ("{00112233-", "{0011223-", "GUID"),
            ("</provider>", "</source>", ""),
        ] {
            let changed = MANIFEST.replace(from, to);
            let found = header(&changed).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
        assert!(header("<instrumentationManifest/>").is_err());
    }
}
