//! Writes elements and attributes with quick-xml's writer.

use std::{borrow::Cow, io};

use quick_xml::{
    Writer as XmlWriter,
    escape::escape,
    events::{BytesEnd, BytesStart, BytesText, Event as XmlEvent, attributes::Attribute},
    name::QName as XmlName,
};

use crate::model::{Element, Manifest, Others};

/// An element's attributes, in order.
pub struct Attributes<'a>(pub Vec<(Cow<'a, str>, String)>);

impl<'a> Attributes<'a> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.0.push((Cow::Borrowed(name), value.into()));
        self
    }

    pub fn with_others(mut self, others: &'a Others) -> Self {
        let others = others.iter();
        self.0.extend(others.map(|(name, value)| (Cow::Borrowed(name.as_str()), value.clone())));
        self
    }

    pub fn with_optional(self, name: &'a str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// Returns the attributes of an element of a template's `UserData`.
pub fn element_attributes(element: &Element) -> Attributes<'_> {
    let attributes = element.attributes.iter();
    Attributes(
        attributes.map(|(name, value)| (Cow::Borrowed(name.as_str()), value.clone())).collect(),
    )
}

/// Returns a start tag with its attributes.
fn tag<'n>(name: &'n str, attributes: Attributes<'_>) -> BytesStart<'n> {
    let mut tag = BytesStart::new(name);
    for (key, value) in attributes.0 {
        // A parser would convert these characters to spaces.
        let value =
            escape(&value).replace('\n', "&#10;").replace('\r', "&#13;").replace('\t', "&#9;");
        tag.push_attribute(Attribute {
            key: XmlName(key.as_bytes()),
            value: Cow::Owned(value.into_bytes()),
        });
    }
    tag
}

/// Keeps the next tag on the same line, by writing empty character data.
pub struct Writer<'a> {
    pub manifest: &'a Manifest,
    pub xml: XmlWriter<Vec<u8>>,
}

impl Writer<'_> {
    pub fn event(&mut self, event: XmlEvent<'_>) {
        written(&self.xml.write_event(event));
    }

    pub fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        self.event(XmlEvent::Start(tag(name, attributes)));
    }

    pub fn close(&mut self, name: &str) {
        self.event(XmlEvent::End(BytesEnd::new(name)));
    }

    pub fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.event(XmlEvent::Empty(tag(name, attributes)));
    }

    /// Keeps the next tag on the line, by writing empty character data.
    pub fn stay_on_line(&mut self) {
        self.event(XmlEvent::Text(BytesText::from_escaped("")));
    }

    /// Starts a new line with the next tag.
    pub fn start_line(&mut self) {
        self.event(XmlEvent::Eof);
    }
}

/// Checks a write to memory, which cannot fail.
pub fn written(result: &io::Result<()>) {
    debug_assert!(result.is_ok(), "{result:?}");
}
