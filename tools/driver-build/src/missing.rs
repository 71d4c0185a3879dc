//! Finds the names in compiler errors that the wdk-sys stand-in lacks.

use serde_json::Value;

use crate::standin::has_name;

/// The error codes for names that do not exist.
const UNRESOLVED: [&str; 6] = ["E0412", "E0422", "E0425", "E0432", "E0433", "E0531"];

/// The start of wdk-macros' error about a function that the framework lacks.
const NO_FUNCTION: &str = "Failed to find function info for ";

/// Returns the wdk-sys names in a cargo message that the stand-in lacks.
///
/// If the stand-in has the name, the author must import it or use it from another module.
pub fn missing_names(message: &Value) -> Vec<String> {
    let mut names = unresolved_names(&message["message"]);
    names.retain(|name| !has_name(name));
    names
}

/// Returns the unresolved wdk-sys names in an error.
fn unresolved_names(error: &Value) -> Vec<String> {
    let text = error["message"].as_str().unwrap_or_default();
    if let Some(name) = text.strip_prefix(NO_FUNCTION) {
        return vec![name.trim().to_owned()];
    }
    let code = error["code"]["code"].as_str().unwrap_or_default();
    if !UNRESOLVED.contains(&code) {
        return Vec::new();
    }
    let is_of_wdk_sys = |path: &&str| path.split("::").next() == Some("wdk_sys");
    // The message has each path in backticks.
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let found: Vec<&str> = match quoted.as_slice() {
        // "unresolved imports `wdk_sys::X`, `wdk_sys::Y`"
        [first, ..] if is_of_wdk_sys(first) => quoted.into_iter().filter(is_of_wdk_sys).collect(),
        // "cannot find type `X` in crate `wdk_sys`"
        [first, place, ..] if is_of_wdk_sys(place) => vec![first],
        _ => Vec::new(),
    };
    found
        .into_iter()
        .filter_map(|path| path.rsplit("::").next())
        .filter(|name| *name != "wdk_sys")
        .map(str::to_owned)
        .collect()
}

/// Returns the undefined symbols in the linker errors of a cargo message, each with the first
/// function that refers to it. Returns none if there are also other linker errors.
pub fn undefined_symbols(message: &Value) -> Vec<String> {
    let error = &message["message"];
    if error["level"] != "error" {
        return Vec::new();
    }
    let notes = error["children"].as_array().into_iter().flatten();
    let lines = notes.filter_map(|note| note["message"].as_str()).flat_map(str::lines);
    let mut found: Vec<String> = Vec::new();
    let mut is_referred = true;
    for line in lines {
        if let Some((_, symbol)) = line.split_once("error: undefined symbol: ") {
            let symbol = symbol.trim().trim_start_matches("__declspec(dllimport) ");
            found.push(format!("`{symbol}`"));
            is_referred = false;
        } else if line.contains("lld-link: error: ") {
            return Vec::new();
        } else if let (false, Some(last)) = (is_referred, found.last_mut()) {
            // `>>> referenced by src\lib.rs:24` or `>>> a.o:(function)`
            let function = line.split_once(":(").and_then(|(_, rest)| rest.strip_suffix(')'));
            if let Some(function) = function {
                *last += &[" (used in `", function, "`)"].concat();
                is_referred = true;
            }
        }
    }
    found
}

/// Returns the libraries that the linker does not find, according to a cargo message.
pub fn missing_libraries(message: &Value) -> Vec<String> {
    let error = &message["message"];
    let notes = error["children"].as_array().into_iter().flatten();
    let lines = notes.filter_map(|note| note["message"].as_str()).flat_map(str::lines);
    let mut found: Vec<String> = lines
        .filter(|_| error["level"] == "error")
        .filter_map(|line| line.split_once("error: could not open '")?.1.split('\'').next())
        .filter(|file| file.to_ascii_lowercase().ends_with(".lib"))
        .map(|file| format!("`{file}`"))
        .collect();
    // rustc searches for static libraries itself.
    let text = error["message"].as_str().unwrap_or_default();
    let rest = text.strip_prefix("could not find native static library `");
    found.extend(rest.and_then(|rest| Some(format!("`{}.lib`", rest.split('`').next()?))));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(code: &str, text: &str) -> Vec<String> {
        missing_names(&json!({ "message": {
            "code": { "code": code }, "message": text, "rendered": format!("{text} wdk_sys"),
        } }))
    }

    #[test]
    fn every_name_that_the_stand_in_lacks_is_found() {
        let imports = "unresolved imports `wdk_sys::NoOne`, `wdk_sys::ntddk::KeNoTwo`, `other::X`";
        assert_eq!(found("E0432", imports), ["NoOne", "KeNoTwo"]);
        let value = "cannot find value `NO_THREE` in crate `wdk_sys`";
        assert_eq!(found("E0425", value), ["NO_THREE"]);
        let function = "cannot find function, tuple struct or tuple variant `KeNoFour` in module \
                        `wdk_sys::ntddk`";
        assert_eq!(found("E0425", function), ["KeNoFour"]);
        assert_eq!(found("", "Failed to find function info for WdfNoSuch"), ["WdfNoSuch"]);
    }

    #[test]
    fn symbols_that_the_linker_does_not_find_are_named_with_their_users() {
        let note = "lld-link: error: undefined symbol: PsNoSuchRoutine\n\
                    >>> referenced by .\\src\\lib.rs:24\n\
                    >>>               in/2/own.rcgu.o:(own::check)\n\
                    >>> referenced by .\\src\\lib.rs:30\n\
                    >>>               in/2/own.rcgu.o:(DriverEntry)\n\n\
                    lld-link: error: undefined symbol: __declspec(dllimport) NoOther\n";
        let error = |level: &str| {
            let children = [json!({ "message": "arguments" }), json!({ "message": note })];
            json!({ "message": { "level": level, "children": children } })
        };
        let expected = ["`PsNoSuchRoutine` (used in `own::check`)", "`NoOther`"];
        assert_eq!(undefined_symbols(&error("error")), expected);
        assert!(undefined_symbols(&error("warning")).is_empty());
        let mut other = error("error");
        other["message"]["children"][0]["message"] = json!("lld-link: error: duplicate symbol: X");
        assert!(undefined_symbols(&other).is_empty());
    }

    #[test]
    fn libraries_that_the_linker_does_not_find_are_named() {
        let note = "lld-link: error: could not open 'contoso.lib': No such file or directory";
        let of_linker = json!({ "message": {
            "level": "error", "message": "linking failed", "children": [{ "message": note }],
        } });
        assert_eq!(missing_libraries(&of_linker), ["`contoso.lib`"]);
        let text = "could not find native static library `contoso`, perhaps an -L flag is missing?";
        let of_rustc = json!({ "message": { "level": "error", "message": text, "children": [] } });
        assert_eq!(missing_libraries(&of_rustc), ["`contoso.lib`"]);
        let object = note.replace(".lib", ".o");
        let other = json!({ "message": { "level": "error", "children": [{ "message": object }] } });
        assert!(missing_libraries(&other).is_empty());
    }

    #[test]
    fn names_that_exist_and_those_of_the_author_are_not_reported() {
        // A forgotten import: the compiler suggests `use wdk_sys::NTSTATUS`.
        assert!(found("E0412", "cannot find type `NTSTATUS` in this scope").is_empty());
        assert!(found("E0425", "cannot find value `x` in this scope").is_empty());
        // The name is in another module.
        assert!(found("E0432", "unresolved import `wdk_sys::ntddk::NTSTATUS`").is_empty());
        // The driver does not depend on wdk-sys.
        assert!(found("E0432", "unresolved import `wdk_sys`").is_empty());
        assert!(found("E0308", "mismatched types `wdk_sys::NoOne`").is_empty());
    }
}
