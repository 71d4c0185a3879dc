//! The syntax of a manifest: the elements and attributes of eventman.xsd.
//!
//! Elements and attributes in other namespaces are allowed anywhere and ignored.

use roxmltree::Node as Xml;

use crate::error::Rule;

/// The user of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A compiler.
    Strict,
    /// A decoder.
    Lenient,
}

/// The syntax of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A value that is checked elsewhere.
    Any,
    /// A C identifier, or an empty value.
    Symbol,
    /// A GUID in the form `{8-4-4-4-12}`.
    Guid,
    /// Digits after `0x`.
    Hexadecimal,
    /// C identifiers, separated by dots.
    Namespace,
}

use Kind::{Any, Guid, Hexadecimal, Namespace, Symbol};

/// An element: its name, its attributes and the shapes of its children.
struct Shape {
    name: &'static str,
    attributes: &'static [(&'static str, Kind)],
    inner: Inner,
}

/// The content of an element.
enum Inner {
    /// Only these elements.
    Shapes(&'static [&'static Shape]),
    /// Any content.
    Anything,
}

const fn leaf(name: &'static str, attributes: &'static [(&'static str, Kind)]) -> Shape {
    Shape { name, attributes, inner: Inner::Shapes(&[]) }
}

const fn list(name: &'static str, inner: &'static [&'static Shape]) -> Shape {
    Shape { name, attributes: &[], inner: Inner::Shapes(inner) }
}

const fn with(
    name: &'static str,
    attributes: &'static [(&'static str, Kind)],
    inner: &'static [&'static Shape],
) -> Shape {
    Shape { name, attributes, inner: Inner::Shapes(inner) }
}

static DATA: Shape = leaf(
    "data",
    &[
        ("name", Any),
        ("inType", Any),
        ("outType", Any),
        ("map", Any),
        ("length", Any),
        ("count", Any),
        ("tags", Any),
    ],
);
static STRUCT: Shape = with("struct", &[("name", Any), ("count", Any), ("tags", Any)], &[&DATA]);
static USER_DATA: Shape = Shape { name: "UserData", attributes: &[], inner: Inner::Anything };
static TEMPLATE: Shape =
    with("template", &[("tid", Any), ("name", Any), ("tags", Any)], &[&DATA, &STRUCT, &USER_DATA]);
static EVENT: Shape = leaf(
    "event",
    &[
        ("value", Any),
        ("version", Any),
        ("symbol", Symbol),
        ("name", Any),
        ("attributes", Any),
        ("level", Any),
        ("template", Any),
        ("channel", Any),
        ("keywords", Any),
        ("task", Any),
        ("opcode", Any),
        ("message", Any),
        ("notLogged", Any),
        ("suppressProjection", Any),
    ],
);
static OPCODE: Shape = leaf(
    "opcode",
    &[("name", Any), ("symbol", Symbol), ("value", Any), ("mofValue", Any), ("message", Any)],
);
static OPCODES: Shape = list("opcodes", &[&OPCODE]);
static TASK: Shape = with(
    "task",
    &[("name", Any), ("symbol", Symbol), ("value", Any), ("eventGUID", Guid), ("message", Any)],
    &[&OPCODES],
);
static LEVEL: Shape =
    leaf("level", &[("name", Any), ("symbol", Symbol), ("value", Any), ("message", Any)]);
static KEYWORD: Shape =
    leaf("keyword", &[("name", Any), ("symbol", Symbol), ("mask", Hexadecimal), ("message", Any)]);
static FILTER: Shape = leaf(
    "filter",
    &[
        ("name", Any),
        ("value", Any),
        ("version", Any),
        ("symbol", Symbol),
        ("tid", Any),
        ("message", Any),
    ],
);
static LOGGING: Shape =
    list("logging", &[&leaf("autoBackup", &[]), &leaf("retention", &[]), &leaf("maxSize", &[])]);
static PUBLISHING: Shape = list(
    "publishing",
    &[
        &leaf("level", &[]),
        &leaf("keywords", &[]),
        &leaf("controlGuid", &[]),
        &leaf("bufferSize", &[]),
        &leaf("fileMax", &[]),
        &leaf("minBuffers", &[]),
        &leaf("maxBuffers", &[]),
        &leaf("latency", &[]),
        &leaf("clockType", &[]),
        &leaf("sidType", &[]),
    ],
);
static CHANNEL: Shape = with(
    "channel",
    &[
        ("name", Any),
        ("chid", Any),
        ("type", Any),
        ("symbol", Symbol),
        ("access", Any),
        ("isolation", Any),
        ("enabled", Any),
        ("value", Any),
        ("message", Any),
    ],
    &[&LOGGING, &PUBLISHING],
);
static IMPORT_CHANNEL: Shape =
    leaf("importChannel", &[("name", Any), ("chid", Any), ("symbol", Symbol)]);
static VALUE_MAP: Shape = with(
    "valueMap",
    &[("name", Any), ("symbol", Symbol)],
    &[&leaf("map", &[("value", Any), ("message", Any), ("symbol", Symbol)])],
);
static BIT_MAP: Shape = with(
    "bitMap",
    &[("name", Any), ("symbol", Symbol)],
    &[&leaf("map", &[("value", Hexadecimal), ("message", Any), ("symbol", Symbol)])],
);
static PATTERN_MAP: Shape = with(
    "patternMap",
    &[("name", Any), ("format", Any), ("symbol", Symbol)],
    &[&leaf("map", &[("name", Any), ("value", Any)])],
);
static PROVIDER: Shape = with(
    "provider",
    &[
        ("name", Any),
        ("namespace", Namespace),
        ("guid", Guid),
        ("controlGuid", Guid),
        ("resourceFileName", Any),
        ("messageFileName", Any),
        ("parameterFileName", Any),
        ("helpLink", Any),
        ("symbol", Symbol),
        ("message", Any),
        ("source", Any),
        ("warnOnApplicationCompatibilityError", Any),
    ],
    &[
        &list("channels", &[&CHANNEL, &IMPORT_CHANNEL]),
        &list("levels", &[&LEVEL]),
        &list("tasks", &[&TASK]),
        &OPCODES,
        &list("keywords", &[&KEYWORD]),
        &list("maps", &[&VALUE_MAP, &BIT_MAP]),
        &list("namedQueries", &[&list("patternMaps", &[&PATTERN_MAP])]),
        &list("templates", &[&TEMPLATE]),
        &list("events", &[&EVENT]),
        &list("filters", &[&FILTER]),
        // Attributes from SDKs that are newer than the schema.
        &leaf("traits", &[("groupGuid", Guid), ("includeName", Any)]),
    ],
);
static MESSAGE_TABLE: Shape = list(
    "messageTable",
    &[&leaf("message", &[("value", Any), ("mid", Any), ("message", Any), ("symbol", Symbol)])],
);
static RESOURCES: Shape = with(
    "resources",
    &[("culture", Any)],
    &[&list(
        "stringTable",
        &[&leaf("string", &[("id", Any), ("value", Any), ("stringType", Any)])],
    )],
);
static EVENTS: Shape = list("events", &[&PROVIDER, &MESSAGE_TABLE]);
static LOCALIZATION: Shape = with("localization", &[("fallbackCulture", Any)], &[&RESOURCES]);
static MANIFEST: Shape = list(
    "instrumentationManifest",
    &[
        &list("instrumentation", &[&EVENTS]),
        &LOCALIZATION,
        // Only winmeta.xml itself defines types.
        &Shape { name: "metadata", attributes: &[("name", Any)], inner: Inner::Anything },
    ],
);

/// A syntax mistake: at an element, or at one of its attributes.
pub type Diagnostic<'a, 'i> = (Xml<'a, 'i>, Option<String>, Rule);

/// The namespaces whose attributes are irrelevant to events: XML and its schemas.
const OF_XML: [&str; 2] =
    ["http://www.w3.org/2001/XMLSchema-instance", "http://www.w3.org/XML/1998/namespace"];

/// Returns all syntax mistakes in an `instrumentationManifest`, and the ignored elements and
/// attributes.
pub fn check<'a, 'i>(mode: Mode, root: Xml<'a, 'i>) -> Vec<Diagnostic<'a, 'i>> {
    diagnostics(mode, root, &MANIFEST)
}

/// Returns all syntax mistakes in an assembly's `events` element.
pub fn check_events<'a, 'i>(mode: Mode, node: Xml<'a, 'i>) -> Vec<Diagnostic<'a, 'i>> {
    diagnostics(mode, node, &EVENTS)
}

/// Returns all syntax mistakes in an assembly's `localization` element.
pub fn check_localization<'a, 'i>(mode: Mode, node: Xml<'a, 'i>) -> Vec<Diagnostic<'a, 'i>> {
    diagnostics(mode, node, &LOCALIZATION)
}

fn diagnostics<'a, 'i>(mode: Mode, node: Xml<'a, 'i>, shape: &Shape) -> Vec<Diagnostic<'a, 'i>> {
    let mut diagnostics = Vec::new();
    element(mode, node, shape, &mut diagnostics);
    diagnostics
}

fn element<'a, 'i>(
    mode: Mode,
    node: Xml<'a, 'i>,
    shape: &Shape,
    diagnostics: &mut Vec<Diagnostic<'a, 'i>>,
) {
    for attribute in node.attributes() {
        let name = attribute.name();
        if let Some(namespace) = attribute.namespace() {
            if !OF_XML.contains(&namespace) {
                diagnostics.push((
                    node,
                    None,
                    left_out(shape.name, "attribute", name, Some(namespace)),
                ));
            }
            continue;
        }
        let value = attribute.value();
        let known = shape.attributes.iter().find(|known| known.0 == name);
        let rule = match known {
            None => Some(Rule::Attribute { element: shape.name, attribute: name.to_owned() }),
            Some((attribute, kind)) => wrong(*kind, attribute, value),
        };
        if let Some(rule) = rule {
            diagnostics.push((node, Some(name.to_owned()), rule));
        }
    }
    let Inner::Shapes(shapes) = shape.inner else {
        return;
    };
    let own = node.tag_name().namespace();
    for inner in node.children().filter(Xml::is_element) {
        let name = inner.tag_name().name();
        let namespace = inner.tag_name().namespace().filter(|namespace| Some(*namespace) != own);
        let is_foreign = inner.tag_name().namespace() != own;
        // Decoders find elements by name in any namespace.
        let is_read = !is_foreign || mode == Mode::Lenient;
        match shapes.iter().find(|known| known.name == name).filter(|_| is_read) {
            Some(known) => element(mode, inner, known, diagnostics),
            // Decoders do not read the siblings of `events`.
            None if is_foreign || mode == Mode::Lenient && shape.name == "instrumentation" => {
                diagnostics.push((inner, None, left_out(shape.name, "element", name, namespace)));
            }
            None => diagnostics.push((
                inner,
                None,
                Rule::Element { inner: name.to_owned(), outer: shape.name.to_owned() },
            )),
        }
    }
}

/// Returns the diagnostic for an ignored element or attribute.
pub fn left_out(
    outer: &'static str,
    what: &'static str,
    inner: &str,
    namespace: Option<&str>,
) -> Rule {
    Rule::LeftOut {
        what,
        inner: inner.into(),
        outer,
        namespace: namespace.unwrap_or_default().into(),
        count: 1,
    }
}

/// Returns whether a string has the form of a GUID without braces.
const BARE_GUID: usize = 36;

/// Returns the rule that an attribute's characters violate.
fn wrong(kind: Kind, attribute: &'static str, value: &str) -> Option<Rule> {
    let text = || value.to_owned();
    let is_name = |text: &str| {
        let mut characters = text.chars();
        let is_start = |first: char| first == '_' || first.is_ascii_alphabetic();
        characters.next().is_some_and(is_start)
            && characters.all(|one| one == '_' || one.is_ascii_alphanumeric())
    };
    match kind {
        Any => None,
        Symbol if value.is_empty() || is_name(value) => None,
        Namespace if value.split('.').all(is_name) => None,
        Symbol | Namespace => Some(Rule::Symbol(text())),
        // Values that are not even similar to a GUID or number are reported where they are read.
        Guid if value.starts_with('{') || value.len() != BARE_GUID => None,
        Guid => Some(Rule::Guid { attribute, text: text() }),
        Hexadecimal if value.parse::<u64>().is_err() => None,
        Hexadecimal => Some(Rule::Hexadecimal { attribute, text: text() }),
    }
}
