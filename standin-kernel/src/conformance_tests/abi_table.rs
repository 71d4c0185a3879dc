//! Tests that compare the provided routines with the header data (`tools/wdk-standin/data`), with the
//! IRQL limits in the reference, and with the list in the documentation.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use serde_json::Value;

use crate::{
    ground::irql::Irql,
    services::{
        etw,
        kmdf::{interrupt::wdm::exports as kmdf_exports, names::FUNCTIONS, table},
        ntoskrnl, wdfldr,
    },
};

/// The environment variable that makes the test write the list instead of comparing it.
const RENEW: &str = "WDK_ETW_RENEW";

/// The path of the list of all provided routines.
const LIST: &str = "docs/reference/provided-routines.md";

/// The document that lists the exports' IRQL limits.
const REFERENCE: &str = include_str!("../../../docs/reference/kernel-exports.md");

/// The number of parameters and the highest IRQL of each routine.
type Provided = BTreeMap<&'static str, (usize, Irql)>;

/// Returns the exports of ntoskrnl.exe.
fn ntoskrnl() -> Provided {
    let system = ntoskrnl::exports::exports();
    let etw = etw::exports::exports();
    system
        .into_iter()
        .map(|(name, ceiling, routine)| (name, (routine.parameters.len(), ceiling)))
        .chain(
            etw.into_iter()
                .map(|(name, ceiling, routine)| (name, (routine.parameters.len(), ceiling))),
        )
        .chain(
            kmdf_exports()
                .into_iter()
                .map(|(name, ceiling, routine)| (name, (routine.parameters.len(), ceiling))),
        )
        .collect()
}

/// Returns the exports of WDFLDR.SYS.
fn wdfldr() -> Provided {
    wdfldr::exports()
        .into_iter()
        .map(|(name, ceiling, routine)| (name, (routine.parameters.len(), ceiling)))
        .collect()
}

/// Returns the exports of `WppRecorder.sys`.
fn recorder() -> Provided {
    etw::recorder::exports()
        .into_iter()
        .map(|(name, ceiling, routine)| (name, (routine.parameters.len(), ceiling)))
        .collect()
}

/// Returns the provided entries of the framework's function table.
fn kmdf() -> Provided {
    let ceilings: BTreeMap<&str, Irql> = FUNCTIONS.iter().copied().collect();
    table::provided()
        .into_iter()
        .map(|(name, routine)| (name, (routine.parameters.len(), ceilings[name])))
        .collect()
}

fn functions() -> Value {
    let text = etw_test_support::read_headers("functions.json");
    serde_json::from_str(&text).expect("functions.json is JSON")
}

/// Returns the IRQL with this name in an annotation or a document.
fn level(name: &str) -> Option<Irql> {
    Some(match name {
        "PASSIVE_LEVEL" => Irql::PASSIVE_LEVEL,
        "APC_LEVEL" => Irql::APC_LEVEL,
        "DISPATCH_LEVEL" => Irql::DISPATCH_LEVEL,
        "DISPATCH_LEVEL+1" => Irql::DIRQL,
        // DIRQL in a document means the DIRQL of any device; "any" means any level.
        "HIGH_LEVEL" | "DIRQL" | "any" => Irql::HIGH_LEVEL,
        _ => return None,
    })
}

/// Returns the highest IRQL that a function's annotations allow. If the annotations depend on an
/// argument, returns the highest of their levels. If there are no annotations, returns
/// `HIGH_LEVEL`.
fn annotated(function: &Value) -> Irql {
    const MAX: &str = "_IRQL_requires_max_(";
    let conditional = function["sal"].as_array().into_iter().flatten();
    conditional
        .filter_map(|annotation| annotation.as_str()?.split_once(MAX))
        .map(|(_, rest)| rest.split(')').next().unwrap_or_default())
        .chain(function["irql_max"].as_str())
        .map(|name| {
            level(&name.replace(' ', "")).unwrap_or_else(|| panic!("{name} is not a level"))
        })
        .max()
        .unwrap_or(Irql::HIGH_LEVEL)
}

/// Returns a function's parameter types in Rust, or `None` if the data do not contain the function.
fn parameters(function: &Value) -> Option<Vec<String>> {
    let text = |one: &Value| one.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<String> = function["params"]
        .as_array()?
        .iter()
        .map(|one| format!("{}: {}", text(&one[0]), text(&one[1])))
        .collect();
    if function["variadic"] == true {
        all.push("...".to_owned());
    }
    Some(all)
}

#[test]
fn every_limit_of_the_function_table_is_that_of_the_headers() {
    let functions = functions();
    for (name, ceiling) in FUNCTIONS.iter().copied() {
        let function = &functions["kmdf"][name];
        assert!(function.is_object(), "{name} is not in functions.json");
        assert_eq!(annotated(function), ceiling, "{name}");
    }
}

#[test]
fn exports_have_the_limits_of_the_reference() {
    let provided: Provided = ntoskrnl().into_iter().chain(wdfldr()).collect();
    let mut compared = 0;
    for row in REFERENCE.lines().filter(|line| line.starts_with("| ")) {
        let names = row.split('|').nth(1).unwrap_or_default();
        let limit = row.split([' ', '|', ';']).filter_map(level).max();
        for name in names.split(',').map(str::trim) {
            if let (Some((_, ceiling)), Some(limit)) = (provided.get(name), limit) {
                assert_eq!(*ceiling, limit, "{row}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared} exports are in the reference");
}

#[test]
fn exports_have_the_limits_of_the_headers() {
    let functions = functions();
    let mut compared = 0;
    for (name, (_, ceiling)) in ntoskrnl() {
        let annotated = annotated(&functions["nt"][name]);
        // If there is no annotation, the limit comes from the documentation.
        if annotated != Irql::HIGH_LEVEL {
            assert_eq!(ceiling, annotated, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} exports have annotations");
}

/// Returns the contents of the list in the documentation.
fn list() -> String {
    let functions = functions();
    let mut text = String::from(
        "# Routines that the stand-in kernel provides\n\n\
         `cargo xtask renew routines` writes this list from the code.\n\n\
         A driver can call these routines. Each has the parameters of the WDK's headers; the stand-in \
         kernel compares the\ncaller's IRQL with the highest one that the table lists, and some routines have \
         a lower limit for certain\narguments. Calling an import, or an entry of the framework's table, that is \
         not listed causes a bugcheck.\n",
    );
    let mut section =
        |title: &str, rows: &Provided, parameters: &dyn Fn(&str) -> Option<Vec<String>>| {
            let _ = write!(
                text,
                "\n## {title}\n\n| routine | parameters | highest IRQL |\n| --- | --- | --- |\n"
            );
            for (name, (arity, ceiling)) in rows {
                let parameters = parameters(name).map_or_else(
                    || format!("{arity}; the ABI table does not have them"),
                    |all| all.join(", "),
                );
                let _ = writeln!(text, "| {name} | {parameters} | {ceiling} |");
            }
        };
    let export = |name: &str| parameters(&functions["nt"][name]);
    let entry = |name: &str| parameters(&functions["kmdf"][name]);
    section("ntoskrnl.exe", &ntoskrnl(), &export);
    section("WDFLDR.SYS", &wdfldr(), &export);
    section("WppRecorder.sys", &recorder(), &export);
    section("KMDF's function table", &kmdf(), &entry);
    let bare = crate::ground::bare::routines().map(|(name, _)| name).join(", ");
    let _ = write!(
        text,
        "\n## Routines that compiled code calls\n\n\
         {bare}: without an IRQL limit, and without a place in a bugcheck's list of calls.\n"
    );
    text
}

#[test]
fn the_documentation_lists_the_provided_routines() {
    let path: PathBuf = etw_test_support::root().join(LIST);
    let list = list();
    if std::env::var_os(RENEW).is_some() {
        fs::write(&path, &list).expect("the list can be written");
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    assert!(present == list, "{LIST} is out of date: `cargo xtask renew routines` writes it");
}
