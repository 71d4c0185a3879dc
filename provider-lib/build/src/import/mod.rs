//! Imports a manifest as a Rust declaration, for drivers ported from C.
//!
//! The declaration names the manifest (`manifest = "…"`), and the resources are still compiled from
//! the manifest. So strings in several languages, the sessions of channels (`publishing`), and
//! events that the driver no longer writes are kept. The build rejects a declaration that disagrees
//! with the manifest. Without that setting, the resources are compiled from the declaration.

mod fields;
mod names;
mod source;
mod types;
mod verify;
mod writer;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
};

use etw_manifest::{Channel, Event, Logging, Manifest, Map, Provider, is_name, replace_fields};
use etw_wire::{Guid, winmeta};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, quote};
use syn::Ident;
use wdk_etw_schema::{ChannelSettings, MIN_LOG_SIZE};

use names::{ident, pascal, rename, renamed, shouting, snake, unique, unique_named};
use source::{Part, Source};
use types::max_of;
use verify::{LeftOut, Missing};
pub use writer::Note;
use writer::Writer;

/// An imported declaration.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The Rust source.
    pub source: String,
    /// The parts of the manifest that the declaration cannot express.
    pub notes: Vec<Note>,
    /// The numbers of events.
    pub counts: Counts,
}

/// The numbers of a manifest's events, by import result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All events.
    pub all: usize,
    /// The events that are not in the declaration.
    pub left_out: usize,
    /// The events that the declaration describes differently, or without their message.
    pub changed: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, left_out, changed } = *self;
        let imported = all.saturating_sub(left_out);
        write!(
            f,
            "imported {imported} of {all} events: {} as they are in the manifest, {changed} with \
             changes; {left_out} omitted",
            imported.saturating_sub(changed)
        )
    }
}

/// Returns the declaration of a manifest's providers, with a module for each. If `file` is given,
/// the modules name it as their manifest.
#[must_use]
pub fn declaration(manifest: &Manifest, file: Option<&str>) -> Imported {
    let mut imported = Imported::default();
    let mut modules = HashSet::new();
    for provider in &manifest.providers {
        let module = if manifest.providers.len() == 1 || provider.symbol.is_empty() {
            "trace".to_owned()
        } else {
            snake(&provider.symbol)
        };
        let module = unique(&module, &mut modules);
        let source = import(manifest, provider, &module, file, &mut imported);
        if !imported.source.is_empty() && !source.is_empty() {
            imported.source.push('\n');
        }
        imported.source.push_str(&source);
    }
    // A part that several events use is noted only once.
    let mut known = HashSet::new();
    imported.notes.retain(|note| known.insert(note.clone()));
    imported.notes.sort_by_key(|note| note.at);
    imported
}

/// Returns a provider's module in a form that the declaration parser accepts: unsupported parts are
/// omitted and noted.
fn import(
    manifest: &Manifest,
    provider: &Provider,
    module: &str,
    file: Option<&str>,
    imported: &mut Imported,
) -> String {
    let Imported { notes, counts, .. } = imported;
    counts.all += provider.events.len();
    let mut left_out = LeftOut::new();
    loop {
        let mut found = Vec::new();
        let mut writer = Writer {
            manifest,
            provider,
            notes: &mut found,
            maps: BTreeMap::new(),
            structures: Vec::new(),
            idents: reserved_types(),
            values: reserved_values(),
            map_names: HashMap::new(),
        };
        let text = writer.provider(module, file, &left_out);
        match verify::accepted(&text.source, &text.parts, &mut left_out) {
            Ok(None) => {}
            Ok(Some(declared)) => {
                notes.append(&mut found);
                let mut changed: BTreeSet<usize> = left_out.keys().copied().collect();
                for (event, note) in verify::differences(manifest, provider, &declared) {
                    changed.insert(event);
                    notes.push(note);
                }
                let declared: HashSet<usize> =
                    text.parts.iter().filter_map(|part| part.event).collect();
                counts.left_out += provider.events.len().saturating_sub(declared.len());
                counts.changed += changed.iter().filter(|at| declared.contains(at)).count();
                return text.source;
            }
            Err(why) => {
                counts.left_out += provider.events.len();
                notes.push(Note {
                    at: provider.at,
                    what: format!(
                        "the provider {} was not imported, because a declaration cannot express \
                         it: {why}",
                        provider.name
                    ),
                });
                return String::new();
            }
        }
    }
}

/// Returns the names that are not available for the declaration's types.
fn reserved_types() -> HashSet<String> {
    let known = wdk_etw_schema::type_names().map(str::to_owned);
    // Types that fields cannot have, and names that declarations use.
    let others = ["String", "Vec", "Task", "Opcode", "Channel", "Level", "Keyword"];
    known.chain(others.map(str::to_owned)).collect()
}

/// Returns the names that are not available for the declaration's constants.
fn reserved_values() -> HashSet<String> {
    ["PROVIDER", "ID", "GROUP"].map(str::to_owned).into()
}

/// Returns an item as source text.
fn print(item: TokenStream) -> String {
    let text = item.to_string();
    syn::parse2(item).map_or(text, |item| {
        prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] })
    })
}

/// The names that a provider's definitions have in the declaration.
struct Names {
    keywords: Vec<Option<String>>,
    tasks: Vec<Option<String>>,
    opcodes: Vec<Option<String>>,
    channels: Vec<Option<String>>,
    levels: Vec<Option<String>>,
}

impl Writer<'_> {
    fn provider(&mut self, module: &str, file: Option<&str>, left_out: &LeftOut) -> Source {
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
        if provider.templates.iter().any(|one| one.user_data.is_some()) {
            let what = "the templates' own XML (`UserData`) is only in the manifest";
            self.note(provider.at, what);
        }
        let mut items = Vec::new();
        let keywords = self.keywords(&mut items);
        let tasks = self.tasks(&mut items);
        let opcodes = self.opcodes(&tasks, &mut items);
        let channels = self.channels(&mut items);
        let levels = self.levels(&mut items);
        let names = Names { keywords, tasks, opcodes, channels, levels };
        let mut events = Vec::new();
        let mut taken = HashSet::new();
        for (number, event) in provider.events.iter().enumerate() {
            let missing = left_out.get(&number);
            let source = match missing {
                Some(Missing::Event(why)) => Err(why.clone()),
                Some(Missing::Message(_)) => self.event(event, &names, &mut taken, false),
                None => self.event(event, &names, &mut taken, true),
            };
            let (part, why) = match (source, missing) {
                (Err(why), _) => ("", why),
                (Ok(source), missing) => {
                    events.push((source, number));
                    let Some(Missing::Message(why)) = missing else { continue };
                    ("the message of ", why.clone())
                }
            };
            let (id, version) = (event.id, event.version);
            self.note(
                event.at,
                format!("{part}event {id} version {version} was not imported: {why}"),
            );
        }
        for ((at, width), name) in std::mem::take(&mut self.maps) {
            if let Some(map) = provider.maps.get(at) {
                let keeps_name = self.map_names.get(&map.name) == Some(&at);
                items.push(self.map_type(map, width, &name, keeps_name));
            }
        }
        items.append(&mut self.structures);
        let items = items.into_iter().map(|item| (item, None));
        let events = events.into_iter().map(|(item, at)| (item, Some(at)));
        let doc = self.describe(provider.message);
        let module = ident(module);
        let outside = print(quote! {
            #doc
            #[wdk_etw::provider(#(#settings),*)]
            pub mod #module {}
        });
        let mut source = outside.trim_end().trim_end_matches('}').to_owned();
        source.push('\n');
        let mut parts = Vec::new();
        // An empty line between items makes the declaration easier to read.
        for (number, (item, event)) in items.chain(events).enumerate() {
            if number > 0 {
                source.push('\n');
            }
            let first = source.lines().count() + 1;
            for line in print(item).lines() {
                if !line.is_empty() {
                    source.push_str("    ");
                    source.push_str(line);
                }
                source.push('\n');
            }
            let lines = first..source.lines().count() + 1;
            parts.push(Part { lines, event });
        }
        source.push_str("}\n");
        Source { source, parts }
    }

    fn keywords(&mut self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        const OWN: u64 = (1 << 48) - 1;
        let mut bits = HashMap::new();
        let mut names = HashSet::new();
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
            // The manifest reader refuses such masks, but resources can contain them.
            if !keyword.mask.is_power_of_two() || keyword.mask & OWN == 0 {
                let what = format!(
                    "the keyword {} has the mask {:#x}, which is not one of the bits 0 to 47, and \
                     was removed from the events",
                    keyword.name.written, keyword.mask
                );
                self.note(keyword.at, what);
                idents.push(None);
                continue;
            }
            if let Some(known) = bits.get(&keyword.mask) {
                let what = format!(
                    "the keyword {} has the mask of another keyword, `{known}`, which replaces it",
                    keyword.name.written
                );
                idents.push(Some(String::clone(known)));
                self.note(keyword.at, what);
                continue;
            }
            let local = keyword.name.local();
            let (name, rename) =
                unique_named(&shouting(local), local, &mut self.values, &mut names);
            bits.insert(keyword.mask, name.clone());
            let doc = self.describe(keyword.message);
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

    /// Returns the unique name of an enum's variant, and the variant. `taken` contains the enum's
    /// identifiers, and `names` the names in the declaration's manifest.
    fn variant(
        &self,
        local: &str,
        message: Option<usize>,
        value: &Literal,
        taken: &mut HashSet<String>,
        names: &mut HashSet<String>,
    ) -> (String, TokenStream) {
        let (name, rename) = unique_named(&pascal(local), local, taken, names);
        let (doc, variant) = (self.describe(message), ident(&name));
        (name, quote!(#doc #rename #variant = #value))
    }

    fn levels(&self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let standard = winmeta::LEVELS.iter();
        let mut taken: HashSet<String> = standard.map(|one| one.ident.to_owned()).collect();
        let mut values = HashSet::new();
        let mut names = HashSet::new();
        let mut idents = Vec::new();
        let mut variants = Vec::new();
        for level in &self.provider.levels {
            if level.value < FIRST_LEVEL || !values.insert(level.value) {
                idents.push(None);
                continue;
            }
            let value = Literal::u8_unsuffixed(level.value);
            let local = level.name.local();
            let (name, variant) =
                self.variant(local, level.message, &value, &mut taken, &mut names);
            variants.push(variant);
            idents.push(Some(name));
        }
        if !variants.is_empty() {
            items.push(quote!(#[levels] enum Level { #(#variants,)* }));
        }
        idents
    }

    fn tasks(&mut self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        let mut variants = Vec::new();
        let mut by_value = HashMap::new();
        let mut names = HashSet::new();
        for task in &self.provider.tasks {
            if task.value == 0 {
                idents.push(None);
                continue;
            }
            if let Some(known) = by_value.get(&task.value) {
                let what = format!("the task {} has the number of another", task.name.written);
                idents.push(Some(String::clone(known)));
                self.note(task.at, what);
                continue;
            }
            let value = Literal::u16_unsuffixed(task.value);
            let local = task.name.local();
            let (name, variant) = self.variant(local, task.message, &value, &mut taken, &mut names);
            by_value.insert(task.value, name.clone());
            variants.push(variant);
            idents.push(Some(name));
        }
        if !variants.is_empty() {
            items.push(quote!(#[tasks] enum Task { #(#variants,)* }));
        }
        idents
    }

    fn opcodes(
        &mut self,
        tasks: &[Option<String>],
        items: &mut Vec<TokenStream>,
    ) -> Vec<Option<String>> {
        let provider = self.provider;
        // Opcodes with names from winmeta.xml are predefined.
        let standard = winmeta::OPCODES.iter();
        let mut of_all: HashSet<String> = standard.map(|one| one.ident.to_owned()).collect();
        let mut idents: Vec<Option<String>> = vec![None; provider.opcodes.len()];
        let mut lists: BTreeMap<Option<usize>, Vec<TokenStream>> = BTreeMap::new();
        let mut taken: HashMap<Option<usize>, HashSet<String>> = HashMap::new();
        let mut by_value: HashMap<(Option<usize>, u8), String> = HashMap::new();
        let mut names: HashMap<Option<usize>, HashSet<String>> = HashMap::new();
        // An event of a task can have the task's opcodes and the opcodes of all tasks.
        let (own, of_tasks): (Vec<_>, Vec<_>) =
            provider.opcodes.iter().enumerate().partition(|(_, opcode)| opcode.task.is_none());
        for (at, opcode) in own.into_iter().chain(of_tasks) {
            if let Some(known) =
                winmeta::OPCODES.iter().find(|one| opcode.standard && one.value == opcode.value)
            {
                idents[at] = Some(known.ident.to_owned());
                continue;
            }
            if !(FIRST_OPCODE..=LAST_OPCODE).contains(&opcode.value) {
                let mut known = winmeta::OPCODES.iter();
                let known = known.find(|one| one.value == opcode.value);
                idents[at] = known.map(|one| one.ident.to_owned());
                let what = format!(
                    "the opcode {} has the number {}, which is reserved for Microsoft",
                    opcode.name.written, opcode.value
                );
                self.note(opcode.at, what);
                continue;
            }
            // A declaration cannot contain a task without a number.
            let task = opcode
                .task
                .filter(|task| tasks.get(*task).is_some_and(Option::is_some))
                // Tasks with the same number are one task.
                .and_then(|task| tasks.iter().position(|first| *first == tasks[task]));
            if let Some(known) = by_value.get(&(task, opcode.value)) {
                idents[at] = Some(known.clone());
                continue;
            }
            let variants = match task {
                None => &mut of_all,
                Some(_) => taken.entry(task).or_insert_with(|| of_all.clone()),
            };
            let value = Literal::u8_unsuffixed(opcode.value);
            let (local, names) = (opcode.name.local(), names.entry(task).or_default());
            let (name, variant) = self.variant(local, opcode.message, &value, variants, names);
            by_value.insert((task, opcode.value), name.clone());
            lists.entry(task).or_default().push(variant);
            idents[at] = Some(name);
        }
        for (task, variants) in lists {
            let task = task.and_then(|task| tasks.get(task)?.as_deref());
            items.push(task.map_or_else(
                || quote!(#[opcodes] enum Opcode { #(#variants,)* }),
                |task| {
                    let (list, task) = (ident(&format!("{task}Opcode")), ident(task));
                    quote!(#[opcodes(task = #task)] enum #list { #(#variants,)* })
                },
            ));
        }
        idents
    }

    fn channels(&mut self, items: &mut Vec<TokenStream>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut idents = Vec::new();
        let mut variants = Vec::new();
        let mut values = HashSet::new();
        let mut names = HashSet::new();
        let provider = self.provider;
        for channel in &provider.channels {
            // Only resources can contain a second channel with the same number, or a ninth channel.
            if !is_declared(channel)
                || values.len() >= MAX_CHANNELS
                || !values.insert(channel.value)
            {
                idents.push(None);
                continue;
            }
            let id = channel.id.as_deref().unwrap_or(&channel.name);
            let doc = self.describe(channel.message);
            let (name, rename) = unique_named(&pascal(id), &channel.name, &mut taken, &mut names);
            let (rename, kind) = if channel.value < FIRST_CHANNEL {
                (TokenStream::new(), ident("Import"))
            } else {
                (rename, ident(kind_name(&channel.kind)))
            };
            let variant = ident(&name);
            let value = Literal::u8_unsuffixed(channel.value);
            let settings = self.channel_settings(channel);
            variants.push(quote!(#doc #[channel(#kind #settings)] #rename #variant = #value));
            idents.push(Some(name));
        }
        if !variants.is_empty() {
            items.push(quote!(#[channels] enum Channel { #(#variants,)* }));
        }
        idents
    }

    /// Returns a channel's settings as in a declaration, each after a comma.
    fn channel_settings(&mut self, channel: &Channel) -> TokenStream {
        let mut written = TokenStream::new();
        if channel.imported {
            return written;
        }
        let lost = |what: &str| format!("{what} of the channel {} is omitted", channel.name);
        if let Some(enabled) = channel.enabled {
            written.extend(quote!(, enabled = #enabled));
        }
        if let Some(isolation) = channel.isolation.as_deref() {
            let isolation = ident(isolation);
            written.extend(quote!(, isolation = #isolation));
        }
        match channel.access.as_deref() {
            Some(access) if ChannelSettings::is_sddl(access) => {
                written.extend(quote!(, access = #access));
            }
            Some(access) => self.note(
                channel.at,
                format!("{}: {access:?} is not a security descriptor in SDDL", lost("the access")),
            ),
            None => {}
        }
        let Logging { auto_backup, retention, max_size } = channel.logging;
        match max_size {
            Some(size) if size >= MIN_LOG_SIZE => {
                let size = Literal::u64_unsuffixed(size);
                written.extend(quote!(, max_size = #size));
            }
            Some(size) => self.note(
                channel.at,
                format!("{}: {size} is less than {MIN_LOG_SIZE}", lost("the maxSize")),
            ),
            None => {}
        }
        if let Some(retention) = retention {
            written.extend(quote!(, retention = #retention));
        }
        let settings = ChannelSettings { auto_backup, retention, ..ChannelSettings::default() };
        match (settings.refused_backup(kind_name(&channel.kind)), auto_backup) {
            (Some(why), _) => {
                let why = why.replace('`', "");
                self.note(channel.at, format!("{}: {why}", lost("the autoBackup")));
            }
            (None, Some(auto_backup)) => written.extend(quote!(, auto_backup = #auto_backup)),
            (None, None) => {}
        }
        if !channel.inside.is_empty() {
            let what = lost("the session (`publishing`)");
            self.note(channel.at, format!("{what}: a declaration has no such setting"));
        }
        written
    }

    fn map_type(
        &self,
        map: &Map,
        width: &'static str,
        name: &str,
        keeps_name: bool,
    ) -> TokenStream {
        let mut taken = HashSet::new();
        let mut values = HashSet::new();
        let mut variants = Vec::new();
        for item in &map.items {
            // A type of another width may be able to hold the entry; the differences are noted.
            if item.value > max_of(width) || !values.insert(item.value) {
                continue;
            }
            let text = self.value(item.message).unwrap_or_default();
            let usual = pascal(text);
            let name = unique(&usual, &mut taken);
            // An entry's string may be empty, which an identifier cannot express.
            let rename = if text.is_empty() { renamed(text) } else { rename(&name, text) };
            let variant = ident(&name);
            let value = match (map.is_bits, item.value.is_power_of_two()) {
                (true, true) => {
                    let bit = Literal::u32_unsuffixed(item.value.trailing_zeros());
                    quote!(1 << #bit)
                }
                (true, false) => mask(item.value),
                (false, _) => Literal::u32_unsuffixed(item.value).into_token_stream(),
            };
            variants.push(quote!(#rename #variant = #value));
        }
        let kind = if map.is_bits { quote!(#[bitmap]) } else { quote!(#[map]) };
        let width = ident(width);
        let repr = (width != "u32").then(|| quote!(#[repr(#width)]));
        let is_renamed = name != map.name && keeps_name;
        let renamed = is_renamed.then(|| renamed(&map.name));
        let name = ident(name);
        quote! {
            #kind
            #repr
            #renamed
            pub enum #name { #(#variants,)* }
        }
    }

    /// Returns the keyword bit of an event's channel in the declaration, where only the channels
    /// that a declaration can contain are numbered.
    fn channel_bit_declared(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        event.channel.map_or(0, |channel| {
            let before = self.provider.channels[..channel].iter();
            let place = before.filter(|one| is_declared(one)).count();
            FIRST.checked_sub(place).map_or(0, |bit| 1 << bit)
        })
    }

    /// Returns the name of an opcode in an event of a task. Viewers show the task's opcode, if it
    /// has one with the same number.
    fn opcode<'a>(&self, at: usize, task: Option<&str>, names: &'a Names) -> Option<&'a str> {
        let opcodes = &self.provider.opcodes;
        let of_task = opcodes.iter().position(|one| {
            let own = one.task.and_then(|at| names.tasks.get(at)?.as_deref());
            own.is_some() && own == task && one.value == opcodes[at].value
        });
        names.opcodes[of_task.unwrap_or(at)].as_deref()
    }

    fn event(
        &mut self,
        event: &Event,
        names: &Names,
        taken: &mut HashSet<String>,
        has_message: bool,
    ) -> Result<TokenStream, String> {
        let provider = self.provider;
        let texts = [event.symbol.as_deref(), event.name.as_deref()];
        let mut texts = texts.into_iter().flatten();
        let symbol = texts.find(|text| !text.is_empty());
        let whole = symbol.map_or_else(|| format!("event_{}", event.id), str::to_owned);
        let (fields, numbers) = match event.template {
            Some(template) => {
                let template = &provider.templates[template];
                self.fields(&template.properties, &whole, false)?
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
                "its channel keyword would change, because a declaration cannot have all channels \
                 before its channel"
                    .to_owned(),
            );
        }
        let name = unique(&snake(&whole), taken);
        let own = event.level.and_then(|at| names.levels[at].as_deref());
        let level = event.level.map_or(0, |at| provider.levels[at].value);
        let known = winmeta::LEVELS.iter().find(|one| one.value == level);
        let level = own.or_else(|| known.map(|known| known.ident)).map_or_else(
            || Literal::u8_unsuffixed(level).into_token_stream(),
            |name| ident(name).into_token_stream(),
        );
        let keywords = event.keywords.iter();
        let keywords = keywords.filter_map(|at| names.keywords[*at].as_deref());
        let keywords: Vec<Ident> = keywords.map(ident).collect();
        let keywords = if keywords.is_empty() { quote!(none) } else { quote!(#(#keywords)|*) };
        let id = Literal::u16_unsuffixed(event.id);
        let mut settings = vec![quote!(id = #id)];
        if event.version != 0 {
            let version = Literal::u8_unsuffixed(event.version);
            settings.push(quote!(version = #version));
        }
        settings.push(quote!(level = #level));
        settings.push(quote!(keyword = #keywords));
        let task = event.task.and_then(|at| names.tasks[at].as_deref());
        for (setting, name) in [
            ("task", task),
            ("opcode", event.opcode.and_then(|at| self.opcode(at, task, names))),
            ("channel", event.channel.and_then(|at| names.channels[at].as_deref())),
        ] {
            if let Some(name) = name {
                let (setting, name) = (ident(setting), ident(name));
                settings.push(quote!(#setting = #name));
            }
        }
        if let Some(whole) = &event.name
            && !whole.is_empty()
            && wdk_etw_schema::pascal_case(&name) != *whole
        {
            settings.push(quote!(name = #whole));
        }
        let message = self.value(event.message).filter(|_| has_message);
        if let Some(message) = message {
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

/// The first number of a provider's own levels.
const FIRST_LEVEL: u8 = 16;
/// The first number of a provider's own channels.
const FIRST_CHANNEL: u8 = 16;
/// The numbers of the Windows logs.
const FIRST_LOG: u8 = 8;
const LAST_LOG: u8 = 10;
/// The maximum number of a provider's own channels.
const MAX_CHANNELS: usize = 8;
/// The numbers of a provider's own opcodes.
const FIRST_OPCODE: u8 = 10;
const LAST_OPCODE: u8 = 239;

/// Returns a mask of several bits, or of none, in hexadecimal.
fn mask(value: u32) -> TokenStream {
    let text = format!("{value:#x}");
    text.parse().unwrap_or_else(|_| Literal::u32_unsuffixed(value).into_token_stream())
}

/// Returns whether a declaration can contain a channel: one of the provider's own, or a Windows log
/// that the provider lists.
fn is_declared(channel: &Channel) -> bool {
    channel.value >= FIRST_CHANNEL && is_name(&channel.name)
        || channel.imported
            && channel.declared
            && FIRST_LOG <= channel.value
            && channel.value <= LAST_LOG
}

/// Returns a channel's type as declarations write it.
fn kind_name(kind: &str) -> &'static str {
    match kind {
        "Admin" => "Admin",
        "Operational" => "Operational",
        "Analytic" => "Analytic",
        _ => "Debug",
    }
}

/// Converts a message that refers to the template's fields by number to one that refers to the
/// declaration's fields.
fn renumber(message: &str, numbers: &[usize]) -> String {
    let message = replace_fields(message, |number| numbers.get(number.checked_sub(1)?).copied());
    without_loose_percent_signs(&message)
}

/// Removes each `%` that has no effect on the character after it, because a declaration's message
/// cannot contain it. Viewers show the same text.
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
