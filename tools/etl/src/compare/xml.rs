//! Events in XML that follows the event schema
//! (`http://schemas.microsoft.com/win/2004/08/events/event`).
//!
//! Elements are found by local name, because decoders use different namespaces.

use roxmltree::{Document, Node};

use super::event::{Content, MAX_DEPTH, OtherEvent};
use super::property::Property;

/// Reads all events of a document.
pub(super) fn events(text: &str) -> Result<Vec<OtherEvent>, Content> {
    // The parser rejects document types by default, and therefore entities.
    let document = Document::parse(text).map_err(|error| Content::Xml(Box::new(error)))?;
    let root = document.root_element();
    match root.tag_name().name() {
        "Event" => Ok(vec![event(root, 1)?]),
        "Events" => {
            children(root, "Event").enumerate().map(|(at, node)| event(node, at + 1)).collect()
        }
        other => Err(Content::Root(other.to_owned())),
    }
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(node).filter(move |child| child.tag_name().name() == name)
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

/// Returns all text in an element; comments split it into several nodes.
fn text(node: Node<'_, '_>) -> String {
    node.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect()
}

fn event(node: Node<'_, '_>, number: usize) -> Result<OtherEvent, Content> {
    let system = child(node, "System").ok_or(Content::NoSystem { number })?;
    let mut event = OtherEvent::default();
    properties(system, &mut event);
    event.has_data = ["EventData", "UserData"]
        .into_iter()
        .filter_map(|name| child(node, name))
        .any(|part| elements(part).next().is_some());
    let mut fields = Fields { number, fields: &mut event.fields };
    for part in elements(node) {
        match part.tag_name().name() {
            "EventData" => fields.members(part, "", 0)?,
            // The inner element comes from the template; its children are named after the fields.
            "UserData" => {
                for fragment in elements(part) {
                    fields.fragment(fragment, "", 0)?;
                }
            }
            "BinaryEventData" | "DebugData" => {
                let kind = part.tag_name().name();
                event.problem = Some(format!("the event has {kind}"));
            }
            "ProcessingErrorData" => event.problem = Some(processing_error(part)),
            "ExtendedTracingInfo" => event.is_classic = child(part, "EventGuid").is_some(),
            // The names that a viewer shows depend on the language.
            _ => {}
        }
    }
    Ok(event)
}

/// Reads the `System` element.
fn properties(system: Node<'_, '_>, event: &mut OtherEvent) {
    let mut set = |property, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            event.properties.insert(property, value);
        }
    };
    for (name, property) in [
        ("EventID", Property::Id),
        ("Version", Property::Version),
        ("Level", Property::Level),
        ("Task", Property::Task),
        ("Opcode", Property::Opcode),
        ("Keywords", Property::Keywords),
    ] {
        set(property, child(system, name).map(text));
    }
    for (name, attribute, property) in [
        ("Provider", "Guid", Property::Provider),
        ("Provider", "Name", Property::ProviderName),
        ("TimeCreated", "SystemTime", Property::Time),
        ("Execution", "ProcessID", Property::Process),
        ("Execution", "ThreadID", Property::Thread),
        ("Execution", "ProcessorID", Property::Processor),
        ("Correlation", "ActivityID", Property::Activity),
        ("Correlation", "RelatedActivityID", Property::RelatedActivity),
    ] {
        let node = child(system, name);
        let value = node.and_then(|node| node.attribute(attribute));
        set(property, value.map(str::to_owned));
    }
}

fn processing_error(node: Node<'_, '_>) -> String {
    let of = |name| child(node, name).map(text);
    let code = of("ErrorCode").unwrap_or_default();
    let item = of("DataItemName").map_or_else(String::new, |item| format!(" at {item}"));
    format!("error {code}{item}")
}

/// Collects the fields of an event.
struct Fields<'a> {
    number: usize,
    fields: &'a mut Vec<(String, String)>,
}

impl Fields<'_> {
    const fn check(&self, depth: usize) -> Result<(), Content> {
        if depth > MAX_DEPTH {
            return Err(Content::Depth { number: self.number });
        }
        Ok(())
    }

    /// Reads `Data` and `ComplexData` elements. The elements of an array share a name.
    fn members(&mut self, node: Node<'_, '_>, prefix: &str, depth: usize) -> Result<(), Content> {
        self.check(depth)?;
        for member in elements(node) {
            let element = member.tag_name().name();
            let name = match element {
                "Data" | "ComplexData" => member.attribute("Name").unwrap_or_default(),
                // This crate's events have no fields for other elements.
                other => other,
            };
            let name = format!("{prefix}{name}");
            if element == "ComplexData" && elements(member).next().is_some() {
                self.members(member, &format!("{name}."), depth + 1)?;
            } else {
                self.fields.push((name, text(member)));
            }
        }
        Ok(())
    }

    /// Reads the elements of a template's `UserData`.
    fn fragment(&mut self, node: Node<'_, '_>, prefix: &str, depth: usize) -> Result<(), Content> {
        self.check(depth)?;
        for member in elements(node) {
            let name = format!("{prefix}{}", member.tag_name().name());
            if elements(member).next().is_some() {
                self.fragment(member, &format!("{name}."), depth + 1)?;
            } else {
                self.fields.push((name, text(member)));
            }
        }
        Ok(())
    }
}
