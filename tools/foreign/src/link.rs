//! Links driver images with import libraries for the exports of the kernel and the framework.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use driver_build::{files, toolchain::Toolchain};
use serde_json::Value;

use super::project::Project;

/// The names that drivers can import.
pub struct Exports {
    /// The kernel's routines.
    routines: BTreeSet<String>,
    /// The kernel's variables.
    variables: BTreeSet<String>,
}

impl Exports {
    /// Collects the exports from the data about headers and samples.
    pub fn new(functions: &Value, samples: &Value, statics: &Value) -> Self {
        let names = |of: &Value| -> BTreeSet<String> {
            let all = of.as_object().into_iter().flatten();
            all.map(|(name, _)| name.clone()).collect()
        };
        let mut routines = names(&functions["nt"]);
        // Some are no longer in the headers.
        routines.extend(names(&samples["by_nt"]));
        for name in [
            "memcmp", "memcpy", "memmove", "memset",
            // The bindings omit this routine, because it is deprecated.
            "ExAllocatePoolWithQuotaTag",
        ] {
            routines.insert(name.to_owned());
        }
        let statics = statics["statics"].as_object().into_iter().flatten();
        let variables = statics.filter(|(_, one)| one["from"] == "ntoskrnl.exe");
        Self { routines, variables: variables.map(|(name, _)| name.clone()).collect() }
    }
}

const FRAMEWORK: [&str; 4] =
    ["WdfVersionBind", "WdfVersionBindClass", "WdfVersionUnbind", "WdfVersionUnbindClass"];

const RECORDER: [&str; 8] = [
    "WppAutoLogStart", "WppAutoLogStop", "imp_WppRecorderConfigure",
    "imp_WppRecorderIsDefaultLogAvailable", "imp_WppRecorderLogCreate", "imp_WppRecorderLogDelete",
    "imp_WppRecorderLogGetDefault", "imp_WppRecorderLogSetIdentifier",
];

/// The modules of routines that no header in the data declares, by the prefix of their names.
const MODULES: [(&str, &str); 7] = [
    ("Flt", "FLTMGR.SYS"),
    ("Ndis", "NDIS.SYS"),
    ("Fwpm", "fwpkclnt.sys"),
    ("Fwps", "fwpkclnt.sys"),
    ("Wsk", "NETIO.SYS"),
    ("Ks", "ks.sys"),
    ("", "ntoskrnl.exe"),
];

/// Returns the module that a routine without a declaration in the data is imported from.
pub fn module_of(name: &str) -> &'static str {
    let found = MODULES.iter().find(|(start, _)| name.starts_with(start));
    found.map_or("ntoskrnl.exe", |(_, module)| module)
}

/// Links a project's image. Undefined routines are imported, so that only a call to one stops the
/// driver.
///
/// # Errors
///
/// Fails with the linker's message.
pub fn link(
    toolchain: &Toolchain,
    exports: &Exports,
    project: &Project,
    objects: &[PathBuf],
    out: &Path,
) -> Result<PathBuf> {
    let linker = || {
        let mut command = Command::new(toolchain.linker());
        command.current_dir(out).args(["-flavor", "link", "/nologo"]);
        command
    };
    let library = |file: &str, module: &str, names: &mut dyn Iterator<Item = String>| {
        let mut definition = format!("LIBRARY {module}\nEXPORTS\n");
        for name in names {
            let _ = writeln!(definition, "    {name}");
        }
        let file = out.join(file).with_extension("def");
        files::write(&file, &definition)?;
        let library = file.with_extension("lib");
        run(linker()
            .args(["/lib", "/machine:x64"])
            .arg(join("/def:", &file))
            .arg(join("/out:", &library)))?;
        Ok::<PathBuf, anyhow::Error>(library)
    };
    let routines = exports.routines.iter().cloned();
    // Headers declare some variables without `dllimport`, so the address table is used directly.
    let variables = exports.variables.iter().map(|name| format!("{name} CONSTANT"));
    let owned = |names: &'static [&'static str]| names.iter().map(|name| (*name).to_owned());
    let mut libraries = vec![
        library("ntoskrnl.exe", "ntoskrnl.exe", &mut routines.chain(variables))?,
        library("WDFLDR.SYS", "WDFLDR.SYS", &mut owned(&FRAMEWORK))?,
        library("WppRecorder.sys", "WppRecorder.sys", &mut owned(&RECORDER))?,
    ];
    let image = out.join(format!("{}.sys", project.name));
    let entry = if project.is_wdm { "/entry:GsDriverEntry" } else { "/entry:FxDriverEntry" };
    let link = |libraries: &[PathBuf]| {
        run(linker()
            .args(["/driver", "/subsystem:native", "/machine:x64", "/release"])
            .args([entry, "/nodefaultlib", "/debug"])
            .args(project.has_integrity_check.then_some("/integritycheck"))
            .arg(join("/out:", &image))
            .args(objects)
            .args(libraries))
    };
    let Err(error) = link(&libraries) else {
        return Ok(image);
    };
    let text = error.to_string();
    let unknown: BTreeSet<&str> = undefined(&text).collect();
    if unknown.is_empty() {
        return Err(error);
    }
    for module in MODULES.map(|(_, module)| module) {
        let is_of = |name: &&&str| module_of(name) == module;
        let mut names = unknown.iter().filter(is_of).map(|name| (*name).to_owned()).peekable();
        if names.peek().is_some() {
            libraries.push(library(&format!("more-{module}"), module, &mut names)?);
        }
    }
    link(&libraries).map(|()| image)
}

/// Returns the C names that the linker does not find.
fn undefined(message: &str) -> impl Iterator<Item = &str> {
    message.lines().filter_map(|line| {
        let (_, symbol) = line.split_once("undefined symbol: ")?;
        let name = symbol.trim().trim_start_matches("__declspec(dllimport) ");
        let is_c = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        (!name.is_empty() && name.chars().all(is_c)).then_some(name)
    })
}

/// Runs a compiler or linker, and fails with its errors.
///
/// # Errors
///
/// Fails if the program cannot be started or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut errors = text.lines().filter(|line| line.contains("error:")).peekable();
    if errors.peek().is_none() {
        bail!("{}", text.trim());
    }
    bail!("{}", errors.collect::<Vec<_>>().join("\n"))
}

/// Returns an option with a path.
pub fn join(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_found_are_taken_from_the_linkers_message() {
        let text = "rust-lld: error: undefined symbol: __declspec(dllimport) FltRegisterFilter\n\
                    rust-lld: error: undefined symbol: ZwQuerySystemInformation\n\
                    rust-lld: error: undefined symbol: void __cdecl operator delete(void *)\nmore";
        let found: Vec<&str> = undefined(text).collect();
        assert_eq!(found, ["FltRegisterFilter", "ZwQuerySystemInformation"]);
    }

    #[test]
    fn the_errors_of_a_compiler_are_told() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'a.c(1,2): error: no such thing' >&2; echo more >&2; echo 'b: error: nor that'; exit 1",
        ]);
        let error = run(&mut command).unwrap_err().to_string();
        assert!(error.contains("a.c(1,2): error: no such thing"), "{error}");
        assert!(error.contains("b: error: nor that"), "{error}");
        assert!(!error.contains("more"), "{error}");
    }
}
