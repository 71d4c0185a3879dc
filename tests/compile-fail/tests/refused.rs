//! Declarations that must not compile, each with an error that says how to fix it.
//!
//! The compiler runs once for each file in `refused`, with the library that cargo built for this
//! test. What it must print stands beside the file; `cargo xtask renew errors` writes that.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// The environment variable that makes the test write the expected output instead of comparing it.
const RENEW: &str = "WDK_ETW_RENEW";

/// The folder of this package, relative to the workspace's root.
const FOLDER: &str = "tests/compile-fail/";

/// The folder of the cases, relative to the workspace's root.
const CASES: &str = "tests/compile-fail/tests/refused";

/// Returns the workspace's root.
fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns a command that compiles a program with a library.
fn compiler(library: &Path, out: &Path) -> Command {
    let mut with_library = OsStr::new("wdk_etw=").to_owned();
    with_library.push(library);
    let mut compiler = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler
        .current_dir(root())
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "metadata", "--extern"])
        .arg(with_library)
        .arg("-L")
        .arg(library.parent().unwrap())
        .arg("--out-dir")
        .arg(out);
    compiler
}

/// Returns the library that cargo built last beside this test and that this compiler can use.
fn library(out: &Path) -> PathBuf {
    let test = env::current_exe().unwrap();
    let entries = fs::read_dir(test.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libwdk_etw-") && name.ends_with(".rlib")
    };
    let mut libraries: Vec<PathBuf> = paths.filter(is_library).collect();
    libraries.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let program = out.join("uses.rs");
    // Another build of the library is for user mode.
    let uses = "const _: () = assert!(!wdk_etw::__macro::USER_MODE); fn main() {}";
    fs::write(&program, uses).unwrap();
    let works =
        |library: &PathBuf| compiler(library, out).arg(&program).output().unwrap().status.success();
    libraries.into_iter().rev().find(works).expect("cargo builds wdk-etw for this test")
}

/// Compiles a case, and returns the errors. Panics if it compiles.
fn refuse(case: &str, library: &Path, out: &Path) -> String {
    let output = compiler(library, out).arg(format!("{CASES}/{case}")).output().unwrap();
    assert!(!output.status.success(), "{case} compiles");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns whether a line is a place: an arrow and a path.
fn place(code: &str) -> Option<&str> {
    code.strip_prefix("--> ").or_else(|| code.strip_prefix("::: "))
}

/// Returns a block of the compiler's output without what differs between machines and versions of the
/// library: the workspace's folder, the library's line numbers, and the number of its types.
fn normal(block: &str, root: &str) -> String {
    let is_margin = |one: char| one == ' ' || one.is_ascii_digit();
    let mut is_of_case = true;
    let lines: Vec<(&str, &str)> = block
        .lines()
        .map(|line| {
            let code = line.trim_start_matches(is_margin);
            let margin = &line[..line.len() - code.len()];
            if let Some(path) = place(code) {
                is_of_case = path.starts_with(CASES);
            }
            let number = margin.trim();
            (if is_of_case || number.is_empty() { margin } else { "" }, code)
        })
        .collect();
    // The margin is as wide as the largest line number in the case.
    let width = |margin: &str| margin.trim().len();
    let wide = lines.iter().map(|(margin, _)| width(margin)).max().unwrap_or_default().max(1);
    let arrow = lines.iter().find(|(_, code)| place(code).is_some());
    let written = arrow.map_or(wide, |(margin, _)| margin.len());
    let lines = lines.iter().map(|(margin, code)| {
        let number = margin.trim();
        if let Some(path) = place(code) {
            let of_case = path.strip_prefix(FOLDER);
            let path = of_case.map_or_else(
                || {
                    let end = |one: char| one == ':' || one.is_ascii_digit();
                    let path = path.trim_end_matches(end);
                    match path.strip_prefix(root) {
                        Some(path) => format!("$WORKSPACE/{path}"),
                        None if path.starts_with('/') => "$RUST".to_owned(),
                        None => format!("$WORKSPACE/{path}"),
                    }
                },
                ToOwned::to_owned,
            );
            return format!("{:wide$}{}{path}", "", &code[..4]);
        }
        if code.starts_with("and ") && code.ends_with(" others") {
            return format!("{:1$}and $N others", "", margin.len() + wide - written);
        }
        match code.chars().next() {
            Some('|' | '=') => format!("{number:>wide$} {code}"),
            Some('-' | '+' | '~') if !number.is_empty() => format!("{number:>wide$} {code}"),
            Some('.') if margin.is_empty() => (*code).to_owned(),
            // The continuation of a note.
            _ if margin.len() > written => {
                format!("{:1$}{code}", "", (margin.len() + wide).saturating_sub(written))
            }
            _ => format!("{margin}{code}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the errors in the compiler's output.
fn errors(output: &str, root: &str) -> String {
    let is_error = |block: &&str| {
        let others = ["warning: ", "error: aborting due to", "Some errors have", "For more"];
        !others.iter().any(|start| block.starts_with(start))
    };
    let blocks = output.trim_end().split("\n\n").filter(is_error);
    blocks.map(|block| normal(block, root)).collect::<Vec<_>>().join("\n\n") + "\n"
}

#[test]
fn invalid_declarations_do_not_compile() {
    let folder = root().join(CASES);
    let entries = fs::read_dir(&folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<String> =
        names.filter(|name| Path::new(name).extension() == Some(OsStr::new("rs"))).collect();
    cases.sort_unstable();
    assert!(!cases.is_empty());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = library(out);
    let root = format!("{}/", root().display());
    let next = AtomicUsize::new(0);
    let run = || {
        let mut wrong = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = errors(&refuse(case, &library, out), &root);
            let file = folder.join(case).with_extension("stderr");
            if env::var_os(RENEW).is_some() && !found.contains("$RUST") {
                fs::write(&file, found).unwrap();
            } else if fs::read_to_string(&file).unwrap_or_default() != found {
                wrong.push(format!("{}: the compiler prints\n{found}", file.display()));
            }
        }
        wrong
    };
    let wrong = thread::scope(|scope| {
        #[expect(clippy::needless_collect, reason = "all threads start before one is joined")]
        let threads: Vec<_> = (0..thread::available_parallelism().map_or(1, usize::from))
            .map(|_| scope.spawn(run))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<String>>()
    });
    assert!(
        wrong.is_empty(),
        "`cargo xtask renew errors` accepts these errors:\n{}",
        wrong.join("\n")
    );
}

/// rustc shows lines of the standard library only where the component `rust-src` is installed.
#[test]
fn no_error_depends_on_the_sources_of_the_standard_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let files = fs::read_dir(folder).expect("the folder exists");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let errors = paths.filter(|path| path.extension().is_some_and(|it| it == "stderr"));
    let mut count = 0;
    for path in errors {
        let text = fs::read_to_string(&path).expect("the file can be read");
        assert!(
            !text.contains("$RUST"),
            "{}: an error points into the standard library; use a type of the case's own",
            path.display()
        );
        count += 1;
    }
    assert_ne!(count, 0, "no expected error was found");
}
