//! Runs the library's tests in Miri, which detects undefined behavior.

use std::process::Command;

use anyhow::Result;

use crate::{
    process::{cargo, output_of, run, run_for_results, target},
    progress::{at_once, step, step_with_output},
};

/// The flags for every run: ETW takes addresses as integers that must be restored to pointers, and
/// property tests look for a file of earlier failures.
const FLAGS: &str = "-Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// The aliasing models, with their flags.
const MODELS: [(&str, &str); 2] =
    [("Stacked Borrows", ""), ("Tree Borrows", "-Zmiri-tree-borrows")];

/// The number of cases that a property test tries, instead of 256.
const CASES: &str = "4";

/// The tests for `cargo xtask test`, which take about 15 seconds.
const QUICK: &[&str] = &[
    "--package", "wdk-etw", "--test", "it", "--", "registration::", "writing::", "enable_state::",
    "--skip", "the_last_of_many_writes", "--skip", "match_all_keywords_come_and_go", "--skip",
    "the_check_is_level_any_and_all", "--skip", "readers_never_see_a_mixture",
];

/// The tests for `cargo xtask test --deep`: those without other processes.
const DEEP: [&[&str]; 3] = [
    // One of the skipped tests needs a kernel's stacks, one computes for a minute, and one needs
    // more cases.
    &[
        "--package",
        "wdk-etw",
        "--lib",
        "--",
        "--skip",
        "the_stacks_of_threads_use_most_stripes",
        "--skip",
        "multiples_are_those_that_a_division_finds",
        "--skip",
        "iteration_of_a_hostile_chain_ends",
    ],
    // The skipped tests spend up to a quarter of an hour each in the decoder, which has no unsafe code; others
    // of their modules write with the same code.
    &[
        "--package",
        "wdk-etw",
        "--test",
        "it",
        "--",
        "cuts::",
        "debugger::",
        "declared::",
        "dynamic::",
        "elements::",
        "enable_state::",
        "exported::",
        "helpers::",
        "hostile::",
        "large::",
        "limits::",
        "names::",
        "parallel::",
        "presentations::",
        "registration::",
        "statistics::",
        "traits::",
        "writing::",
        "--skip",
        "every_type_of_text_is_cut_between_characters",
        "--skip",
        "arrays_of_structures_read_back",
        "--skip",
        "tracelogging_metadata_has_the_presentations",
        "--skip",
        "any_name_compiles_runs_and_decodes",
    ],
    &["--package", "wdk-etw-log", "--package", "wdk-etw-tracing", "--tests"],
];

fn miri(tests: &[&str], model: &str) -> Command {
    let mut command = cargo(&["+nightly", "miri", "test", "--locked", "--target-dir"]);
    command
        .arg(target().join("miri"))
        .args(tests)
        .env("MIRIFLAGS", format!("{FLAGS} {model}"))
        .env("PROPTEST_CASES", CASES);
    command
}

/// Returns the reason why Miri cannot run, or `None` if it can run.
fn missing() -> Option<String> {
    let mut version = Command::new("cargo");
    version.args(["+nightly", "miri", "--version"]);
    output_of(&mut version).is_none().then(|| {
        "testing the library in Miri: Rust's nightly toolchain has no Miri; `rustup toolchain install \
         nightly --component miri --component rust-src`"
            .to_owned()
    })
}

/// Runs some of the tests, or returns the reason why Miri cannot run.
pub fn check() -> Result<Option<String>> {
    if let Some(reason) = missing() {
        return Ok(Some(reason));
    }
    step("Testing the library in Miri", || run_for_results(&mut miri(QUICK, "")))?;
    Ok(None)
}

/// Runs the tests without other processes with both aliasing models, or returns the reason why Miri
/// cannot run.
pub fn check_deeply() -> Result<Option<String>> {
    if let Some(reason) = missing() {
        return Ok(Some(reason));
    }
    let check = |(name, model)| {
        DEEP.iter().try_for_each(|tests| {
            let package = tests.get(1).copied().unwrap_or_default();
            let title = format!("Testing {package} in Miri with {name}");
            step_with_output(&title, || run(&mut miri(tests, model)))
        })
    };
    let [stacked, tree] = MODELS;
    at_once(|| check(stacked), || check(tree))?;
    Ok(None)
}
