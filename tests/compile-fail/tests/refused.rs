//! Declarations that must not compile, each with an error that says how to fix it.

#[test]
fn invalid_declarations_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/*.rs");
}
