//! Tests that a declaration does not compile in a package for the wrong mode.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// A package with a provider: its name, the driver type that `wdk-build` sets, whether it enables
/// the feature, whether it is a program, and whether it installs the `tracing` subscriber.
struct Package {
    name: &'static str,
    driver_type: Option<&'static str>,
    user_mode: bool,
    is_program: bool,
    has_subscriber: bool,
}

const PACKAGES: [Package; 8] = [
    package("kmdf", Some("KMDF"), false),
    package("wrong-kmdf", Some("KMDF"), true),
    package("umdf", Some("UMDF"), true),
    package("wrong-umdf", Some("UMDF"), false),
    Package { is_program: true, ..package("program", None, true) },
    Package { is_program: true, ..package("wrong-program", None, false) },
    Package { has_subscriber: true, ..package("subscriber", None, false) },
    Package { has_subscriber: true, ..package("wrong-subscriber", None, true) },
];

const fn package(
    name: &'static str,
    driver_type: Option<&'static str>,
    user_mode: bool,
) -> Package {
    Package { name, driver_type, user_mode, is_program: false, has_subscriber: false }
}

const DECLARATION: &str = "#![deny(warnings)]\n\n#[wdk_etw::provider(name = \"Test.Mode\")]\npub mod \
                           trace {\n    #[event(level = Info, keyword = none)]\n    pub fn \
                           happened();\n}\n";

const SUBSCRIBER: &str = "
static SUBSCRIBER: wdk_etw_tracing::EtwSubscriber =
    wdk_etw_tracing::EtwSubscriber::new(&trace::PROVIDER, wdk_etw::Keyword::NONE);

pub fn start() -> bool {
    SUBSCRIBER.install().is_ok()
}
";

/// The folder of the packages' workspace, which is written once.
static WORKSPACE: LazyLock<PathBuf> = LazyLock::new(workspace);

/// Writes a workspace with the packages, and returns its folder.
fn workspace() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modes");
    let library = etw_test_support::root().join("provider-lib");
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // An unchanged file keeps its modification time, so that cargo does not rebuild it.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).unwrap();
        }
    };
    let names = PACKAGES.map(|package| package.name);
    write("Cargo.toml", &format!("[workspace]\nresolver = \"3\"\nmembers = {names:?}\n"));
    let lock = fs::read_to_string(etw_test_support::root().join("Cargo.lock")).unwrap();
    write("Cargo.lock", &lock);
    for Package { name, driver_type, user_mode, is_program, has_subscriber } in PACKAGES {
        let features = if user_mode { "[\"user-mode\"]" } else { "[]" };
        let mut manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\nwdk-etw = {{ path = \
             {:?}, features = {features} }}\n",
            library.display().to_string()
        );
        let mut source = DECLARATION.to_owned();
        if has_subscriber {
            let tracing = library.join("tracing").display().to_string();
            manifest = format!("{manifest}wdk-etw-tracing = {{ path = {tracing:?} }}\n");
            source += SUBSCRIBER;
        }
        write(&format!("{name}/Cargo.toml"), &manifest);
        // The settings are the `cfg` options that wdk-build sets.
        let settings = driver_type.map_or_else(String::new, |kind| {
            format!(
                "    println!(\"cargo::rustc-check-cfg=cfg(driver_model__driver_type, \
                 values(\\\"WDM\\\", \\\"KMDF\\\", \\\"UMDF\\\"))\");\n    \
                 println!(\"cargo::rustc-cfg=driver_model__driver_type=\\\"{kind}\\\"\");\n"
            )
        });
        write(&format!("{name}/build.rs"), &format!("fn main() {{\n{settings}}}\n"));
        if is_program {
            write(&format!("{name}/src/main.rs"), &format!("{DECLARATION}\nfn main() {{}}\n"));
        } else {
            write(&format!("{name}/src/lib.rs"), &source);
        }
    }
    folder
}

/// Checks packages with one command. Returns whether it succeeded, and its error output.
fn check(packages: &[&str], target: Option<&str>) -> (bool, String) {
    cargo("check", packages, target)
}

/// Runs a cargo command for packages. Returns whether it succeeded, and its error output.
fn cargo(what: &str, packages: &[&str], target: Option<&str>) -> (bool, String) {
    let folder = &*WORKSPACE;
    let mut command = Command::new(env!("CARGO"));
    command
        .args([what, "--offline", "--quiet"])
        .current_dir(folder)
        // The packages share those that the checkout's macros use.
        .env("CARGO_TARGET_DIR", folder.join("../.."))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        // The environment's options are for the target of the build that runs this test.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    for package in packages {
        command.args(["--package", package]);
    }
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

const NO_KERNEL: &str =
    "this package is a kernel-mode driver, but `wdk-etw` is compiled with its feature `user-mode`";
const NO_USER: &str =
    "this package runs in user mode, but `wdk-etw` is compiled for kernel-mode drivers";

#[test]
fn a_declaration_refuses_the_wrong_mode() {
    for package in ["kmdf", "umdf", "program"] {
        let (succeeded, errors) = check(&[package], None);
        assert!(succeeded, "{package}: {errors}");
        assert_eq!(errors, "", "{package}");
    }
    for (package, error) in [("wrong-kmdf", NO_KERNEL), ("wrong-umdf", NO_USER)] {
        let (succeeded, errors) = check(&[package], None);
        assert!(!succeeded && errors.contains(error), "{package}: {errors}");
    }
    // One command checks a driver and a program: the program's feature also applies to the driver.
    let (succeeded, errors) = check(&["kmdf", "program"], None);
    assert!(!succeeded && errors.contains(NO_KERNEL), "{errors}");
}

#[test]
fn a_program_for_windows_must_enable_the_feature() {
    const TARGET: &str = "x86_64-pc-windows-msvc";
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .unwrap();
    let libraries = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    assert!(
        libraries.is_dir(),
        "the test needs the target's libraries: `rustup target add {TARGET}`"
    );
    let (succeeded, errors) = check(&["program"], Some(TARGET));
    assert!(succeeded, "{errors}");
    let (succeeded, errors) = check(&["wrong-program"], Some(TARGET));
    assert!(!succeeded && errors.contains(NO_USER), "{errors}");
}

/// The subscriber calls the kernel, which a user-mode program cannot call.
#[test]
fn the_subscriber_of_tracing_refuses_user_mode() {
    let (succeeded, errors) = cargo("build", &["subscriber"], None);
    assert!(succeeded && errors.is_empty(), "{errors}");
    let (succeeded, errors) = cargo("build", &["wrong-subscriber"], None);
    let expected = "`wdk-etw-tracing` is for kernel-mode drivers, but `wdk-etw` is compiled with its \
                    feature `user-mode`";
    assert!(!succeeded && errors.contains(expected), "{errors}");
}
