//! Declarations with mistakes, and their errors: those in `refused.txt`, and those in `tests/compile-fail`,
//! which build scripts also report, without the compiler.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::TokenStream;
use syn::spanned::Spanned as _;
use wdk_etw_schema::{
    Encoding, Layout,
    parse::{ad_hoc, source},
    tracelogging::event_metadata,
};

/// The environment variable, set by `cargo xtask renew errors`, that makes the test write the errors before it
/// compares them.
const RENEW: &str = "WDK_ETW_RENEW";

/// Part of an error about the generated Rust types, which a build script does not generate.
const OF_RUST_TYPES: &str = "borrows its value and has no lifetime";

/// An error: its line and column from 1, and its text.
type Found = (usize, usize, String);

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compile-fail/tests/refused").join(name)
}

fn found(error: syn::Error) -> impl Iterator<Item = Found> {
    error.into_iter().map(|error| {
        let start = error.span().start();
        found_at(start.line, start.column + 1, error.to_string())
    })
}

/// Only the compiler reports columns inside a literal, so such an error states it in its text.
fn found_at(line: usize, column: usize, text: String) -> Found {
    let is_inside_literal = text.starts_with("column ");
    (line, if is_inside_literal { 0 } else { column }, text)
}

/// Parses and checks an event at its call site, as the macro does before it generates code.
fn expand(tokens: TokenStream) -> syn::Result<()> {
    let event = ad_hoc(tokens)?;
    let metadata = event_metadata(&event.name, event.tag, &event.fields, event.types())?;
    Layout::of(&event.fields, Encoding::TraceLogging, event.types(), metadata.len(), event.span)?;
    Ok(())
}

/// Returns the errors of the declarations and of the calls of `event!` in a source file.
fn errors(text: &str) -> Vec<Found> {
    let mut errors = Vec::new();
    for item in &syn::parse_file(text).unwrap().items {
        match item {
            syn::Item::Mod(module) => {
                let start = module.attrs.first().map_or(0, |first| first.span().start().line);
                let end = module.span().end().line;
                let alone: String = text
                    .lines()
                    .enumerate()
                    .map(|(at, line)| if (start..=end).contains(&(at + 1)) { line } else { "" })
                    .flat_map(|line| [line, "\n"])
                    .collect();
                if let Err(error) = source(&alone) {
                    errors.extend(found(error));
                }
            }
            syn::Item::Fn(function) => {
                for statement in &function.block.stmts {
                    if let syn::Stmt::Macro(call) = statement
                        && call.mac.path.is_ident("event")
                        && let Err(error) = expand(call.mac.tokens.clone())
                    {
                        errors.extend(found(error));
                    }
                }
            }
            _ => {}
        }
    }
    errors.sort();
    errors
}

/// Returns the errors without a code in the compiler's output, which are the macros' errors.
fn expected(output: &str) -> Vec<Found> {
    let mut expected = Vec::new();
    for block in output.split("\n\n") {
        let Some(rest) = block.strip_prefix("error: ") else {
            continue;
        };
        let (text, rest) = rest.split_once("--> ").unwrap();
        let text: Vec<&str> =
            text.trim().lines().map(|line| line.strip_prefix("       ").unwrap_or(line)).collect();
        let place = rest.lines().next().unwrap();
        let mut numbers = place.rsplit(':').map(|number| number.parse().unwrap());
        let column = numbers.next().unwrap();
        let line = numbers.next().unwrap();
        if text.iter().any(|line| line.contains(OF_RUST_TYPES)) {
            continue;
        }
        expected.push(found_at(line, column, text.join("\n")));
    }
    expected.sort();
    expected
}

/// Returns the errors of a declaration, or of a call of `event!`. Other texts are the items of a module.
fn errors_of(text: &str) -> Vec<Found> {
    let call = text.strip_prefix("event!(").and_then(|text| text.strip_suffix(");"));
    let result = match call {
        Some(arguments) => expand(arguments.parse().unwrap()),
        None if text.starts_with("#[provider") => source(text).map(|_| ()),
        None => {
            let items = format!("#[provider(name = \"A\")]\nmod trace {{\n{text}\n}}");
            source(&items).map(|_| ())
        }
    };
    found(result.expect_err(text)).collect()
}

/// Returns the text of a file of cases with what is found in each of them.
fn with_found(text: &str, found: impl Fn(&str) -> Vec<String>) -> String {
    let mut parts = text.split("\n\n");
    let mut all = parts.next().unwrap_or_default().to_owned();
    let mut around = String::new();
    for part in parts {
        let lines = |prefix| {
            let lines = part.lines().filter_map(move |line| line.strip_prefix(prefix));
            lines.collect::<Vec<_>>().join("\n")
        };
        if part.starts_with("# ") {
            around = lines("| ");
            let about = lines("# ").replace('\n', "\n# ");
            write!(all, "\n\n# {about}\n| {}", around.replace('\n', "\n| ")).unwrap();
            continue;
        }
        let case: Vec<&str> = part.lines().filter(|line| !line.starts_with("    ")).collect();
        let case = case.join("\n");
        write!(all, "\n\n{case}").unwrap();
        for line in found(&around.replacen('@', &case, 1)) {
            write!(all, "\n    {line}").unwrap();
        }
    }
    all + "\n"
}

/// Checks that a file of cases contains what is found in them.
pub fn check(file: &str, found: impl Fn(&str) -> Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let found = with_found(&text, found);
    if env::var_os(RENEW).is_some() {
        fs::write(&path, &found).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(text.lines()) {
        assert_eq!(found, expected);
    }
    assert!(found == text, "{file} is out of date: `cargo xtask renew errors` writes it");
}

#[test]
fn mistakes_have_their_errors() {
    check("refused.txt", |text| {
        let errors = errors_of(text).into_iter();
        errors.map(|(line, column, error)| format!("{line}:{column}: {error}")).collect()
    });
}

#[test]
fn a_build_script_gets_the_errors_that_the_compiler_shows() {
    for name in ["ad_hoc_events", "constants", "generics", "one_error"] {
        let text = fs::read_to_string(case(&format!("{name}.rs"))).unwrap();
        let output = fs::read_to_string(case(&format!("{name}.stderr"))).unwrap();
        let errors = errors(&text);
        let expected = expected(&output);
        for error in &expected {
            assert!(errors.contains(error), "{name}: no error {error:?}; errors: {errors:#?}");
        }
        for error in &errors {
            assert!(expected.contains(error), "{name}: unexpected error {error:?}");
        }
    }
}
