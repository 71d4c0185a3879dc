//! Declarations that must not compile, each with an error that says how to fix it.

use std::{fs, path::Path};

#[test]
fn invalid_declarations_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/*.rs");
}

/// rustc shows lines of the standard library only where the component `rust-src` is installed.
#[test]
fn no_error_depends_on_the_sources_of_the_standard_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let files = fs::read_dir(folder).expect("the folder exists");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let errors = paths.filter(|path| path.extension().is_some_and(|of| of == "stderr"));
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
