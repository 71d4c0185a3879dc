//! The errors of the declarations in `tests/compile-fail`, which build scripts also report, without
//! the compiler.

use std::{
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

#[test]
fn a_build_script_gets_the_errors_that_the_compiler_shows() {
    for name in ["ad_hoc_events", "constants", "events", "forms", "one_error", "providers"] {
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
