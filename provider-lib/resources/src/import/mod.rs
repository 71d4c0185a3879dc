//! From a manifest to a declaration in Rust, for those who come from C.
//!
//! The declaration names the manifest (`manifest = "…"`), which stays what the resources are made
//! of: texts in several languages, channels' security, and events that the driver does not write
//! any more are for it to keep. The build refuses a declaration that the manifest does not agree
//! with. Without that setting the declaration stands for itself.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use wdk_etw_schema::{Guid, STANDARD_LEVELS, STANDARD_OPCODES};

use etw_manifest::{
    Event, Manifest, Position, Property, PropertyKind, Provider, Size, out_type_name, printable,
    replace_fields,
};

/// A declaration.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Rust source.
    pub source: String,
    /// What the declaration cannot say.
    pub notes: Vec<Note>,
}

/// Something of a manifest that a declaration cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {}", at.line, at.column, printable(what))]
pub struct Note {
    /// Where it stands in the manifest.
    pub at: Position,
    /// What it is.
    pub what: String,
}

/// The declaration of a manifest's providers, a module each. With `file`, they name that as
/// their manifest.
#[must_use]
pub fn declaration(manifest: &Manifest, file: Option<&str>) -> Imported {
    let mut imported = Imported::default();
    let mut modules = HashSet::new();
    for provider in &manifest.providers {
        let mut writer = Writer {
            manifest,
            provider,
            out: &mut imported,
            maps: BTreeMap::new(),
            structures: Vec::new(),
            idents: wdk_etw_schema::type_names().map(str::to_owned).collect(),
        };
        let module = if manifest.providers.len() == 1 {
            "trace".to_owned()
        } else {
            snake(&provider.symbol)
        };
        let module = unique(&module, &mut modules);
        writer.provider(&module, file);
    }
    imported
}

/// Words that cannot be names.
const KEYWORDS: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "register",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unregister",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// The words of a name in whatever style.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for character in name.chars() {
        let is_part = character.is_ascii_alphanumeric();
        let starts = is_part
            && (!previous.is_ascii_alphanumeric()
                || character.is_ascii_uppercase() && !previous.is_ascii_uppercase());
        if starts {
            words.push(String::new());
        }
        if is_part && let Some(word) = words.last_mut() {
            word.push(character.to_ascii_lowercase());
        }
        previous = character;
    }
    words
}

fn identifier(text: String) -> String {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic());
    if !starts_well || KEYWORDS.contains(&text.as_str()) {
        format!("n_{text}")
    } else {
        text
    }
}

fn snake(name: &str) -> String {
    identifier(words(name).join("_"))
}

fn shouting(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

fn pascal(name: &str) -> String {
    let name: String = words(name)
        .iter()
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) && name != "Self" {
        name
    } else {
        format!("N{name}")
    }
}

/// A name that no other has.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

/// A Rust text.
fn text(value: &str) -> String {
    format!("{value:?}")
}

/// A field of a declaration.
struct Declared {
    attributes: String,
    ident: String,
    written: String,
}

/// A type of a declaration.
struct Type {
    attribute: &'static str,
    written: String,
}

fn plain(written: &str) -> Type {
    Type {
        attribute: "",
        written: written.to_owned(),
    }
}

fn shown(attribute: &'static str, written: &str) -> Type {
    Type {
        attribute,
        written: written.to_owned(),
    }
}

/// The type of a single value that has one of its own.
fn scalar(in_type: &str, out_type: u8) -> Option<Type> {
    let out = out_type_name(out_type).unwrap_or_default();
    Some(match (in_type, out) {
        ("win:Int8", _) => plain("i8"),
        ("win:UInt8", "win:HexInt8") => shown("#[hex] ", "u8"),
        ("win:UInt8", "xs:boolean") => plain("bool"),
        ("win:UInt8", _) => plain("u8"),
        ("win:Int16", _) => plain("i16"),
        ("win:UInt16", "win:Port") => plain("Port"),
        ("win:UInt16", "win:HexInt16") => shown("#[hex] ", "u16"),
        ("win:UInt16", _) => plain("u16"),
        ("win:Int32", "win:HResult") => plain("HResult"),
        ("win:Int32", _) => plain("i32"),
        ("win:UInt32", "win:PID") => plain("ProcessId"),
        ("win:UInt32", "win:TID") => plain("ThreadId"),
        ("win:UInt32", "win:IPv4") => plain("Ipv4Addr"),
        ("win:UInt32" | "win:HexInt32", "win:Win32Error") => plain("Win32Error"),
        ("win:UInt32" | "win:HexInt32", "win:NTSTATUS") => plain("NtStatus"),
        ("win:UInt32", "xs:unsignedInt") | ("win:Boolean", _) => plain("u32"),
        ("win:UInt32" | "win:HexInt32", _) => shown("#[hex] ", "u32"),
        ("win:Int64", _) => plain("i64"),
        ("win:UInt64", "xs:unsignedLong" | "win:ETWTIME") => plain("u64"),
        ("win:UInt64" | "win:HexInt64", _) => shown("#[hex] ", "u64"),
        ("win:Float", _) => plain("F32"),
        ("win:Double", _) => plain("F64"),
        ("win:GUID", _) => plain("Guid"),
        ("win:Pointer", _) => shown("#[address] ", "Pointer"),
        ("win:FILETIME", _) => plain("FileTime"),
        ("win:SYSTEMTIME", _) => plain("SystemTime"),
        ("win:SID", _) => plain("&Sid"),
        ("win:UnicodeString", _) => plain("&Utf16CStr"),
        ("win:AnsiString", _) => plain("&CStr"),
        ("win:CountedUnicodeString", "win:Xml") => shown("#[xml] ", "&[u16]"),
        ("win:CountedUnicodeString", "win:Json") => shown("#[json] ", "&[u16]"),
        ("win:CountedUnicodeString", _) => plain("&[u16]"),
        ("win:CountedAnsiString", "win:Xml") => shown("#[xml] ", "&str"),
        ("win:CountedAnsiString", "win:Json") => shown("#[json] ", "&str"),
        ("win:CountedAnsiString", _) => plain("&str"),
        ("win:CountedBinary", "win:SocketAddress") => plain("&SocketAddr"),
        ("win:CountedBinary", _) => plain("&[u8]"),
        _ => return None,
    })
}

/// Types that an array can have.
fn repeats(kind: &Type) -> bool {
    const TYPES: &[&str] = &[
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "F32",
        "F64",
        "Guid",
        "FileTime",
        "SystemTime",
        "NtStatus",
        "HResult",
        "Win32Error",
        "ProcessId",
        "ThreadId",
    ];
    TYPES.contains(&kind.written.as_str())
}

struct Writer<'a> {
    manifest: &'a Manifest,
    provider: &'a Provider,
    out: &'a mut Imported,
    /// The types that maps have become, by the map and the integer that travels.
    maps: BTreeMap<(usize, &'static str), String>,
    /// Structures.
    structures: Vec<String>,
    /// Names of types.
    idents: HashSet<String>,
}

impl Writer<'_> {
    fn note(&mut self, at: Position, what: impl Into<String>) {
        let what = what.into();
        self.out.notes.push(Note { at, what });
    }

    fn line(&mut self, depth: usize, line: &str) {
        if !line.is_empty() {
            self.out.source.extend(std::iter::repeat_n("    ", depth));
            self.out.source.push_str(line);
        }
        self.out.source.push('\n');
    }

    fn value(&self, message: Option<usize>) -> Option<&str> {
        let text = self.manifest.texts.get(message?)?;
        Some(text.value.as_str())
    }

    fn provider(&mut self, module: &str, file: Option<&str>) {
        let provider = self.provider;
        if !self.out.source.is_empty() {
            self.line(0, "");
        }
        let description = self.value(provider.message).map(str::to_owned);
        self.describe(0, description);
        if provider.control_guid.is_some() {
            let what = "the controlGuid is the manifest's alone; the declaration has the guid";
            self.note(provider.at, what);
        }
        self.line(0, "#[wdk_etw::provider(");
        self.line(1, &format!("name = {},", text(&provider.name)));
        if Guid::of_name(&provider.name) != Ok(provider.guid) {
            self.line(1, &format!("guid = \"{}\",", provider.guid));
        }
        if let Some(group) = provider.group_guid {
            self.line(1, &format!("group = \"{group}\","));
        }
        self.line(1, "encoding = manifest,");
        if let Some(file) = file {
            self.line(1, &format!("manifest = {},", text(file)));
        }
        self.line(0, ")]");
        self.line(0, &format!("pub mod {module} {{"));
        let keywords = self.keywords();
        let tasks = self.tasks();
        let opcodes = self.opcodes();
        let channels = self.channels();
        let mut events = String::new();
        let mut names = HashSet::new();
        for event in &provider.events {
            let names_of = Names {
                keywords: &keywords,
                tasks: &tasks,
                opcodes: &opcodes,
                channels: &channels,
            };
            match self.event(event, &names_of, &mut names) {
                Ok(source) => events.push_str(&source),
                Err(why) => {
                    let what = format!(
                        "event {} of version {} is left out: {why}",
                        event.id, event.version
                    );
                    self.note(event.at, what);
                }
            }
        }
        self.write_maps();
        for structure in std::mem::take(&mut self.structures) {
            self.out.source.push_str(&structure);
        }
        self.out.source.push_str(&events);
        self.line(0, "}");
    }

    fn keywords(&mut self) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        for keyword in &self.provider.keywords {
            if keyword.standard {
                let what = format!(
                    "the keyword {} is Microsoft's; events lose it",
                    keyword.name.written
                );
                if keyword.mask != 0 {
                    self.note(keyword.at, what);
                }
                idents.push(None);
                continue;
            }
            let ident = unique(&shouting(keyword.name.local()), &mut taken);
            self.describe(1, self.value(keyword.message).map(str::to_owned));
            self.line(1, "#[keyword]");
            self.rename(1, &ident, keyword.name.local());
            let bit = keyword.mask.trailing_zeros();
            self.line(
                1,
                &format!("pub const {ident}: Keyword = Keyword::bit({bit});"),
            );
            idents.push(Some(ident));
        }
        idents
    }

    fn describe(&mut self, depth: usize, description: Option<String>) {
        if let Some(description) = description {
            // What would end the comment, or turn it around, is written out.
            let description = description.replace(['\n', '\r'], " ");
            let description = printable(&description);
            self.line(depth, &format!("/// {}", description.trim()));
        }
    }

    /// `#[name = "…"]`, where the identifier would make another.
    fn rename(&mut self, depth: usize, ident: &str, name: &str) {
        if wdk_etw_schema::pascal_case(ident) != name {
            self.line(depth, &format!("#[name = {}]", text(name)));
        }
    }

    fn tasks(&mut self) -> Vec<Option<String>> {
        let provider = self.provider;
        let mut taken = HashSet::new();
        let own = provider.tasks.iter().any(|task| task.value != 0);
        if own {
            self.line(0, "");
            self.line(1, "#[tasks]");
            self.line(1, "enum Task {");
        }
        let mut idents = Vec::new();
        for task in &provider.tasks {
            if task.value == 0 {
                idents.push(None);
                continue;
            }
            let ident = unique(&pascal(task.name.local()), &mut taken);
            self.describe(2, self.value(task.message).map(str::to_owned));
            self.rename(2, &ident, task.name.local());
            self.line(2, &format!("{ident} = {},", task.value));
            idents.push(Some(ident));
        }
        if own {
            self.line(1, "}");
        }
        idents
    }

    fn opcodes(&mut self) -> Vec<Option<String>> {
        let provider = self.provider;
        // Opcodes of winmeta.xml's names are known already.
        let standard = STANDARD_OPCODES.iter();
        let mut taken: HashSet<String> = standard.map(|one| one.0.to_owned()).collect();
        let mut by_value: BTreeMap<u8, String> = BTreeMap::new();
        let mut idents = Vec::new();
        let mut list = Vec::new();
        for opcode in &provider.opcodes {
            if opcode.standard {
                let known = STANDARD_OPCODES.iter().find(|one| one.1 == opcode.value);
                idents.push(known.map(|one| one.0.to_owned()));
                continue;
            }
            // A declaration has one list of opcodes; a task's own are told apart by its name.
            if let Some(known) = by_value.get(&opcode.value) {
                idents.push(Some(known.clone()));
                continue;
            }
            let task = opcode.task.map(|task| provider.tasks[task].name.local());
            let whole = format!("{}_{}", task.unwrap_or_default(), opcode.name.local());
            let ident = unique(&pascal(&whole), &mut taken);
            by_value.insert(opcode.value, ident.clone());
            list.push((ident.clone(), opcode));
            idents.push(Some(ident));
        }
        if !list.is_empty() {
            self.line(0, "");
            self.line(1, "#[opcodes]");
            self.line(1, "enum Opcode {");
            // Opcodes of different tasks may share a name, which goes to the provider's own first.
            let own = list.iter().filter(|(_, opcode)| opcode.task.is_none());
            let mut names: HashSet<&str> = own.map(|(_, opcode)| opcode.name.local()).collect();
            for (ident, opcode) in list {
                self.describe(2, self.value(opcode.message).map(str::to_owned));
                if opcode.task.is_none() || names.insert(opcode.name.local()) {
                    self.rename(2, &ident, opcode.name.local());
                }
                self.line(2, &format!("{ident} = {},", opcode.value));
            }
            self.line(1, "}");
        }
        idents
    }

    fn channels(&mut self) -> Vec<Option<String>> {
        const FIRST_OWN: u8 = 16;
        let provider = self.provider;
        let mut taken = HashSet::new();
        let own = provider.channels.iter().any(|one| one.value >= FIRST_OWN);
        if own {
            self.line(0, "");
            self.line(1, "#[channels]");
            self.line(1, "enum Channel {");
        }
        let mut idents = Vec::new();
        for channel in &provider.channels {
            if channel.value < FIRST_OWN {
                idents.push(None);
                continue;
            }
            let name = channel.id.as_deref().unwrap_or(&channel.name);
            let ident = unique(&pascal(name), &mut taken);
            self.describe(2, self.value(channel.message).map(str::to_owned));
            self.line(2, &format!("#[channel({})]", channel.kind));
            self.rename(2, &ident, &channel.name);
            self.line(2, &format!("{ident} = {},", channel.value));
            idents.push(Some(ident));
        }
        if own {
            self.line(1, "}");
        }
        idents
    }

    /// The type that a map becomes for an integer of a width.
    fn map(&mut self, map: usize, width: &'static str) -> String {
        if let Some(known) = self.maps.get(&(map, width)) {
            return known.clone();
        }
        let ident = unique(&pascal(&self.provider.maps[map].name), &mut self.idents);
        self.maps.insert((map, width), ident.clone());
        ident
    }

    fn write_maps(&mut self) {
        for ((at, width), ident) in std::mem::take(&mut self.maps) {
            let map = &self.provider.maps[at];
            self.line(0, "");
            self.line(1, if map.is_bits { "#[bitmap]" } else { "#[map]" });
            if width != "u32" {
                self.line(1, &format!("#[repr({width})]"));
            }
            self.line(1, &format!("pub enum {ident} {{"));
            let mut taken = HashSet::new();
            for item in &map.items {
                if map.is_bits && !item.value.is_power_of_two() {
                    let what =
                        format!("the entry {:#x} is not one bit; it is left out", item.value);
                    self.note(item.at, what);
                    continue;
                }
                let most = match width {
                    "u8" => u32::from(u8::MAX),
                    "u16" => u32::from(u16::MAX),
                    _ => u32::MAX,
                };
                if item.value > most {
                    let what = format!("the entry {:#x} is no {width}; it is left out", item.value);
                    self.note(item.at, what);
                    continue;
                }
                let name = self.value(item.message).unwrap_or_default().to_owned();
                let entry = unique(&pascal(&name), &mut taken);
                self.rename(2, &entry, &name);
                let value = if map.is_bits {
                    format!("1 << {}", item.value.trailing_zeros())
                } else {
                    item.value.to_string()
                };
                self.line(2, &format!("{entry} = {value},"));
            }
            self.line(1, "}");
        }
    }

    /// The fields of an event or a structure; or why they cannot be declared. With them comes,
    /// for each of the template's, the number of the field that it has become.
    fn fields(
        &mut self,
        properties: &[Property],
        owner: &str,
    ) -> Result<(Vec<Declared>, Vec<usize>), String> {
        let mut fields = Vec::new();
        let mut numbers = Vec::new();
        let mut taken = HashSet::new();
        let mut at = 0;
        while let Some(property) = properties.get(at) {
            // A count or a length right before what it counts travels with it.
            let (property, counted) = match properties.get(at + 1) {
                Some(next) if next.count == Size::Field(at) || next.length == Size::Field(at) => {
                    (next, Some(property))
                }
                _ => (property, None),
            };
            let taken_up = if counted.is_some() { 2 } else { 1 };
            at += taken_up;
            numbers.extend(std::iter::repeat_n(fields.len() + 1, taken_up));
            if let Some(counter) = counted {
                let is_u16 = matches!(
                    &counter.kind,
                    PropertyKind::Data { in_type, map: None, .. } if in_type.name == "win:UInt16"
                );
                if !is_u16 || counter.count != Size::None {
                    return Err(format!(
                        "`{}` counts `{}`, and is not a single win:UInt16",
                        counter.name, property.name
                    ));
                }
            }
            let kind = self.field(property, counted.is_some(), owner)?;
            let ident = unique(&snake(&property.name), &mut taken);
            let rename = if wdk_etw_schema::pascal_case(&ident) == property.name {
                String::new()
            } else {
                format!("#[name = {}] ", text(&property.name))
            };
            fields.push(Declared {
                attributes: format!("{}{rename}", kind.attribute),
                ident,
                written: kind.written,
            });
        }
        Ok((fields, numbers))
    }

    fn field(
        &mut self,
        property: &Property,
        is_counted: bool,
        owner: &str,
    ) -> Result<Type, String> {
        let name = &property.name;
        let is_elsewhere = |size| match size {
            Size::Field(_) => !is_counted,
            Size::Outer(_) => true,
            Size::None | Size::Fixed(_) => false,
        };
        let other_count = is_elsewhere(property.count);
        let other_length = is_elsewhere(property.length);
        if other_count || other_length {
            return Err(format!(
                "how many `{name}` has stands elsewhere than right before it"
            ));
        }
        let (in_type, out_type, map) = match &property.kind {
            PropertyKind::Struct(members) => {
                if property.count != Size::None {
                    return Err(format!("`{name}` is an array of structures"));
                }
                return self.structure(name, members, owner);
            }
            PropertyKind::Unknown { in_type, .. } => {
                return Err(format!("`{name}` has the unknown inType {in_type}"));
            }
            PropertyKind::Data {
                in_type,
                out_type,
                map,
                ..
            } => (in_type.name, *out_type, *map),
        };
        let bytes = match (in_type, property.length) {
            ("win:Binary", Size::Fixed(16) | Size::None)
                if out_type_name(out_type) == Some("win:IPv6") =>
            {
                Some(plain("Ipv6Addr"))
            }
            ("win:Binary", Size::Fixed(length)) => Some(plain(&format!("[u8; {length}]"))),
            ("win:Binary", Size::Field(_) | Size::Outer(_)) => Some(plain(
                if out_type_name(out_type) == Some("win:SocketAddress") {
                    "&SocketAddr"
                } else {
                    "&[u8]"
                },
            )),
            (_, Size::None) => None,
            _ => return Err(format!("`{name}` is a text with a length of its own")),
        };
        if let Some(bytes) = bytes {
            if property.count != Size::None {
                return Err(format!("`{name}` is an array of bytes with lengths"));
            }
            return Ok(bytes);
        }
        let width = match in_type {
            "win:UInt8" => Some("u8"),
            "win:UInt16" => Some("u16"),
            "win:UInt32" | "win:HexInt32" => Some("u32"),
            _ => None,
        };
        if let (Some(map), Some(width), Size::None) = (map, width, property.count) {
            // Bits that are several at once are left out of a declaration's map.
            let has_entries = self.provider.maps[map]
                .items
                .iter()
                .any(|item| !self.provider.maps[map].is_bits || item.value.is_power_of_two());
            if has_entries {
                return Ok(plain(&self.map(map, width)));
            }
        }
        if map.is_some() {
            let what = format!("the map of `{name}` is the manifest's alone");
            self.note(property.at, what);
        }
        let kind = scalar(in_type, out_type)
            .ok_or_else(|| format!("`{name}` is a {in_type} with no length"))?;
        match property.count {
            Size::None => Ok(kind),
            _ if !repeats(&kind) => Err(format!("`{name}` is an array of {in_type}")),
            Size::Fixed(count) => Ok(shown(
                kind.attribute,
                &format!("[{}; {count}]", kind.written),
            )),
            Size::Field(_) | Size::Outer(_) => {
                // Slices of these without a word are bytes and text.
                let is_text = matches!(kind.written.as_str(), "u8" | "u16");
                let attribute = match (kind.attribute, is_text) {
                    ("", false) => "",
                    ("", true) => "#[array] ",
                    (hex, false) => hex,
                    (_, true) => "#[hex] #[array] ",
                };
                Ok(shown(attribute, &format!("&[{}]", kind.written)))
            }
        }
    }

    fn structure(&mut self, name: &str, members: &[Property], owner: &str) -> Result<Type, String> {
        let (fields, _) = self.fields(members, owner)?;
        let ident = unique(&pascal(&format!("{owner}_{name}")), &mut self.idents);
        let borrows = fields.iter().any(|field| field.written.contains('&'));
        let mut source = String::from("\n    #[structure]\n");
        let lifetime = if borrows { "<'a>" } else { "" };
        // Writing to a text cannot fail.
        let _ = writeln!(source, "    pub struct {ident}{lifetime} {{");
        for Declared {
            attributes,
            ident,
            written,
        } in fields
        {
            let written = written.replace('&', "&'a ");
            let _ = writeln!(source, "        {attributes}pub {ident}: {written},");
        }
        source.push_str("    }\n");
        self.structures.push(source);
        Ok(plain(&if borrows {
            format!("{ident}<'_>")
        } else {
            ident
        }))
    }

    /// The bit of an event's channel in a declaration, which has no imported channels before it.
    fn channel_bit_declared(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        const FIRST_OWN: u8 = 16;
        event.channel.map_or(0, |channel| {
            let before = self.provider.channels[..channel].iter();
            let place = before.filter(|one| one.value >= FIRST_OWN).count();
            FIRST.checked_sub(place).map_or(0, |bit| 1 << bit)
        })
    }

    fn event(
        &mut self,
        event: &Event,
        names: &Names<'_>,
        taken: &mut HashSet<String>,
    ) -> Result<String, String> {
        let provider = self.provider;
        let symbol = event.symbol.as_deref().or(event.name.as_deref());
        let whole = symbol.map_or_else(|| format!("event_{}", event.id), str::to_owned);
        let (fields, numbers) = match event.template {
            Some(template) => {
                let template = &provider.templates[template];
                self.fields(&template.properties, &whole)?
            }
            None => (Vec::new(), Vec::new()),
        };
        if let Some(channel) = event.channel
            && names.channels[channel].is_none()
        {
            return Err(format!(
                "its channel, {}, is the system's",
                provider.channels[channel].name
            ));
        }
        if provider.channel_bit(event) != self.channel_bit_declared(event) {
            return Err(
                "the keyword of its channel is another one where imported channels do not count"
                    .to_owned(),
            );
        }
        let ident = unique(&snake(&whole), taken);
        let level = event.level.map_or(0, |at| provider.levels[at].value);
        let level = match STANDARD_LEVELS.iter().find(|one| one.1 == level) {
            Some((name, _)) => (*name).to_owned(),
            None => level.to_string(),
        };
        let keywords: Vec<&str> = event
            .keywords
            .iter()
            .filter_map(|at| names.keywords[*at].as_deref())
            .collect();
        let keywords = if keywords.is_empty() {
            "none".to_owned()
        } else {
            keywords.join(" | ")
        };
        let mut settings = vec![format!("id = {}", event.id)];
        if event.version != 0 {
            settings.push(format!("version = {}", event.version));
        }
        settings.push(format!("level = {level}"));
        settings.push(format!("keyword = {keywords}"));
        for (setting, name) in [
            ("task", event.task.and_then(|at| names.tasks[at].clone())),
            (
                "opcode",
                event.opcode.and_then(|at| names.opcodes[at].clone()),
            ),
            (
                "channel",
                event.channel.and_then(|at| names.channels[at].clone()),
            ),
        ] {
            if let Some(name) = name {
                settings.push(format!("{setting} = {name}"));
            }
        }
        if let Some(name) = &event.name
            && wdk_etw_schema::pascal_case(&ident) != *name
        {
            settings.push(format!("name = {}", text(name)));
        }
        let mut source = String::from("\n");
        if let Some(message) = self.value(event.message) {
            let message = renumber(message, &numbers);
            settings.push(format!("message = {}", text(&message)));
        }
        let _ = writeln!(source, "    #[event({})]", settings.join(", "));
        let fields: Vec<String> = fields
            .into_iter()
            .map(|field| format!("{}{}: {}", field.attributes, field.ident, field.written))
            .collect();
        let _ = writeln!(source, "    pub fn {ident}({});", fields.join(", "));
        Ok(source)
    }
}

/// A message whose `%1` is the first field of the template, for the fields of the declaration.
fn renumber(message: &str, numbers: &[usize]) -> String {
    replace_fields(message, |number| {
        numbers.get(number.checked_sub(1)?).copied()
    })
}

/// What a provider's things are called in the declaration.
struct Names<'a> {
    keywords: &'a [Option<String>],
    tasks: &'a [Option<String>],
    opcodes: &'a [Option<String>],
    channels: &'a [Option<String>],
}
