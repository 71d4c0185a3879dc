//! Imports a manifest as a Rust declaration, for drivers that are ported from C.
//!
//! The declaration names the manifest (`manifest = "…"`), from which the resources are still
//! compiled. It keeps strings in several languages, the security of channels, and events that the
//! driver no longer writes. The build rejects a declaration that disagrees with the manifest.
//! Without that setting, the resources are compiled from the declaration.

mod fields;
mod names;
mod types;
mod writer;

use std::collections::{BTreeMap, HashSet};

use etw_manifest::{Event, Manifest, Map, replace_fields};
use etw_wire::{Guid, winmeta};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, quote};
use syn::Ident;

use names::{ident, pascal, rename, shouting, snake, unique};
pub use writer::Note;
use writer::Writer;

/// An imported declaration.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The Rust source.
    pub source: String,
    /// The parts of the manifest that the declaration cannot express.
    pub notes: Vec<Note>,
}

/// Returns the declaration of a manifest's providers, with a module for each. With `file`, the
/// modules name it as their manifest.
#[must_use]
pub fn declaration(manifest: &Manifest, file: Option<&str>) -> Imported {
    let mut imported = Imported::default();
    let mut modules = HashSet::new();
    for provider in &manifest.providers {
        let mut writer = Writer {
            manifest,
            provider,
            notes: &mut imported.notes,
            maps: BTreeMap::new(),
            structures: Vec::new(),
            idents: wdk_etw_schema::type_names().map(str::to_owned).collect(),
        };
        let module = if manifest.providers.len() == 1 {
            "trace".to_owned()
        } else {
            snake(&provider.symbol)
        };
        let module = writer.provider(&unique(&module, &mut modules), file);
        if !imported.source.is_empty() {
            imported.source.push('\n');
        }
        imported.source.push_str(&module);
    }
    imported
}

/// Returns an item as source text, with a line for each part.
fn print(item: TokenStream) -> String {
    let text = item.to_string();
    syn::parse2(item).map_or(text, |item| {
        prettyplease::unparse(&syn::File {
            shebang: None,
            attrs: Vec::new(),
            items: vec![item],
        })
    })
}

/// The names of a provider's definitions in the declaration.
struct Names {
    keywords: Vec<Option<String>>,
    tasks: Vec<Option<String>>,
    opcodes: Vec<Option<String>>,
    channels: Vec<Option<String>>,
}

impl Writer<'_> {
    fn provider(&mut self, module: &str, file: Option<&str>) -> String {
        let provider = self.provider;
        if provider.control_guid.is_some() {
            let what = "the controlGuid is only in the manifest; the declaration has the guid";
            self.note(provider.at, what);
        }
        let name = &provider.name;
        let mut settings = vec![quote!(name = #name)];
        if Guid::of_name(name) != Ok(provider.guid) {
            let guid = provider.guid.to_string();
            settings.push(quote!(guid = #guid));
        }
        if let Some(group) = provider.group_guid {
            let group = group.to_string();
            settings.push(quote!(group = #group));
        }
        settings.push(quote!(encoding = manifest));
        settings.extend(file.map(|file| quote!(manifest = #file)));
        let mut items = Vec::new();
        let keywords = self.keywords(&mut items);
        let tasks = self.tasks(&mut items);
        let opcodes = self.opcodes(&mut items);
        let channels = self.channels(&mut items);
        let names = Names {
            keywords,
            tasks,
            opcodes,
            channels,
        };
        let mut events = Vec::new();
        let mut taken = HashSet::new();
        for event in &provider.events {
            match self.event(event, &names, &mut taken) {
                Ok(source) => events.push(source),
                Err(why) => {
                    let what = format!(
                        "event {} version {} was not imported: {why}",
                        event.id, event.version
                    );
                    self.note(event.at, what);
                }
            }
        }
        for ((at, width), name) in std::mem::take(&mut self.maps) {
            if let Some(map) = provider.maps.get(at) {
                items.push(self.map_type(map, width, &name));
            }
        }
        items.append(&mut self.structures);
        items.append(&mut events);
        let doc = self.describe(provider.message);
        let module = ident(module);
        let outside = print(quote! {
            #doc
            #[wdk_etw::provider(#(#settings),*)]
            pub mod #module {}
        });
        let mut source = outside.trim_end().trim_end_matches('}').to_owned();
        source.push('\n');
        // An empty line between items makes the declaration easier to read.
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                source.push('\n');
            }
            for line in print(item).lines() {
                if !line.is_empty() {
                    source.push_str("    ");
                    source.push_str(line);
                }
                source.push('\n');
            }
        }
        source.push_str("}\n");
        source
    }

    fn keywords(&mut self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        for keyword in &self.provider.keywords {
            if keyword.standard {
                let what = format!(
                    "the keyword {} is reserved for Microsoft and was removed from the events",
                    keyword.name.written
                );
                if keyword.mask != 0 {
                    self.note(keyword.at, what);
                }
                idents.push(None);
                continue;
            }
            let name = unique(&shouting(keyword.name.local()), &mut taken);
            let (doc, rename) = (
                self.describe(keyword.message),
                rename(&name, keyword.name.local()),
            );
            let constant = ident(&name);
            let bit = Literal::u32_unsuffixed(keyword.mask.trailing_zeros());
            items.push(quote! {
                #doc
                #[keyword]
                #rename
                pub const #constant: Keyword = Keyword::bit(#bit);
            });
            idents.push(Some(name));
        }
        idents
    }

    fn tasks(&self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        let mut variants = Vec::new();
        for task in &self.provider.tasks {
            if task.value == 0 {
                idents.push(None);
                continue;
            }
            let name = unique(&pascal(task.name.local()), &mut taken);
            let (doc, rename) = (
                self.describe(task.message),
                rename(&name, task.name.local()),
            );
            let variant = ident(&name);
            let value = Literal::u16_unsuffixed(task.value);
            variants.push(quote!(#doc #rename #variant = #value));
            idents.push(Some(name));
        }
        if !variants.is_empty() {
            items.push(quote!(#[tasks] enum Task { #(#variants,)* }));
        }
        idents
    }

    fn opcodes(&self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let provider = self.provider;
        // Opcodes with the names of winmeta.xml's are predefined.
        let standard = winmeta::OPCODES.iter();
        let mut taken: HashSet<String> = standard.map(|one| one.ident.to_owned()).collect();
        let mut by_value: BTreeMap<u8, String> = BTreeMap::new();
        let mut idents = Vec::new();
        let mut list = Vec::new();
        for opcode in &provider.opcodes {
            if opcode.standard {
                let mut known = winmeta::OPCODES.iter();
                let known = known.find(|one| one.value == opcode.value);
                idents.push(known.map(|one| one.ident.to_owned()));
                continue;
            }
            // A declaration has one list of opcodes; the names of a task's opcodes are prefixed
            // with the task's name.
            if let Some(known) = by_value.get(&opcode.value) {
                idents.push(Some(known.clone()));
                continue;
            }
            let task = opcode.task.map(|task| provider.tasks[task].name.local());
            let whole = format!("{}_{}", task.unwrap_or_default(), opcode.name.local());
            let name = unique(&pascal(&whole), &mut taken);
            by_value.insert(opcode.value, name.clone());
            list.push((name.clone(), opcode));
            idents.push(Some(name));
        }
        // Opcodes of different tasks can share a name; the provider's own opcodes have precedence.
        let own = list.iter().filter(|(_, opcode)| opcode.task.is_none());
        let mut names: HashSet<&str> = own.map(|(_, opcode)| opcode.name.local()).collect();
        let mut variants = Vec::new();
        for (name, opcode) in list {
            let doc = self.describe(opcode.message);
            let is_first = opcode.task.is_none() || names.insert(opcode.name.local());
            let rename = is_first.then(|| rename(&name, opcode.name.local()));
            let variant = ident(&name);
            let value = Literal::u8_unsuffixed(opcode.value);
            variants.push(quote!(#doc #rename #variant = #value));
        }
        if !variants.is_empty() {
            items.push(quote!(#[opcodes] enum Opcode { #(#variants,)* }));
        }
        idents
    }

    fn channels(&self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        let mut variants = Vec::new();
        for channel in &self.provider.channels {
            if channel.value < FIRST_CHANNEL {
                idents.push(None);
                continue;
            }
            let id = channel.id.as_deref().unwrap_or(&channel.name);
            let name = unique(&pascal(id), &mut taken);
            let (doc, rename) = (self.describe(channel.message), rename(&name, &channel.name));
            let (variant, kind) = (ident(&name), kind_of_channel(&channel.kind));
            let value = Literal::u8_unsuffixed(channel.value);
            variants.push(quote!(#doc #[channel(#kind)] #rename #variant = #value));
            idents.push(Some(name));
        }
        if !variants.is_empty() {
            items.push(quote!(#[channels] enum Channel { #(#variants,)* }));
        }
        idents
    }

    fn map_type(&mut self, map: &Map, width: &'static str, name: &str) -> TokenStream {
        let mut taken = HashSet::new();
        let mut variants = Vec::new();
        for item in &map.items {
            if map.is_bits && !item.value.is_power_of_two() {
                let what = format!(
                    "the entry {:#x} is not a single bit and was not imported",
                    item.value
                );
                self.note(item.at, what);
                continue;
            }
            let most = match width {
                "u8" => u32::from(u8::MAX),
                "u16" => u32::from(u16::MAX),
                _ => u32::MAX,
            };
            if item.value > most {
                let what = format!(
                    "the entry {:#x} does not fit in {width} and was not imported",
                    item.value
                );
                self.note(item.at, what);
                continue;
            }
            let text = self.value(item.message).unwrap_or_default();
            let name = unique(&pascal(text), &mut taken);
            let rename = rename(&name, text);
            let variant = ident(&name);
            let value = if map.is_bits {
                let bit = Literal::u32_unsuffixed(item.value.trailing_zeros());
                quote!(1 << #bit)
            } else {
                Literal::u32_unsuffixed(item.value).into_token_stream()
            };
            variants.push(quote!(#rename #variant = #value));
        }
        let kind = if map.is_bits {
            quote!(#[bitmap])
        } else {
            quote!(#[map])
        };
        let width = ident(width);
        let repr = (width != "u32").then(|| quote!(#[repr(#width)]));
        let name = ident(name);
        quote! {
            #kind
            #repr
            pub enum #name { #(#variants,)* }
        }
    }

    /// Returns the bit of an event's channel in a declaration, which does not count imported
    /// channels.
    fn channel_bit_declared(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        event.channel.map_or(0, |channel| {
            let before = self.provider.channels[..channel].iter();
            let place = before.filter(|one| one.value >= FIRST_CHANNEL).count();
            FIRST.checked_sub(place).map_or(0, |bit| 1 << bit)
        })
    }

    fn event(
        &mut self,
        event: &Event,
        names: &Names,
        taken: &mut HashSet<String>,
    ) -> Result<TokenStream, String> {
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
                "its channel {} is imported from the system",
                provider.channels[channel].name
            ));
        }
        if provider.channel_bit(event) != self.channel_bit_declared(event) {
            return Err(
                "its channel keyword would change, because a declaration does not count imported \
                 channels"
                    .to_owned(),
            );
        }
        let name = unique(&snake(&whole), taken);
        let level = event.level.map_or(0, |at| provider.levels[at].value);
        let known = winmeta::LEVELS.iter().find(|one| one.value == level);
        let level = known.map_or_else(
            || Literal::u8_unsuffixed(level).into_token_stream(),
            |known| ident(known.ident).into_token_stream(),
        );
        let keywords = event.keywords.iter();
        let keywords = keywords.filter_map(|at| names.keywords[*at].as_deref());
        let keywords: Vec<Ident> = keywords.map(ident).collect();
        let keywords = if keywords.is_empty() {
            quote!(none)
        } else {
            quote!(#(#keywords)|*)
        };
        let id = Literal::u16_unsuffixed(event.id);
        let mut settings = vec![quote!(id = #id)];
        if event.version != 0 {
            let version = Literal::u8_unsuffixed(event.version);
            settings.push(quote!(version = #version));
        }
        settings.push(quote!(level = #level));
        settings.push(quote!(keyword = #keywords));
        for (setting, name) in [
            ("task", event.task.and_then(|at| names.tasks[at].as_deref())),
            (
                "opcode",
                event.opcode.and_then(|at| names.opcodes[at].as_deref()),
            ),
            (
                "channel",
                event.channel.and_then(|at| names.channels[at].as_deref()),
            ),
        ] {
            if let Some(name) = name {
                let (setting, name) = (ident(setting), ident(name));
                settings.push(quote!(#setting = #name));
            }
        }
        if let Some(whole) = &event.name
            && wdk_etw_schema::pascal_case(&name) != *whole
        {
            settings.push(quote!(name = #whole));
        }
        if let Some(message) = self.value(event.message) {
            let message = renumber(message, &numbers);
            settings.push(quote!(message = #message));
        }
        let name = ident(&name);
        let fields = fields.iter().map(fields::Declared::parameter);
        Ok(quote! {
            #[event(#(#settings),*)]
            pub fn #name(#(#fields),*);
        })
    }
}

/// The first number of a provider's own channels.
const FIRST_CHANNEL: u8 = 16;

/// Returns the name of a channel's type, one of four.
fn kind_of_channel(kind: &str) -> Ident {
    ident(match kind {
        "Admin" => "Admin",
        "Operational" => "Operational",
        "Analytic" => "Analytic",
        _ => "Debug",
    })
}

/// Converts a message that numbers the template's fields to one that numbers the declaration's
/// fields.
fn renumber(message: &str, numbers: &[usize]) -> String {
    let message = replace_fields(message, |number| {
        numbers.get(number.checked_sub(1)?).copied()
    });
    without_loose_percent_signs(&message)
}

/// Removes each `%` before a character that it does not change, which a declaration's message cannot
/// have. Viewers show the same text.
fn without_loose_percent_signs(message: &str) -> String {
    let mut out = String::new();
    let mut characters = message.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('%', Some('%')) => {
                characters.next();
                out.push_str("%%");
            }
            ('%', Some(after)) if after.is_ascii_digit() || "nrtb!".contains(*after) => {
                out.push('%');
            }
            ('%', Some(_)) => {}
            ('%', None) => out.push_str("%%"),
            _ => out.push(character),
        }
    }
    out
}
