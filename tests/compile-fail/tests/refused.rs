//! Declarations that must not compile, each with an error that names the fix.

#[test]
fn declarations_that_can_never_work_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/*.rs");
}
