//! Generates the declarations of the routines that drivers can call, and the structures that they access,
//! from the data on the WDK's headers.

mod headers;
mod limits;
mod structures;

use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, path::Path};

use headers::{Function, Headers};
use limits::Limits;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build");
    let headers = Headers::read()?;
    let folder = env::var("OUT_DIR")?;
    let folder = Path::new(&folder);
    let declarations = generate(&headers, &limits::exceptions(include_str!("limits.txt"))?)?;
    fs::write(folder.join("declarations.rs"), declarations)?;
    let structures = structures::generate(&headers.types, include_str!("structures.txt"))?;
    fs::write(folder.join("structures.rs"), structures)?;
    Ok(())
}

/// Returns a static variable with the declarations, sorted by name.
fn generate(headers: &Headers, exceptions: &BTreeMap<&str, &'static str>) -> Result<String> {
    let functions = headers.functions()?;
    if let Some(name) = exceptions.keys().find(|name| !functions.contains_key(**name)) {
        return Err(format!("limits.txt has {name}, which no header declares").into());
    }
    // A constant would be part of each routine that refers to one of its elements, and an incremental
    // build would hash all of it for each.
    let mut text = format!("static ALL: [Declaration; {}] = [\n", functions.len());
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
    text.push_str("];\n");
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
    let parameters = function.parameters.iter();
    let parameters: Vec<_> =
        parameters.map(|one| format!("{} {}", one.header_type, one.name)).collect();
    let refusal = format!(
        "the function has another number of parameters or another result than `{} {name}({})` in the \
         WDK's headers",
        function.result.unwrap_or("void"),
        parameters.join(", ")
    );
    writeln!(text, "Declaration {{ name: {name:?}, refusal: {refusal:?},")?;
    let limit = limits.limit;
    writeln!(text, "index: {index:?}, limit: Irql::{limit},")?;
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
