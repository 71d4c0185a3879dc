//! Links an image reproducibly, independent of the folder and user that build it.
//!
//! A linker writes its command line, its working folder and the paths of its inputs to the PDB,
//! whose hash is in the image. Some of those folders have random names. Therefore, rustc runs this
//! program as the linker; it runs the real linker in a separate folder, where every input and
//! output has a relative name that depends only on the command line.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::process::symlink;

/// The environment variable that contains the real linker's path; while it is set, this program
/// acts as the linker.
const LINKER: &str = "WDK_ETW_LINKER";

/// The name under which the linker runs. It selects the linker flavor of `rust-lld`, and the PDB
/// contains it.
const NAME: &str = "lld-link";

/// The name under which this program makes static libraries.
pub const LIBRARIAN: &str = "llvm-lib";

/// The working folder of the linker according to the PDB.
const FOLDER: &str = "/pdbsourcepath:C:\\src";

/// The linker options that name an output file.
const OUTPUTS: [&str; 4] = ["/OUT", "/IMPLIB", "/PDB", "/MAP"];

/// Writes a file that acts as a linker or librarian: this program, under a name that rustc or build
/// scripts recognize.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn program(folder: &Path, name: &str) -> Result<PathBuf> {
    let link = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    // Copies the program, because a cargo build with other features replaces its file. `/proc`
    // refers to the running program even then.
    let proc = Path::new("/proc/self/exe");
    let this = if proc.exists() {
        proc.to_owned()
    } else {
        env::current_exe().context("cannot find the path of this program")?
    };
    // Writes the file under another name first, because the linker may be running.
    let new = folder.join(format!("{name}.{}", std::process::id()));
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(this, &new))
        .and_then(|_bytes| fs::rename(&new, &link))
        .with_context(|| format!("cannot write {}", link.display()))?;
    Ok(link)
}

/// Makes a cargo command link with this program; `folder` is for this function's own use.
///
/// On Windows, the linker runs directly, because rustc passes long command lines in a file there.
/// Only images built on Linux need to be identical.
///
/// # Errors
///
/// Fails if the program for rustc cannot be written.
pub fn wrap(cargo: &mut Command, target: &str, linker: &Path, folder: &Path) -> Result<()> {
    let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    if cfg!(unix) {
        cargo.env(variable, program(folder, NAME)?).env(LINKER, linker);
    } else {
        cargo.env(variable, linker);
    }
    Ok(())
}

/// Links, if this program was started as the linker.
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    let linker = env::var_os(LINKER)?;
    let mut arguments = env::args_os();
    // A build script inherits the variable and can run this program for another purpose.
    let program = arguments.next()?;
    let is_librarian = has_stem(&program, LIBRARIAN);
    if !is_librarian && !has_stem(&program, NAME) {
        return None;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let result =
        if is_librarian { make_library(&linker, &arguments) } else { link(&linker, &arguments) };
    Some(match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Returns whether a program was started under a name.
fn has_stem(program: &OsStr, name: &str) -> bool {
    Path::new(program).file_stem().is_some_and(|stem| stem == name)
}

/// Makes a static library with the linker, which is also a librarian.
fn make_library(linker: &OsStr, arguments: &[OsString]) -> Result<ExitCode> {
    let mut command = Command::new(linker);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, NAME);
    let status = command.arg("/lib").args(arguments).status();
    let status = status
        .with_context(|| format!("cannot start the linker {} as a librarian", linker.display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A linker's command line with relative names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    arguments: Vec<OsString>,
    /// The relative names, and the files or folders that they replace.
    inputs: Vec<(PathBuf, PathBuf)>,
    /// The folder for all outputs.
    out: Option<PathBuf>,
}

impl Plan {
    /// Plans a link; `exists` returns whether a path exists.
    fn new(arguments: &[OsString], exists: impl Fn(&Path) -> bool) -> Self {
        let mut plan = Self::default();
        let folders: Vec<&Path> = arguments.iter().filter_map(|one| search_folder(one)).collect();
        for argument in arguments {
            let library = library(argument, &folders);
            let argument = library.as_ref().map_or(argument.as_os_str(), |path| path.as_os_str());
            let changed = plan.change(argument, &exists);
            plan.arguments.push(changed.unwrap_or_else(|| argument.to_owned()));
        }
        plan
    }

    /// Replaces the absolute path in an argument, if any, with a relative name.
    fn change(&mut self, argument: &OsStr, exists: impl Fn(&Path) -> bool) -> Option<OsString> {
        let whole = Path::new(argument);
        if whole.is_absolute() && exists(whole) {
            return Some(self.input(whole).into());
        }
        let text = argument.to_str()?;
        let (option, value) = text.split_once(':')?;
        let path = Path::new(value);
        if !option.starts_with('/') || !path.is_absolute() {
            return None;
        }
        let relative = if OUTPUTS.iter().any(|out| option.eq_ignore_ascii_case(out)) {
            self.out.get_or_insert_with(|| path.parent().map_or_else(PathBuf::new, Path::to_owned));
            Path::new("out").join(path.file_name()?)
        } else if exists(path) {
            self.input(path)
        } else {
            return None;
        };
        let mut changed = OsString::from(option);
        changed.push(":");
        changed.push(relative);
        Some(changed)
    }

    /// Returns a relative name for an input: its number and its file name.
    fn input(&mut self, path: &Path) -> PathBuf {
        let folder = Path::new("in").join(self.inputs.len().to_string());
        let name = folder.join(path.file_name().unwrap_or_else(|| OsStr::new("input")));
        self.inputs.push((name.clone(), path.to_owned()));
        name
    }
}

/// Returns the folder that a linker option adds to those that are searched for libraries.
fn search_folder(argument: &OsStr) -> Option<&Path> {
    let (option, folder) = argument.to_str()?.split_once(':')?;
    option.eq_ignore_ascii_case("/LIBPATH").then(|| Path::new(folder))
}

/// Returns the path of a library that an argument names, such as `fltMgr.lib`, if its spelling
/// differs from the file's: on Windows, upper and lower case in file names are the same.
fn library(argument: &OsStr, folders: &[&Path]) -> Option<PathBuf> {
    let name = argument.to_str()?;
    let is_library = name.to_ascii_lowercase().ends_with(".lib") && !name.contains(['/', '\\']);
    if !is_library || folders.iter().any(|folder| folder.join(name).exists()) {
        return None;
    }
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| path.file_name().is_some_and(|file| file.eq_ignore_ascii_case(name)))
}

/// Runs the linker in a separate folder, and moves its outputs to where rustc expects them.
fn link(linker: &OsStr, arguments: &[OsString]) -> Result<ExitCode> {
    let plan = Plan::new(arguments, Path::exists);
    let Some(out) = plan.out.clone() else {
        bail!("the linker's command line has no /OUT: option");
    };
    let folder = out.join(format!(".link-{}", std::process::id()));
    let result = link_in(&folder, linker, &plan, &out);
    // The files of a failed link are discarded.
    let _ = fs::remove_dir_all(&folder);
    result
}

fn link_in(folder: &Path, linker: &OsStr, plan: &Plan, out: &Path) -> Result<ExitCode> {
    let write = |path: &Path| format!("cannot write {}", path.display());
    let written = folder.join("out");
    fs::create_dir_all(&written).with_context(|| write(&written))?;
    for (name, path) in &plan.inputs {
        let name = folder.join(name);
        name.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| symlink(path, &name))
            .with_context(|| write(&name))?;
    }
    let mut command = Command::new(linker);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, NAME);
    let status = command
        .args(&plan.arguments)
        .arg(FOLDER)
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot start the linker {}", linker.display()))?;
    for entry in fs::read_dir(&written).with_context(|| write(&written))? {
        let entry = entry.with_context(|| write(&written))?;
        let to = out.join(entry.file_name());
        fs::rename(entry.path(), &to).with_context(|| write(&to))?;
    }
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name in images of the folder that `cargo xtask` builds in.
pub const BUILT_IN: &str = "./target/driver-build";

/// Returns the compiler options that keep this machine's folders out of an image: the folders of
/// the source, the build, cargo's packages and the toolchain.
#[must_use]
pub fn remapped(root: &Path, target: &Path, cargo_home: &Path, sysroot: &Path) -> Vec<String> {
    let mut folders = vec![
        (root.to_owned(), "."),
        (target.to_owned(), BUILT_IN),
        (cargo_home.to_owned(), "cargo"),
        (sysroot.join("lib/rustlib/src/rust"), "rust"),
    ];
    // Debian's toolchain reaches its source through a symbolic link.
    if let Ok(source) = fs::canonicalize(sysroot.join("lib/rustlib/src/rust")) {
        folders.push((source, "rust"));
    }
    // The packages' folder name depends on the registry that this machine uses.
    let registries = fs::read_dir(cargo_home.join("registry/src"));
    folders.extend(
        registries.into_iter().flatten().flatten().map(|registry| (registry.path(), "cargo")),
    );
    folders.into_iter().map(|(folder, name)| remap(&folder, name)).collect()
}

/// Returns the compiler option that replaces a folder's name in an image.
#[must_use]
pub fn remap(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn planned(folder: &str, home: &str) -> Plan {
        let arguments: Vec<OsString> = [
            format!("/DEF:{folder}/rustcAb3/lib.def"),
            "/NOLOGO".to_owned(),
            format!("{folder}/a.rcgu.o"),
            format!("/LIBPATH:{home}/lib"),
            format!("/OUT:{folder}/a.dll"),
            format!("/IMPLIB:{folder}/a.dll.lib"),
            "/PDBALTPATH:%_PDB%".to_owned(),
            "/ENTRY:FxDriverEntry".to_owned(),
            format!("/NATVIS:{home}/missing.natvis"),
        ]
        .map(OsString::from)
        .to_vec();
        Plan::new(&arguments, |path| {
            // `/NOLOGO` and `/DEF:…` are also absolute paths, but of files that do not exist.
            let path = path.to_string_lossy();
            path[1..].contains('/') && !path.contains(':') && !path.contains("missing")
        })
    }

    #[test]
    fn a_plan_has_no_name_of_the_machine() {
        let plan = planned("/one/target", "/home/one");
        assert_eq!(
            plan.arguments,
            [
                "/DEF:in/0/lib.def", "/NOLOGO", "in/1/a.rcgu.o", "/LIBPATH:in/2/lib",
                "/OUT:out/a.dll", "/IMPLIB:out/a.dll.lib", "/PDBALTPATH:%_PDB%",
                "/ENTRY:FxDriverEntry", "/NATVIS:/home/one/missing.natvis",
            ]
        );
        assert_eq!(plan.out.as_deref(), Some(Path::new("/one/target")));
        let lib = (PathBuf::from("in/2/lib"), PathBuf::from("/home/one/lib"));
        assert_eq!(plan.inputs[2], lib);
    }

    #[test]
    fn only_the_linkers_name_makes_this_program_link() {
        assert!(has_stem(OsStr::new("/t/etw/build/linker/lld-link"), NAME));
        assert!(has_stem(OsStr::new("lld-link.exe"), NAME));
        assert!(!has_stem(OsStr::new("/home/me/.cargo/bin/cargo-etw"), NAME));
    }

    #[test]
    fn a_library_is_found_whatever_the_case_of_its_letters() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fltmgr.lib");
        fs::write(&file, "!<arch>\n").unwrap();
        let folders = [folder.path()];
        for (argument, found) in [
            ("fltMgr.lib", Some(&file)),
            ("FLTMGR.LIB", Some(&file)),
            ("fltmgr.lib", None),
            ("other.lib", None),
            ("/OPT:fltMgr.lib", None),
        ] {
            assert_eq!(library(OsStr::new(argument), &folders).as_ref(), found, "{argument}");
        }
    }

    #[test]
    fn plans_in_two_folders_are_the_same() {
        let mut one = planned("/one/target", "/home/one").arguments;
        let mut two = planned("/elsewhere/two/target", "/root").arguments;
        // Paths that do not exist are passed on unchanged.
        one.pop();
        two.pop();
        assert_eq!(one, two);
    }

    #[test]
    fn folders_inside_others_are_remapped_after_them() {
        let home = tempfile::tempdir().unwrap();
        let registry = home.path().join("registry/src/example-1");
        fs::create_dir_all(&registry).unwrap();
        let options =
            remapped(Path::new("/w"), Path::new("/w/target"), home.path(), Path::new("/t"));
        let place = |text: &str| options.iter().position(|option| option.contains(text)).unwrap();
        assert!(place("/w=.") < place("/w/target=./target/driver-build"));
        let whole = format!("{}=cargo", home.path().display());
        assert!(place(&whole) < place(&format!("{}=cargo", registry.display())));
    }
}
