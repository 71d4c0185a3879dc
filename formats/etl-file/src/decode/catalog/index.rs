//! Indexes manifests so that events can be looked up.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use etw_manifest::{
    self as model, Lenient, Manifest, ManifestError, Property, PropertyKind, QName, Size, TextRef,
};

use super::provider::{Channel, EventDefinition, Provider};
use etw_wire::InType;

use crate::decode::schema::{Count, Encoding, Field, Length, Presentation, Schema, ValueMap};

/// The preferred language of strings.
const CULTURE: &str = "en-US";

/// Reads a manifest's XML.
#[cfg(feature = "manifests")]
pub fn read_manifest(text: &str) -> Result<Lenient, ManifestError> {
    etw_manifest::read_lenient(text)
}

/// Returns the error of a build without a reader.
#[cfg(not(feature = "manifests"))]
pub fn read_manifest(_: &str) -> Result<Lenient, ManifestError> {
    let rule = etw_manifest::Rule::NoReader;
    Err(ManifestError { at: etw_manifest::Position::default(), rule })
}

/// Indexes the providers of a manifest.
pub fn providers(manifest: &Manifest) -> Vec<Provider> {
    let texts = Texts::new(manifest);
    manifest.providers.iter().map(|provider| texts.provider(provider)).collect()
}

/// The strings of a manifest.
struct Texts<'a> {
    manifest: &'a Manifest,
    /// The English strings, if the manifest's first language is another.
    english: HashMap<&'a str, &'a str>,
}

impl<'a> Texts<'a> {
    fn new(manifest: &'a Manifest) -> Self {
        let others = manifest.translations.iter();
        let english = others
            .filter(|one| one.culture == CULTURE && manifest.culture != CULTURE)
            .flat_map(|one| &one.texts)
            .map(|(id, value)| (id.as_str(), value.as_str()))
            .collect();
        Self { manifest, english }
    }

    fn get(&self, text: Option<TextRef>) -> Option<&'a str> {
        let text = self.manifest.texts.get(text?)?;
        let translated = self.english.get(text.id.as_str()).copied();
        Some(translated.filter(|_| !text.standard).unwrap_or(&text.value))
    }

    /// Returns the text to show for a definition: its message, or its name if it has no message.
    fn title(&self, message: Option<TextRef>, name: &QName) -> Arc<str> {
        self.get(message).unwrap_or(&name.written).into()
    }

    fn provider(&self, provider: &model::Provider) -> Provider {
        let levels = provider.levels.iter().filter(|one| !one.standard);
        let tasks = provider.tasks.iter().filter(|one| !one.standard);
        let opcodes = provider.opcodes.iter().filter(|one| !one.standard);
        let keywords = provider.keywords.iter().filter(|one| !one.standard);
        let maps: Vec<Arc<ValueMap>> = provider.maps.iter().map(|map| self.map(map)).collect();
        let templates: Vec<Arc<[Field]>> = provider
            .templates
            .iter()
            .map(|template| fields(&template.properties, &[], &maps).into())
            .collect();
        let mut events = HashMap::new();
        for event in &provider.events {
            let template = event.template.and_then(|at| templates.get(at));
            let definition = EventDefinition {
                schema: Schema {
                    event_name: event.name.clone().unwrap_or_default(),
                    tags: 0,
                    fields: template.cloned().unwrap_or_default(),
                },
                symbol: event.symbol.clone(),
                message: self.get(event.message).map(str::to_owned),
                ..EventDefinition::default()
            };
            events.insert((event.id, event.version), definition);
        }
        let task = |at: Option<usize>| {
            let task = at.and_then(|at| provider.tasks.get(at));
            task.map_or(0, |task| task.value)
        };
        Provider {
            name: provider.name.clone(),
            guid: provider.guid,
            control_guid: provider.control_guid,
            levels: levels.map(|one| (one.value, self.title(one.message, &one.name))).collect(),
            tasks: tasks.map(|one| (one.value, self.title(one.message, &one.name))).collect(),
            opcodes: opcodes
                .map(|one| {
                    let key = (task(one.task), one.value);
                    (key, self.title(one.message, &one.name))
                })
                .collect(),
            keywords: keywords
                .map(|one| (one.mask, self.title(one.message, &one.name).as_ref().to_owned()))
                .collect(),
            channels: (0..)
                .zip(&provider.channels)
                .map(|(at, channel)| {
                    let (name, bit) = (channel.name.as_str().into(), provider.bit_of_channel(at));
                    (channel.value, Channel { name, bit })
                })
                .collect(),
            events,
            ambiguous: BTreeSet::new(),
        }
    }

    fn map(&self, map: &model::Map) -> Arc<ValueMap> {
        let entries = map.items.iter().map(|item| {
            let title = self.get(item.message).map(Arc::from);
            let title = title.unwrap_or_else(|| item.value.to_string().into());
            (item.value, title)
        });
        Arc::new(ValueMap { bits: map.is_bits, entries: entries.collect() })
    }
}

/// Returns the fields' layout; for the members of a structure, `outer` holds the template's fields.
fn fields(properties: &[Property], outer: &[Property], maps: &[Arc<ValueMap>]) -> Vec<Field> {
    let name = |property: &Property| -> Arc<str> { property.name.as_str().into() };
    // A reference to a missing field becomes a reference to a non-numeric field.
    let referred = |list: &[Property], at: usize| list.get(at).map(name).unwrap_or_default();
    let field = |property: &Property| {
        let (in_type, out_type, map, members) = match &property.kind {
            PropertyKind::Data { in_type, out_type, explicit_out_type, map } => {
                let shown =
                    if *explicit_out_type { (*out_type).into() } else { Presentation::Default };
                let map = map.and_then(|at| maps.get(at)).cloned();
                (Encoding::Known(*in_type), shown, map, Vec::new())
            }
            PropertyKind::Unknown { in_type, out_type, map } => {
                let out_type = Presentation::from_winmeta(*out_type);
                let map = map.and_then(|at| maps.get(at)).cloned();
                (Encoding::from_code(*in_type), out_type, map, Vec::new())
            }
            PropertyKind::Struct(members) => {
                let members = fields(members, properties, maps);
                (InType::Struct.into(), Presentation::Default, None, members)
            }
        };
        Field {
            name: name(property),
            in_type,
            out_type,
            count: match property.count {
                Size::None => Count::Scalar,
                Size::Fixed(count) => Count::Fixed(count),
                Size::Field(at) => Count::Field(referred(properties, at)),
                Size::Outer(at) => Count::Field(referred(outer, at)),
            },
            length: match property.length {
                Size::None
                    if in_type == Encoding::Known(InType::Binary)
                        && out_type == Presentation::Ipv6 =>
                {
                    Length::Fixed(IPV6_LENGTH)
                }
                Size::None => Length::Natural,
                Size::Fixed(length) => Length::Fixed(length),
                Size::Field(at) => Length::Field(referred(properties, at)),
                Size::Outer(at) => Length::Field(referred(outer, at)),
            },
            tags: tags(property),
            map,
            fields: members,
        }
    };
    properties.iter().map(field).collect()
}

/// The implied length of a `win:Binary` field that is shown as an IPv6 address.
const IPV6_LENGTH: u16 = 16;

/// Returns the tag bits of a field, which manifests give in decimal or hexadecimal.
fn tags(property: &Property) -> u32 {
    let tags = property.others.iter().find(|(name, _)| name == "tags");
    tags.and_then(|(_, text)| model::number(text))
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use etw_manifest::{OutType, Text, Translation};

    use super::*;

    #[test]
    fn texts_are_english_unless_winmeta_defines_them() {
        let text = |id: &str, standard| Text {
            id: id.to_owned(),
            value: format!("{id} in German"),
            standard,
            ..Text::default()
        };
        let translated = |id: &str| (id.to_owned(), format!("{id} in English"));
        let mut manifest = Manifest {
            texts: vec![text("a", false), text("b", true), text("c", false)],
            culture: "de-DE".to_owned(),
            translations: vec![
                Translation {
                    culture: "fr-FR".to_owned(),
                    texts: vec![("c".to_owned(), "c in French".to_owned())],
                },
                Translation {
                    culture: CULTURE.to_owned(),
                    texts: vec![translated("a"), translated("b")],
                },
            ],
            ..Manifest::default()
        };
        let all = |manifest: &Manifest| {
            let texts = Texts::new(manifest);
            assert_eq!(texts.get(None), None);
            assert_eq!(texts.get(Some(3)), None);
            [0, 1, 2].map(|at| texts.get(Some(at)).unwrap().to_owned())
        };
        let german = ["a in German", "b in German", "c in German"];
        assert_eq!(all(&manifest), ["a in English", german[1], german[2]]);
        manifest.culture = CULTURE.to_owned();
        assert_eq!(all(&manifest), german);
    }

    fn property(in_type: InType, out_type: OutType, others: &[(&str, &str)]) -> Property {
        let others = others.iter();
        Property {
            name: "x".to_owned(),
            kind: PropertyKind::Data { in_type, out_type, explicit_out_type: true, map: None },
            count: Size::None,
            length: Size::None,
            others: others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            at: model::Position::default(),
        }
    }

    #[test]
    fn only_binary_data_that_is_an_ipv6_address_has_its_length() {
        let length = |in_type, out_type| {
            let list = fields(&[property(in_type, out_type, &[])], &[], &[]);
            list[0].length.clone()
        };
        assert_eq!(length(InType::Binary, OutType::Ipv6), Length::Fixed(16));
        assert_eq!(length(InType::Binary, OutType::HexBinary), Length::Natural);
        assert_eq!(length(InType::UInt32, OutType::Ipv6), Length::Natural);
    }

    #[test]
    fn tags_are_decimal_or_hexadecimal_digits_of_32_bits() {
        let tags = |others| tags(&property(InType::UInt32, OutType::UnsignedInt, others));
        assert_eq!(tags(&[]), 0);
        assert_eq!(tags(&[("tags", "5")]), 5);
        assert_eq!(tags(&[("other", "7"), ("tags", "0xFFFFFFFF")]), u32::MAX);
        assert_eq!(tags(&[("other", "7")]), 0);
        assert_eq!(tags(&[("tags", "0x100000000")]), 0);
        assert_eq!(tags(&[("tags", "x")]), 0);
    }
}
