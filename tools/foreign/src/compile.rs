//! Compiles and links C drivers with clang, WDK headers, and this project's entry code.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use driver_build::{
    files, packages,
    toolchain::{Machine, Toolchain},
};
use serde_json::{Value, json};

use crate::{
    events,
    link::{self, Exports, join, run},
    mof,
    project::Project,
    sources::{NEWER, STRINGS, VARIABLES, WITH_RECORDER, WITHOUT_RECORDER},
};

/// The newest KMDF minor version whose function table the stand-in kernel provides.
const NEWEST_KMDF: u32 = 33;

/// The number of levels of subfolders that are searched for headers.
const DEPTH: u32 = 6;

/// The name of the library that contains [`STRINGS`].
const STRING_LIBRARY: &str = "ntstrsafe.lib";

/// The options for C++, about which Microsoft's compiler is less strict. TraceLoggingProvider.h
/// declares an enumeration in two different ways, except for `IntelliSense`.
const CPP: [&str; 3] = ["/GR-", "-Wno-c++11-narrowing", "/D__INTELLISENSE__"];

/// A compiler for C drivers.
pub struct Compiler {
    clang: PathBuf,
    toolchain: Toolchain,
    /// The header folders, in search order.
    headers: Vec<PathBuf>,
    /// The header with C's exception names, which the WDK includes in every file, if there is one.
    included: Option<PathBuf>,
    /// True if the headers lack the declarations in [`NEWER`].
    lacks_newer: bool,
    /// The KMDF minor version of the headers.
    kmdf: u32,
    functions: Value,
    /// The kernel's exports.
    exports: Exports,
}

/// The first line of a Registry Editor file.
pub const REGISTRY_FILE: &str = "Windows Registry Editor Version 5.00";

/// Returns the workspace's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns the folder for all build output.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Reads a file of the header data.
fn data(name: &str) -> Result<Value> {
    let path = root().join("tools/wdk-standin/data").join(name);
    let text = files::read_to_string(&path)?;
    serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))
}

impl Compiler {
    /// Finds the tools, and the newest headers in some folders.
    ///
    /// # Errors
    ///
    /// Fails if a tool or header is missing; the error names it.
    pub fn new(folders: &[PathBuf]) -> Result<Self> {
        ensure!(
            !folders.is_empty(),
            "name folders with the WDK's headers with --headers: `Include` of an installed kit, or of \
             the NuGet packages Microsoft.Windows.WDK.x64 and Microsoft.Windows.SDK.CPP"
        );
        let mut all = Vec::new();
        for folder in folders {
            let folder = folder
                .canonicalize()
                .with_context(|| format!("cannot find {}", folder.display()))?;
            folders_below(&folder, DEPTH, &mut all);
        }
        let kernel = newest(&all, "km", "wdm.h")?;
        let kmdf = all
            .iter()
            .filter(|folder| folder.join("wdf.h").is_file() && is_in_kmdf(folder))
            .filter_map(|folder| Some((minor(folder)?, folder.clone())))
            .filter(|(minor, _)| *minor <= NEWEST_KMDF)
            .max()
            .context("no folder kmdf/1.N has wdf.h")?;
        let shared = newest(&all, "shared", "ntdef.h")?;
        let mut headers = vec![kmdf.1, kernel.clone()];
        headers.extend(Some(kernel.join("crt")).filter(|crt| crt.is_dir()));
        headers.push(shared.clone());
        let clang = packages::c_compiler()?;
        let functions = data("functions.json")?;
        let wdm = files::read(kernel.join("wdm.h"))?;
        let lacks_newer = !String::from_utf8_lossy(&wdm).contains("ExAllocatePoolZero");
        let exports = Exports::new(&functions, &data("samples.json")?, &data("statics.json")?);
        Ok(Self {
            clang,
            toolchain: Toolchain::find_or_install(Machine::X64)?,
            headers,
            included: Some(shared.join("warning.h")).filter(|file| file.is_file()),
            lacks_newer,
            kmdf: kmdf.0,
            functions,
            exports,
        })
    }

    /// Builds a project in a folder, and returns the image.
    ///
    /// # Errors
    ///
    /// Fails with the message of the compiler or linker.
    pub fn build(&self, project: &Project, repository: &Path, out: &Path) -> Result<PathBuf> {
        let inside = |folder: &Path| {
            let folder = project.folder.join(folder);
            folder.canonicalize().ok()
        };
        let mut headers = vec![Self::write_trace_headers(project, out)?];
        if let Some(name) = &project.class_header {
            files::write(out.join("tmh").join(name), &class_header(project)?)?;
        }
        for (manifest, name) in &project.manifests {
            files::write(out.join("tmh").join(name), &event_header(project, manifest)?)?;
        }
        headers.extend(project.includes.iter().filter_map(|one| inside(one)));
        headers.extend(inside(Path::new("")));
        headers.extend(self.headers.iter().cloned());
        let overlay = out.join("overlay.json");
        // The case of the headers' names differs from the names in `#include` directives.
        files::write(&overlay, &overlay_of(&headers, &self.headers, repository)?)?;
        files::write(out.join("newer.h"), if self.lacks_newer { NEWER } else { "" })?;
        let count = self.function_count();
        let mut objects = Vec::new();
        for source in &project.sources {
            let object = out.join(object_name(source));
            let mut command = self.compiler(project, out);
            if is_cpp(source) {
                command.args(CPP).args(project.language.iter().map(|one| format!("/std:{one}")));
            }
            command
                .args(self.included.iter().map(|file| join("/FI", file)))
                .arg(format!("/FI{}", out.join("newer.h").display()))
                .args(["-Xclang", "-ivfsoverlay", "-Xclang"])
                .arg(&overlay)
                .args(project.definitions.iter().map(|one| format!("/D{one}")));
            for folder in &headers {
                command.arg(join("/I", folder));
            }
            command.arg(join("/Fo", &object)).arg("--").arg(on_disk(&project.folder.join(source)));
            run(&mut command)?;
            objects.push(object);
        }
        self.write_string_library(project, &overlay, out)?;
        let variables = out.join("variables.c");
        files::write(&variables, VARIABLES)?;
        for source in [root().join("tests/drivers/c/entry.c"), variables] {
            let object = out.join(format!("own-{}", object_name(&source)));
            let mut command = self.compiler(project, out);
            if project.is_wdm {
                command.arg("/DWDM");
            }
            command
                .arg(format!("/DFunctions=WdfFunctions_010{:02}", self.kmdf))
                .args(["/DGlobals=WdfDriverGlobals".to_owned()])
                .arg(format!("/DKMDF_MINOR={}", self.kmdf))
                .arg(format!("/DFUNCTION_COUNT={count}"))
                .arg(join("/Fo", &object))
                .arg("--")
                .arg(source);
            run(&mut command)?;
            objects.push(object);
        }
        objects.push(out.join(STRING_LIBRARY));
        link::link(&self.toolchain, &self.exports, project, &objects, out)
    }

    /// Returns the number of entries in the function table of the headers' version.
    fn function_count(&self) -> usize {
        let all = self.functions["kmdf"].as_object().into_iter().flatten();
        all.filter(|(_, function)| {
            let since = function["kmdf"].as_str().and_then(|text| text.split_once('.'));
            let minor = since.and_then(|(_, minor)| minor.parse::<u32>().ok());
            minor.is_none_or(|minor| minor <= self.kmdf)
        })
        .count()
    }

    /// Returns the compiler with the options for all files.
    fn compiler(&self, project: &Project, out: &Path) -> Command {
        let mut command = Command::new(&self.clang);
        command
            .current_dir(out)
            .args(["--driver-mode=cl", "--target=x86_64-pc-windows-msvc"])
            .args(["/nologo", "/c", "/X", "/Zl", "/O2", "/GS", "/Z7", "-w"])
            // Clang would inline nonpageable functions into pageable ones; Microsoft's compiler
            // does not.
            .arg("/Ob1")
            // For these, Microsoft's compiler only warns.
            .args([
                "-Wno-error=incompatible-function-pointer-types",
                "-Wno-error=int-conversion",
                "-Wno-error=invalid-token-paste",
            ])
            .args(["/Zc:wchar_t-", "-fms-compatibility-version=19.14"])
            .args(["/D_AMD64_", "/DAMD64", "/D_WIN64", "/D_KERNEL_MODE=1", "/DWINNT=1"])
            .args(["/DNTDDI_VERSION=0x0A000005", "/D_WIN32_WINNT=0x0A00", "/DWINVER=0x0A00"])
            .args(["/DNDEBUG", "/DPOOL_NX_OPTIN=1", "/DSTD_CALL"]);
        if !project.is_wdm {
            command
                .arg("/DKMDF_VERSION_MAJOR=1")
                .arg(format!("/DKMDF_VERSION_MINOR={}", self.kmdf));
        }
        command
    }

    /// Writes the library of functions that a driver with `NTSTRSAFE_LIB` does not contain itself.
    fn write_string_library(&self, project: &Project, overlay: &Path, out: &Path) -> Result<()> {
        let source = out.join("ntstrsafe.c");
        files::write(&source, STRINGS)?;
        let object = out.join("ntstrsafe.obj");
        let mut command = self.compiler(project, out);
        command.args(["-Xclang", "-ivfsoverlay", "-Xclang"]).arg(overlay);
        for folder in &self.headers {
            command.arg(join("/I", folder));
        }
        run(command.arg(join("/Fo", &object)).arg("--").arg(source))?;
        // The linker acts as a librarian only if this is its first argument.
        run(Command::new(self.toolchain.linker())
            .current_dir(out)
            .args(["-flavor", "link", "/lib", "/nologo", "/machine:x64"])
            .arg(join("/out:", &out.join(STRING_LIBRARY)))
            .arg(object))
    }

    /// Writes the files that the WPP preprocessor would generate, with empty macros, and returns
    /// their folder.
    fn write_trace_headers(project: &Project, out: &Path) -> Result<PathBuf> {
        let folder = out.join("tmh");
        files::create_dir_all(&folder)?;
        let texts = texts(project);
        let mut macros: BTreeSet<&str> = BTreeSet::from(["DoTraceMessage"]);
        macros.extend(project.trace_functions.iter().map(String::as_str));
        for text in &texts {
            macros.extend(trace_functions(text));
        }
        let mut header = String::from("#pragma once\n");
        for name in macros {
            let _ = write!(header, "#ifndef {name}\n#define {name}(...) ((void)0)\n#endif\n");
        }
        header.push_str(if project.uses_recorder { WITH_RECORDER } else { WITHOUT_RECORDER });
        for text in &texts {
            for name in included(text).filter(|name| {
                Path::new(name).extension().is_some_and(|one| one.eq_ignore_ascii_case("tmh"))
            }) {
                files::write(folder.join(name), &header)?;
            }
        }
        Ok(folder)
    }
}

/// Returns the header for a project's WMI classes.
fn class_header(project: &Project) -> Result<String> {
    let mut text = String::new();
    for file in &project.classes {
        let file = on_disk(&project.folder.join(file));
        let bytes = files::read(&file)?;
        // Some files are UTF-16.
        let mof: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0).collect();
        let header = mof::header(String::from_utf8_lossy(&mof).trim_start_matches('\u{fffd}'))
            .with_context(|| format!("cannot make a header of {}", file.display()))?;
        text.push_str(&header);
    }
    Ok(text)
}

fn is_cpp(source: &Path) -> bool {
    let extension = source.extension().unwrap_or_default();
    ["cpp", "cxx", "cc"].iter().any(|one| extension.eq_ignore_ascii_case(one))
}

/// Returns the header for a manifest's events.
fn event_header(project: &Project, manifest: &Path) -> Result<String> {
    let file = on_disk(&project.folder.join(manifest));
    let text = files::read_to_string(&file)?;
    events::header(text.trim_start_matches('\u{feff}'))
        .with_context(|| format!("cannot make a header of {}", file.display()))
}

/// Adds a folder and its subfolders.
fn folders_below(folder: &Path, depth: u32, all: &mut Vec<PathBuf>) {
    all.push(folder.to_owned());
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            folders_below(&entry.path(), depth, all);
        }
    }
}

/// Returns the newest folder with a given name that contains a header.
fn newest(all: &[PathBuf], name: &str, header: &str) -> Result<PathBuf> {
    all.iter()
        .filter(|folder| folder.ends_with(name) && folder.join(header).is_file())
        .max_by_key(|folder| version(folder))
        .cloned()
        .with_context(|| format!("no folder {name} with {header} is below the --headers folders"))
}

/// Returns the version numbers in a folder's path, such as `10.0.26100.0`.
fn version(folder: &Path) -> Vec<u32> {
    let name = folder.parent().and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().split('.').map_while(|part| part.parse().ok()).collect()
}

fn is_in_kmdf(folder: &Path) -> bool {
    folder.parent().is_some_and(|parent| parent.ends_with("kmdf"))
}

/// Returns the minor version in a folder name `1.N`.
fn minor(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?;
    name.strip_prefix("1.")?.parse().ok()
}

/// Returns the path of a file whose name can differ in case on disk.
fn on_disk(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|one| {
            !path.exists() && one.file_name().is_some_and(|one| one.eq_ignore_ascii_case(name))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// Returns the name of a source file's object, which is distinct for equally named files in
/// different folders.
fn object_name(source: &Path) -> String {
    let name = source.to_string_lossy().replace(['/', '\\', '.'], "_");
    format!("{}.obj", name.trim_start_matches('_'))
}

/// Returns the contents of a project's sources and of the headers in the same folders.
fn texts(project: &Project) -> Vec<String> {
    let mut folders = vec![project.folder.clone()];
    folders.extend(project.includes.iter().map(|one| project.folder.join(one)));
    let headers = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|one| one.eq_ignore_ascii_case("h")));
    let sources = project.sources.iter().map(|one| on_disk(&project.folder.join(one)));
    sources
        .chain(headers)
        .filter_map(|path| Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned()))
        .collect()
}

/// Returns the trace functions that comments declare for the WPP preprocessor: `// FUNC
/// Name{...}(...)`.
fn trace_functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix("//")?.trim_start();
        let name = name.strip_prefix("FUNC ")?.trim_start();
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        name.get(..end).filter(|name| !name.is_empty())
    })
}

/// Returns the names of the included files.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let rest = rest.strip_prefix(['"', '<'])?;
        rest.split(['"', '>']).next()
    })
}

/// Returns an overlay for clang in which header names are case-insensitive.
fn overlay_of(headers: &[PathBuf], system: &[PathBuf], repository: &Path) -> Result<String> {
    let repository = repository
        .canonicalize()
        .with_context(|| format!("cannot find {}", repository.display()))?;
    let mut roots: Vec<Value> = Vec::new();
    for folder in headers {
        // Headers include others by relative paths.
        let depth = if system.contains(folder) { 3 } else { 1 };
        if system.contains(folder) || folder.starts_with(&repository) || folder.ends_with("tmh") {
            roots.push(json!({
                "name": folder,
                "type": "directory",
                "contents": contents(folder, depth),
            }));
        }
    }
    let all = json!({ "version": 0, "case-sensitive": "false", "roots": roots });
    Ok(all.to_string())
}

fn contents(folder: &Path, depth: u32) -> Vec<Value> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if depth > 0 {
                let inside = contents(&path, depth - 1);
                all.push(json!({ "name": name, "type": "directory", "contents": inside }));
            }
        } else {
            all.push(json!({ "name": name, "type": "file", "external-contents": path }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_headers_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "Include/10.0.9999.0/km/wdm.h", "Include/10.0.26100.0/km/wdm.h",
            "Include/10.0.30000.0/km/other.h",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut all = Vec::new();
        folders_below(folder.path(), DEPTH, &mut all);
        let found = newest(&all, "km", "wdm.h").unwrap();
        assert!(found.ends_with("10.0.26100.0/km"), "{}", found.display());
        let error = newest(&all, "shared", "ntdef.h").unwrap_err().to_string();
        assert!(error.contains("no folder shared with ntdef.h"), "{error}");
        assert_eq!(minor(Path::new("/a/kmdf/1.31")), Some(31));
        assert_eq!(minor(Path::new("/a/umdf/2.31")), None);
    }

    #[test]
    fn trace_functions_and_included_files_are_found_in_text() {
        let text = "// begin_wpp config\n//   FUNC Trace{FLAG=ALL}(LEVEL, MSG, ...);\n\
                    // FUNC KdPrint((MSG, ...));\n// FUNCTION no\n#  include \"driver.tmh\"\n#include <wdm.h>\n";
        assert_eq!(trace_functions(text).collect::<Vec<_>>(), ["Trace", "KdPrint"]);
        assert_eq!(included(text).collect::<Vec<_>>(), ["driver.tmh", "wdm.h"]);
        assert_eq!(object_name(Path::new("../b/c.c")), "b_c_c.obj");
    }
}
