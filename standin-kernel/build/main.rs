//! Generates the declarations of the routines that drivers can call, from the data on the WDK's headers.

mod headers;
mod limits;

use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, path::Path};

use headers::{Function, Headers};
use limits::Limits;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build");
    let text = generate(&Headers::read()?, &limits::exceptions(include_str!("limits.txt"))?)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("declarations.rs"), text)?;
    Ok(())
}

/// Returns the elements of a list of declarations, sorted by name.
fn generate(headers: &Headers, exceptions: &BTreeMap<&str, &'static str>) -> Result<String> {
    let functions = headers.functions()?;
    if let Some(name) = exceptions.keys().find(|name| !functions.contains_key(**name)) {
        return Err(format!("limits.txt has {name}, which no header declares").into());
    }
    let mut text = String::from("&[\n");
    for (name, function) in &functions {
        let mut limits = limits::limits(name, function)?;
        if let Some(exception) = exceptions.get(name) {
            if *exception == limits.limit && limits.sources.is_none() {
                return Err(format!("limits.txt has {name} with its own limit, {exception}").into());
            }
            limits = Limits { limit: exception, sources: None };
        }
        declare(&mut text, headers, name, function, &limits)?;
    }
    text.push_str("]\n");
    Ok(text)
}

fn declare(
    text: &mut String,
    headers: &Headers,
    name: &str,
    function: &Function,
    limits: &Limits,
) -> Result<()> {
    let index = function.index;
    let limit = limits.limit;
    writeln!(text, "Declaration {{ name: {name:?}, index: {index:?}, limit: Irql::{limit},")?;
    let [annotated, documented] = limits.sources.unwrap_or([limit; 2]);
    writeln!(text, "annotated: Irql::{annotated}, documented: Irql::{documented},")?;
    text.push_str("parameters: &[");
    for (place, parameter) in function.parameters.iter().enumerate() {
        let accepted = headers.accepted(parameter.header_type);
        let refusal = format!(
            "parameter {} of {name} is `{} {}` in the WDK's headers",
            place + 1,
            parameter.header_type,
            parameter.name
        );
        write!(text, "Parameter {{ accepted: &[{accepted}], refusal: {refusal:?} }}, ")?;
    }
    let result =
        function.result.map_or_else(|| "Type::Void".to_owned(), |one| headers.accepted(one));
    writeln!(text, "], is_variadic: {}, result: &[{result}] }},", function.is_variadic)?;
    Ok(())
}
