//! Finds the parts of a manifest below the root element.
//!
//! The root is `instrumentationManifest`, or the `assembly` of a component of Windows or of an
//! application. An assembly contains either a whole `instrumentationManifest`, or only its
//! children, mixed with other elements. In an assembly, `instrumentation`, `events` and
//! `localization` may each be in the assembly's namespace or in the manifest namespace.

use roxmltree::Node as Xml;

use super::{
    reader::Reader,
    xml::{name, named},
};
use crate::{
    error::{ManifestError, Rule},
    shape::{self, Mode},
};

const MANIFEST: &str = "instrumentationManifest";

/// The parts of a manifest.
pub struct Parts<'a, 'i> {
    /// The elements that contain providers and message tables.
    pub events: Vec<Xml<'a, 'i>>,
    /// The elements that contain the strings of a language.
    pub languages: Vec<Xml<'a, 'i>>,
}

/// Returns an element's children with the name `wanted`, in any namespace.
fn inside<'a, 'i>(
    node: Xml<'a, 'i>,
    wanted: &'static str,
) -> impl Iterator<Item = Xml<'a, 'i>> + use<'a, 'i> {
    let is_wanted = move |inner: &Xml<'a, 'i>| inner.is_element() && name(*inner) == wanted;
    node.children().filter(is_wanted)
}

impl<'a, 'i> Reader<'a, 'i> {
    /// Checks the syntax of the manifest and returns its parts; `None` if the document is not a
    /// manifest.
    pub fn parts(&mut self) -> Option<Parts<'a, 'i>> {
        let root = self.document.root_element();
        let is_assembly = name(root) == "assembly";
        let whole: Vec<Xml<'a, 'i>> = match name(root) {
            MANIFEST => vec![root],
            "assembly" => inside(root, MANIFEST).collect(),
            other => {
                let rule = Rule::NotAManifest(other.to_owned());
                let at = self.position(root);
                self.refuse(at, rule);
                return None;
            }
        };
        let mode = self.mode;
        let mut parts = Parts { events: Vec::new(), languages: Vec::new() };
        for manifest in whole {
            self.shape(shape::check(mode, manifest));
            let of_events = named(mode, manifest, "instrumentation");
            let of_languages = named(mode, manifest, "localization");
            parts.events.extend(of_events.flat_map(|it| named(mode, it, "events")));
            parts.languages.extend(of_languages.flat_map(|it| named(mode, it, "resources")));
        }
        if is_assembly {
            let children = inside(root, "instrumentation").flat_map(|it| it.children());
            for inner in children.filter(Xml::is_element) {
                if name(inner) == "events" {
                    self.shape(shape::check(mode, inner));
                    parts.events.push(inner);
                } else {
                    let namespace = inner.tag_name().namespace();
                    let rule =
                        shape::left_out("instrumentation", "element", name(inner), namespace);
                    self.shape(vec![(inner, None, rule)]);
                }
            }
            for localization in inside(root, "localization") {
                self.shape(shape::check(mode, localization));
                parts.languages.extend(named(mode, localization, "resources"));
            }
            // An assembly without providers is not an event manifest.
            if mode == Mode::Strict && parts.events.is_empty() {
                let at = self.position(root);
                self.refuse(at, Rule::NoProvider);
            }
        }
        Some(parts)
    }

    fn shape(&mut self, diagnostics: Vec<shape::Diagnostic<'a, 'i>>) {
        for (node, attribute, rule) in diagnostics {
            if matches!(rule, Rule::LeftOut { .. }) {
                self.leave_out(ManifestError { at: self.position(node), rule });
                continue;
            }
            if self.mode == Mode::Lenient {
                continue;
            }
            let at = attribute.map_or_else(
                || self.position(node),
                |attribute| self.attribute_position(node, &attribute),
            );
            self.refuse(at, rule);
        }
    }

    /// Records an ignored element or attribute; repetitions are counted at the first one.
    fn leave_out(&mut self, note: ManifestError) {
        let Rule::LeftOut { what, inner, outer, namespace, .. } = &note.rule else {
            return;
        };
        let key = (*what, inner.clone(), *outer, namespace.clone());
        let all = &mut self.manifest.left_out;
        let at = *self.globals.left_out.entry(key).or_insert(all.len());
        match all.get_mut(at).map(|known| &mut known.rule) {
            Some(Rule::LeftOut { count, .. }) => *count += 1,
            _ => all.push(note),
        }
    }
}
