//! The configuration in which a declaration is read: the values of `#[cfg(…)]` that are known
//! outside the compiler.
//!
//! An unknown option is an error, because the image's resources could then differ from its code.
//! The profile is unknown: cargo passes the same `CARGO_CFG_DEBUG_ASSERTIONS` and `CARGO_CFG_PANIC`
//! to a build script, whatever the profile sets.

use std::env;

use wdk_etw_schema::Configuration;

/// The target properties, which are the same for the build script's package and the driver.
const TARGET: &[&str] = &[
    "target_abi", "target_arch", "target_endian", "target_env", "target_family", "target_feature",
    "target_has_atomic", "target_os", "target_pointer_width", "target_vendor", "unix", "windows",
];

/// The options that are never set while an image's code is compiled.
const NEVER: &[&str] = &["doc", "doctest", "test"];

/// The separator of `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: char = '\u{1f}';

/// Returns the configuration that cargo passes to a build script: the package's features, the
/// target's properties, and the options in `RUSTFLAGS`. Outside a build script, all are unknown.
#[must_use]
pub fn of_build_script() -> Configuration {
    let mut configuration = of_target();
    if env::var_os("CARGO_CFG_TARGET_OS").is_none() {
        return configuration;
    }
    let features = features();
    // Old versions of cargo do not pass the names of features.
    if !features.is_empty() || !has_features() {
        put_features(&mut configuration, &features);
    }
    configuration
}

/// Returns the configuration of a library that the build script's package links: these features,
/// and the target properties and options in `RUSTFLAGS`, which both packages share.
pub(crate) fn of_dependency(features: &[String]) -> Configuration {
    let mut configuration = of_target();
    put_features(&mut configuration, features);
    configuration
}

/// Returns the features of the build script's package.
pub(crate) fn features() -> Vec<String> {
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    let features = features.split(',').filter(|name| !name.is_empty());
    features.map(str::to_owned).collect()
}

fn put_features(configuration: &mut Configuration, features: &[String]) {
    for feature in features {
        configuration.set("feature", Some(feature), true);
    }
    configuration.close("feature");
}

/// Returns the options that a build script knows about its target: all except features.
fn of_target() -> Configuration {
    let mut configuration = Configuration::new();
    if env::var_os("CARGO_CFG_TARGET_OS").is_none() {
        return configuration;
    }
    let variable = |name: &str| {
        let name = format!("CARGO_CFG_{}", name.to_ascii_uppercase());
        env::var(name).ok()
    };
    for name in TARGET {
        match variable(name) {
            Some(values) if ["unix", "windows"].contains(name) => {
                debug_assert!(values.is_empty(), "the option has no value");
                configuration.set(name, None, true);
            }
            Some(values) => {
                for value in values.split(',') {
                    configuration.set(name, Some(value), true);
                }
            }
            None => {}
        }
        configuration.close(name);
    }
    for name in NEVER {
        configuration.close(name);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    put_flags(&mut configuration, flags.split(SEPARATOR));
    configuration
}

/// Returns whether cargo passes any feature, even in a form that does not determine its name.
fn has_features() -> bool {
    env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("CARGO_FEATURE_"))
}

/// Sets the options in the compiler flags' `--cfg` arguments.
fn put_flags<'a>(configuration: &mut Configuration, flags: impl Iterator<Item = &'a str>) {
    let mut flags = flags;
    while let Some(flag) = flags.next() {
        let option = if flag == "--cfg" { flags.next() } else { flag.strip_prefix("--cfg=") };
        let Some(option) = option else { continue };
        match option.split_once('=') {
            Some((name, value)) => {
                let value = value.trim().trim_matches('"');
                configuration.set(name.trim(), Some(value), true);
            }
            None => configuration.set(option.trim(), None, true),
        }
    }
}

/// Returns the configuration of a driver for x64 Windows with these features of its package, for
/// commands that run outside the driver's build.
#[must_use]
pub fn of_driver<'a>(features: impl IntoIterator<Item = &'a str>) -> Configuration {
    const X64: &[(&str, Option<&str>)] = &[
        ("target_arch", Some("x86_64")),
        ("target_endian", Some("little")),
        ("target_env", Some("msvc")),
        ("target_family", Some("windows")),
        ("target_has_atomic", Some("8")),
        ("target_has_atomic", Some("16")),
        ("target_has_atomic", Some("32")),
        ("target_has_atomic", Some("64")),
        ("target_has_atomic", Some("ptr")),
        ("target_os", Some("windows")),
        ("target_pointer_width", Some("64")),
        ("target_vendor", Some("pc")),
        ("windows", None),
    ];
    let mut configuration = Configuration::new();
    for (name, value) in X64 {
        configuration.set(name, *value, true);
    }
    for feature in features {
        configuration.set("feature", Some(feature), true);
    }
    for name in TARGET.iter().chain(NEVER).chain(&["feature"]) {
        // The processor features depend on the compiler's flags.
        if *name != "target_feature" {
            configuration.close(name);
        }
    }
    configuration
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proc_macro2::TokenStream;
    use wdk_etw_schema::Evaluate as _;

    use super::*;

    fn is(configuration: &Configuration, predicate: &str) -> Option<bool> {
        let predicate: TokenStream = predicate.parse().unwrap();
        configuration.evaluate(&predicate).ok()
    }

    #[test]
    fn the_flags_options_are_set_and_no_other_is_known() {
        let mut configuration = Configuration::new();
        let flags = "-Copt-level=3|--cfg|lab|--cfg=board=\"a\"|--cfg|board = \"b\"";
        put_flags(&mut configuration, flags.split('|'));
        for option in ["lab", "board = \"a\"", "board = \"b\""] {
            assert_eq!(is(&configuration, option), Some(true), "{option}");
        }
        assert_eq!(is(&configuration, "board = \"c\""), None);
        assert_eq!(is(&configuration, "other"), None);
    }

    #[test]
    fn a_driver_is_for_windows() {
        let configuration = of_driver(["a"]);
        for (predicate, expected) in [
            ("windows", Some(true)),
            ("unix", Some(false)),
            ("target_arch = \"aarch64\"", Some(false)),
            ("all(feature = \"a\", not(feature = \"b\"))", Some(true)),
            ("test", Some(false)),
            ("debug_assertions", None),
            ("target_feature = \"avx2\"", None),
        ] {
            assert_eq!(is(&configuration, predicate), expected, "{predicate}");
        }
    }

    /// The options that `known` asks about, and the features of a dependency.
    const ASKED: [&str; 9] = [
        "windows", "unix", "target_os = \"windows\"", "target_has_atomic = \"16\"",
        "target_has_atomic = \"128\"", "test", "lab", "feature = \"own\"", "feature = \"other\"",
    ];

    /// Returns each option's value in a process with these environment variables, for its own
    /// declarations and for a dependency's, with the feature `other`: `+` for set, `-` for unset,
    /// `?` for unknown.
    fn known(variables: &[(&str, &str)]) -> [String; 2] {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "configuration::tests::build_script"])
            .args(["--ignored", "--nocapture"])
            .envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        ["own: ", "dependency: "].map(|label| {
            let mut lines = said.lines();
            let line = lines.find_map(|line| line.strip_prefix(label));
            line.unwrap_or_else(|| panic!("{said}")).to_owned()
        })
    }

    #[test]
    #[ignore = "a build script; `known` runs it"]
    fn build_script() {
        let answers = |configuration: &Configuration| {
            ASKED.map(|option| match is(configuration, option) {
                Some(true) => '+',
                Some(false) => '-',
                None => '?',
            })
        };
        let own = String::from_iter(answers(&of_build_script()));
        let dependency = String::from_iter(answers(&of_dependency(&["other".to_owned()])));
        println!("\nown: {own}\ndependency: {dependency}");
    }

    #[test]
    fn a_build_script_knows_its_features_its_target_and_its_flags() {
        const WINDOWS: [(&str, &str); 4] = [
            ("CARGO_CFG_TARGET_OS", "windows"),
            ("CARGO_CFG_WINDOWS", ""),
            ("CARGO_CFG_TARGET_HAS_ATOMIC", "8,16,32"),
            ("CARGO_ENCODED_RUSTFLAGS", "-Copt-level=1\u{1f}--cfg\u{1f}lab"),
        ];
        // Outside a build script.
        assert_eq!(known(&[("CARGO_CFG_FEATURE", "own")]), ["?????????", "???????-+"]);
        // Without features.
        assert_eq!(known(&WINDOWS), ["+-++--+--", "+-++--+-+"]);
        let feature = ("CARGO_CFG_FEATURE", "first,own");
        let with_flag = ("CARGO_FEATURE_OWN", "1");
        let all = [&WINDOWS[..], &[feature, with_flag]].concat();
        assert_eq!(known(&all), ["+-++--++-", "+-++--+-+"]);
        // An old version of cargo, which reports that a feature is set, but not its exact name.
        let old = [&WINDOWS[..], &[with_flag]].concat();
        assert_eq!(known(&old), ["+-++--+??", "+-++--+-+"]);
    }
}
