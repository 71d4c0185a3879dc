//! A test that compares what the provided routines do with their arguments with the parameters'
//! types in the headers: the source of each routine is searched for the places that show what the
//! routine takes an argument for.

use std::collections::{BTreeSet, HashMap};

use super::{
    abi_source::{Source, Use},
    abi_types::{Class, Headers, provided},
};
use crate::ground::{abi, framework_abi};

/// Returns the reason that a use contradicts a parameter's type, if it does.
fn contradiction(
    headers: &Headers,
    handles: &HashMap<String, String>,
    kind: &str,
    one: &Use,
) -> Option<String> {
    let class = headers.class(kind);
    let said = |what: String| Some(format!("{what}, but the headers have {kind}, {class:?}"));
    match one {
        Use::Bits(bits) => match class {
            Class::Integer { bits: theirs, .. } if theirs == *bits => None,
            _ => said(format!("takes {bits} bits")),
        },
        Use::Signed => match class {
            // With 64 bits, it may be a LARGE_INTEGER by value.
            Class::Integer { is_signed: true, .. } | Class::Integer { bits: 64, .. } => None,
            _ => said("takes a signed number".to_owned()),
        },
        Use::Address => match class {
            Class::Pointer(_) | Class::Structure => None,
            Class::Integer { .. } => said("takes an address".to_owned()),
        },
        Use::Handle(data) => {
            let expected = match data.as_str() {
                "DeviceInit" => "PWDFDEVICE_INIT",
                data => handles.get(data)?.as_str(),
            };
            (kind != expected).then(|| said(format!("takes a {expected}"))).flatten()
        }
        Use::Value(ours) => value(headers, &class, ours).and_then(said),
        Use::Passed(..) => None,
    }
}

/// Returns what is wrong with a value that is read at a pointer, if it is.
fn value(headers: &Headers, class: &Class, ours: &str) -> Option<String> {
    let Class::Pointer(pointee) = class else {
        return Some(format!("reads a {ours}"));
    };
    if pointee == "c_void" {
        return None;
    }
    let layouts = abi::LAYOUTS.iter().chain(framework_abi::LAYOUTS);
    let mut layouts = layouts.filter(|layout| layout.rust == ours);
    let theirs = headers.structure(pointee);
    match (layouts.next(), theirs) {
        (Some(layout), Some(theirs)) => {
            let is_it = headers.starts_with(&theirs, layout.name);
            (!is_it).then(|| format!("reads a {}", layout.name))
        }
        (Some(layout), None) => Some(format!("reads a {}", layout.name)),
        // The start of a structure: its size or type.
        (None, Some(_)) => None,
        (None, None) if !ours.starts_with(['u', 'i']) => Some(format!("reads a {ours}")),
        (None, None) => {
            let (theirs, ours) = (headers.class(pointee), headers.class(ours));
            let width = |class: &Class| match class {
                Class::Integer { bits, .. } => *bits,
                _ => 64,
            };
            (width(&theirs) != width(&ours)).then(|| format!("reads {} bits", width(&ours)))
        }
    }
}

/// Uses that differ from the headers' types for a reason: the routine, the number of its parameter, and
/// the reason.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("MmSizeOfMdl", 1, "a larger buffer has no MDL"),
    ("WdfDmaTransactionInitialize", 6, "the framework keeps the low half of a length"),
    ("KeBugCheckEx", 1, "a Rust driver's panic passes a pointer"),
    ("RtlAddAccessAllowedAce", 1, "a list has a byte for its revision"),
    ("RtlCreateAcl", 2, "likewise, after a check"),
    ("ExSetTimer", 0, "the header starts the opaque structure"),
    ("_strset", 1, "a character"),
    ("iswalnum", 0, "a character, by a function for both widths"),
    ("iswalpha", 0, "likewise"),
    ("iswdigit", 0, "likewise"),
    ("iswspace", 0, "likewise"),
    ("iswxdigit", 0, "likewise"),
    ("memchr", 1, "a byte"),
    ("tolower", 0, "a character"),
    ("toupper", 0, "a character"),
    ("strchr", 1, "a character, by a function for both widths"),
    ("strrchr", 1, "likewise"),
    ("wcschr", 1, "likewise"),
    ("wcsrchr", 1, "likewise"),
];

#[test]
fn routines_use_their_arguments_as_the_headers_declare_them() {
    let headers = Headers::read();
    let source = Source::read();
    let mut problems = Vec::new();
    let (mut checked, mut routines) = (0, 0);
    for name in provided() {
        let Some(declared) = headers.parameters(name) else {
            continue;
        };
        let Some((file, path, generic)) = source.routines.get(name) else {
            problems.push(format!("{name}: its row is not in the source"));
            continue;
        };
        let Some(function) = source.function(file, path) else {
            problems.push(format!("{name}: {path:?} is not in the source"));
            continue;
        };
        routines += 1;
        for (place, kind) in declared.iter().enumerate() {
            let mut found = BTreeSet::new();
            let parameter = function.place(place);
            source.uses(function, parameter, generic.as_deref(), 6, &mut found);
            checked += found.len();
            for one in found {
                let is_excepted =
                    EXCEPTIONS.iter().any(|(routine, at, _)| (*routine, *at) == (name, place));
                if let Some(problem) = contradiction(&headers, &source.handles, kind, &one)
                    && !is_excepted
                {
                    problems.push(format!("{name}, parameter {place}: it {problem}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(routines > 600 && checked > 1500, "{checked} uses by {routines} routines");
}
