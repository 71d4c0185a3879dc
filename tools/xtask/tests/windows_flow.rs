//! Tests the two flows that build the driver package with the WDK, as far as possible without the
//! WDK.
//!
//! wdk-build 0.6.0 and cargo-wdk 0.2.0 compile only for Windows, so the tests reimplement their
//! rules from their sources. cargo-make itself runs on a copy of this project's makefiles.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use etw_test_support::root;
use serde_json::Value;

/// The folders of the drivers with WDK metadata.
const DRIVERS: [&str; 7] = [
    "driver", "driver/examples/minimal", "tests/drivers/filter", "tests/drivers/interrupt",
    "tests/drivers/kmdf", "tests/drivers/rules", "tests/drivers/usb",
];

/// Runs `cargo metadata` in a folder, like wdk-build.
fn metadata(folder: &Path) -> Value {
    let output = Command::new(env!("CARGO"))
        .current_dir(folder)
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the manifest of the package named wdk-build, whose makefile `load_rust_driver_makefile`
/// in wdk-build 0.6.0 loads. Like that function, fails if the workspace does not have exactly one
/// such package.
fn makefiles_package(metadata: &Value) -> Result<&Value, String> {
    let found: Vec<&Value> =
        packages(metadata).iter().filter(|package| package["name"] == "wdk-build").collect();
    match found.as_slice() {
        [package] => Ok(package),
        other => Err(format!("{} packages named wdk-build", other.len())),
    }
}

#[test]
fn wdk_build_finds_its_makefile_from_every_driver() {
    for driver in DRIVERS {
        let metadata = metadata(&root().join(driver));
        let package =
            makefiles_package(&metadata).unwrap_or_else(|error| panic!("{driver}: {error}"));
        // The published crate contains the makefile; the stand-in does not.
        let source = package["source"].as_str().unwrap_or_default();
        assert!(source.starts_with("registry+"), "{driver}: {package}");
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let makefile = manifest.with_file_name("rust-driver-makefile.toml");
        assert!(makefile.is_file(), "{} does not exist", makefile.display());
    }
}

/// wdk-build requires the same configuration in all packages that `cargo metadata` lists.
#[test]
fn the_drivers_agree_on_one_configuration() {
    let metadata = metadata(&root());
    let configurations: BTreeSet<String> = packages(&metadata)
        .iter()
        .map(|package| &package["metadata"]["wdk"])
        .chain([&metadata["metadata"]["wdk"]])
        .filter(|wdk| wdk.as_object().is_some_and(|wdk| !wdk.is_empty()))
        .map(Value::to_string)
        .collect();
    assert_eq!(configurations.len(), 1, "{configurations:?}");
}

/// Returns the path at which wdk-build's makefile and cargo-wdk expect a package's .inx file: next
/// to its manifest, named after the package with underscores.
fn inx(package: &Value) -> std::path::PathBuf {
    let name = package["name"].as_str().unwrap().replace('-', "_");
    Path::new(package["manifest_path"].as_str().unwrap()).with_file_name(format!("{name}.inx"))
}

#[test]
fn the_inx_is_where_both_flows_look_for_it() {
    let metadata = metadata(&root().join("driver"));
    let package =
        packages(&metadata).iter().find(|package| package["name"] == "etw-sample-driver").unwrap();
    let beside_manifest = inx(package);
    let original = root().join("inf/etw_sample_driver.inx");
    let read = |path: &Path| {
        fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    };
    assert!(
        read(&beside_manifest) == read(&original),
        "{} differs from {}: copy the second file over the first",
        beside_manifest.display(),
        original.display()
    );
}

/// PowerShell continues after a program fails, and a step's last command determines the result.
#[test]
fn no_step_of_the_windows_workflow_swallows_a_failing_command() {
    let workflow = root().join(".github/workflows/windows.yml");
    let text = fs::read_to_string(workflow).unwrap();
    let blocks: Vec<&str> = text.split("        run: |\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let script: Vec<&str> =
            block.lines().take_while(|line| line.starts_with("          ")).collect();
        assert!(
            script.iter().any(|line| line.contains("$LASTEXITCODE")),
            "more than one command, and their exit codes are not checked:\n{}",
            script.join("\n")
        );
    }
}

/// Runs cargo-make on a copy of the makefiles, on Linux instead of Windows.
#[cfg(target_os = "linux")]
mod cargo_make {
    use std::{
        fs,
        path::{Path, PathBuf},
        process::{Command, Output},
    };

    use etw_test_support::root;
    use tempfile::TempDir;

    /// A replacement for wdk-build's makefile that prints the flow's inputs.
    const MAKEFILE: &str = r#"
[tasks.default]
alias = "package-driver-flow"

[tasks.package-driver-flow]
script = ['echo "flow: crate $CARGO_MAKE_CRATE_FS_NAME in $CARGO_MAKE_WORKING_DIRECTORY: $@"']
script_runner = "bash"
"#;

    /// A replacement for wdk-build: the code that links its makefile.
    const WDK_BUILD: &str = r#"
pub mod cargo_make {
    pub fn load_rust_driver_makefile() -> std::io::Result<()> {
        let workspace = std::env::var("CARGO_MAKE_WORKSPACE_WORKING_DIRECTORY").unwrap();
        let link = std::path::Path::new(&workspace).join("target/rust-driver-makefile.toml");
        if link.exists() {
            return Ok(());
        }
        std::os::unix::fs::symlink(std::env::var("MICROSOFTS_MAKEFILE").unwrap(), link)
    }
}
"#;

    /// A workspace with this project's makefiles, modified so that the Windows tasks apply to this
    /// system and the load script is compiled instead of run by rust-script.
    struct Workspace {
        folder: TempDir,
    }

    fn compile(arguments: &[&str], folder: &Path) {
        let output = Command::new("rustc").current_dir(folder).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    impl Workspace {
        fn new() -> Self {
            let workspace = Self::without_makefiles();
            for makefile in ["Makefile.toml", "driver/Makefile.toml"] {
                workspace.add_makefile(makefile, &root().join(makefile));
            }
            workspace
        }

        fn without_makefiles() -> Self {
            let workspace = Self { folder: tempfile::tempdir().unwrap() };
            workspace.add_package("driver", "etw-sample-driver", "lib.rs", "");
            workspace.add_package("client", "etw-sample-client", "main.rs", "fn main() {}");
            workspace.write(
                "Cargo.toml",
                "[workspace]\nresolver = \"3\"\nmembers = [\"driver\", \"client\"]\n",
            );
            workspace.write("tools/rust-driver-makefile.toml", MAKEFILE);
            workspace
        }

        fn add_makefile(&self, to: &str, from: &Path) {
            let text = fs::read_to_string(from).unwrap();
            self.write(to, &self.on_this_system(&text));
        }

        fn path(&self, path: &str) -> PathBuf {
            // cargo-make shows paths with symbolic links resolved.
            self.folder.path().canonicalize().unwrap().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn add_package(&self, folder: &str, name: &str, file: &str, source: &str) {
            self.write(
                &format!("{folder}/Cargo.toml"),
                &format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n"),
            );
            self.write(&format!("{folder}/src/{file}"), source);
        }

        /// Modifies a makefile so that its Windows tasks apply to this system and its load script
        /// is compiled.
        fn on_this_system(&self, makefile: &str) -> String {
            let mut makefile = makefile.replace(".linux]", ".mac]").replace(".windows]", ".linux]");
            if let Some((before, rest)) = makefile.split_once("windows_load_script = '''") {
                let (script, after) = rest.split_once("'''").unwrap();
                let script = script.trim_start().strip_prefix("#!@rust").unwrap();
                self.write("tools/wdk_build.rs", WDK_BUILD);
                let is_program = script.contains("fn main");
                // rust-script puts lines without a `main` into one that can return any error.
                let lines = "fn main() -> Result<(), Box<dyn std::error::Error>> {\n";
                let lines = format!("{lines}{script};\nOk(())\n}}\n");
                self.write("tools/load.rs", if is_program { script } else { &lines });
                let tools = self.path("tools");
                compile(&["--crate-type", "rlib", "wdk_build.rs"], &tools);
                let extern_crate = "wdk_build=libwdk_build.rlib";
                // The edition that rust-script uses.
                let edition = "2021";
                compile(&["--edition", edition, "--extern", extern_crate, "load.rs"], &tools);
                let program = tools.join("load");
                makefile =
                    format!("{before}linux_load_script = '''\n{}\n'''{after}", program.display());
            }
            makefile
        }

        fn cargo_make(&self, folder: &str, arguments: &[&str]) -> (Output, String) {
            let mut command = Command::new("cargo");
            // Removes variables that an outer cargo or cargo-make has set.
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("CARGO_MAKE") {
                    command.env_remove(name);
                }
            }
            let output = command
                .current_dir(self.path(folder))
                .arg("make")
                .arg("--disable-check-for-updates")
                .args(arguments)
                .env_remove("CARGO_TARGET_DIR")
                .env("MICROSOFTS_MAKEFILE", self.path("tools/rust-driver-makefile.toml"))
                .output()
                .unwrap();
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            (output, said)
        }

        fn assert_flow_ran(&self, (output, said): &(Output, String), arguments: &str) {
            assert!(output.status.success(), "{said}");
            let flow = format!(
                "flow: crate etw_sample_driver in {}: {arguments}",
                self.path("driver").display()
            );
            assert!(said.lines().any(|line| line == flow), "no {flow:?}:\n{said}");
            let link = self.path("target/rust-driver-makefile.toml");
            assert!(link.is_symlink(), "{} is not a link", link.display());
            assert!(!self.path("driver/target").exists(), "{said}");
        }
    }

    #[test]
    #[ignore = "needs cargo-make; `cargo xtask test` installs it and runs this test"]
    fn the_flow_runs_from_the_root_with_its_arguments() {
        let workspace = Workspace::new();
        let arguments = ["--profile", "release", "--target", "x86_64-pc-windows-msvc"];
        let mut command = vec!["package"];
        command.extend(arguments);
        let ran = workspace.cargo_make(".", &command);
        workspace.assert_flow_ran(&ran, &arguments.join(" "));
    }

    #[test]
    #[ignore = "needs cargo-make; `cargo xtask test` installs it and runs this"]
    fn the_flow_runs_from_the_drivers_folder() {
        let workspace = Workspace::new();
        let ran = workspace.cargo_make("driver", &["package-driver-flow"]);
        workspace.assert_flow_ran(&ran, "");
    }

    #[test]
    #[ignore = "needs cargo-make; `cargo xtask test` installs it and runs this"]
    fn the_flow_runs_in_the_drivers_folder_from_elsewhere() {
        let workspace = Workspace::new();
        let command = ["--cwd", "driver", "--no-workspace", "package-driver-flow"];
        let ran = workspace.cargo_make(".", &command);
        workspace.assert_flow_ran(&ran, "");
    }

    /// cargo-make also runs the load script in the folder of each package.
    #[test]
    #[ignore = "needs cargo-make; `cargo xtask test` installs it and runs this"]
    fn a_new_drivers_flow_leaves_no_folders_beside_its_packages() {
        let workspace = Workspace::without_makefiles();
        let template = "tools/cargo-etw/src/new/templates/Makefile.toml.in";
        workspace.add_makefile("Makefile.toml", &root().join(template));
        let ran = workspace.cargo_make(".", &[]);
        workspace.assert_flow_ran(&ran, "");
        assert!(!workspace.path("client/target").exists(), "{}", ran.1);
    }

    #[test]
    #[ignore = "needs cargo-make; `cargo xtask test` installs it and runs this"]
    fn a_makefile_that_is_missing_is_named() {
        let workspace = Workspace::new();
        let text = fs::read_to_string(workspace.path("driver/Makefile.toml")).unwrap();
        let (before, after) = text.split_once("linux_load_script").unwrap();
        workspace.write("driver/Makefile.toml", &format!("{before}mac_load_script{after}"));
        let (output, said) = workspace.cargo_make("driver", &["package-driver-flow"]);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("target/rust-driver-makefile.toml"), "{said}");
    }
}
