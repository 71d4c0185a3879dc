//! Runs the commands on a driver in a separate folder, outside every checkout, that differs from
//! the sample in its name, layout, number of providers and framework version.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use etw_test_support::{root, verify_signature};
use tempfile::TempDir;

use crate::common;

/// The files of the driver.
const FILES: [&str; 4] =
    ["build.rs", "source/driver.rs", "source/telemetry/mod.rs", "source/telemetry/events.rs"];

const EVENTS: &str = "source/telemetry/events.rs";

/// A driver in a separate folder with a git repository.
struct Own {
    folder: TempDir,
    /// True if the driver is built in the checkout's target folder, which has its dependencies.
    shares_target: bool,
}

impl Own {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixture = root().join("tools/cargo-etw/tests/fixture/lidar");
        for name in FILES {
            let to = folder.path().join(name);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(fixture.join(name), to).unwrap();
        }
        let library = root().join("provider-lib");
        let manifest = fs::read_to_string(fixture.join("Cargo.toml.in")).unwrap();
        let manifest = manifest.replace("@LIBRARY@", library.to_str().unwrap());
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        // A lock file with this repository's versions, which are already present on this machine.
        fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        let own = Self { folder, shares_target: false };
        own.git(&["init", "--quiet"]);
        own.commit();
        own
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces text in a file.
    fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.text(name);
        assert!(text.contains(from), "{name} has no {from:?}");
        fs::write(self.path(name), text.replace(from, to)).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .current_dir(self.folder.path())
            .args(["-c", "user.name=A", "-c", "user.email=a@acme.example"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "Change the driver"]);
    }

    /// Runs `cargo etw` in a folder of the driver.
    fn etw_in(&self, folder: &str, arguments: &[&str]) -> Output {
        let mut command = common::command(&self.path(folder), arguments);
        if self.shares_target {
            command.envs(common::shared());
            // Otherwise, cargo would compile the macros again.
            command.env("CARGO_PROFILE_RELEASE_LTO", "true");
        }
        command.output().unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.etw_in(".", arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its messages.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.etw_in(".", arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Returns an attribute's values in all elements with the name `element`.
fn attributes(xml: &str, element: &str, attribute: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(xml).unwrap();
    let elements = document.descendants();
    elements
        .filter(|node| node.tag_name().name() == element)
        .filter_map(|node| node.attribute(attribute))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_manifest_is_found_written_and_compared_with_git() {
    let own = Own::new();
    let printed = own.succeed(&["manifest", "write"]);
    assert!(printed.trim().ends_with("/lidar.man"), "{printed}");
    // After an installation by INF file, the manifest's path does not exist.
    let output = own.etw_in(".", &["manifest", "write"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let command = r#"`wevtutil im lidar.man /rf:"%CD%\lidar.sys" /mf:"%CD%\lidar.sys"`"#;
    assert!(said.contains(command), "{said}");
    let text = own.text("lidar.man");
    assert!(text.contains("from source/telemetry/events.rs."), "{text}");
    let names = attributes(&text, "provider", "name");
    assert_eq!(names, ["Acme.Lidar.Frames", "Acme.Lidar.Health"]);
    let images = attributes(&text, "provider", "resourceFileName");
    assert_eq!(images, [r"%SystemRoot%\System32\drivers\lidar.sys"; 2]);
    own.succeed(&["manifest", "write", "--check"]);

    // Until the manifest is committed, the declaration in git is the base.
    let printed = own.succeed(&["manifest", "check"]);
    assert!(printed.contains("HEAD:source/telemetry/events.rs"), "{printed}");
    own.commit();
    let output = own.etw_in("source/telemetry", &["manifest", "check"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("every event of HEAD:lidar.man"), "{printed}");

    own.change(EVENTS, "points: u32", "points: u16");
    let said = own.fail(&["manifest", "check"]);
    assert!(said.contains("events.rs:18:12: Acme.Lidar.Frames: event 30 version 0"), "{said}");
    let output = own.etw_in(".", &["manifest", "check", "--message-format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["reason"], "manifest-check");
    assert_eq!(json["success"], false);
    assert_eq!(json["breaks"][0]["line"], 18);
    // The file in the working tree is stale. A commit without an incompatible change also works as
    // a base.
    assert!(own.fail(&["manifest", "write", "--check"]).contains("lidar.man is stale"));
    own.commit();
    let said = own.fail(&["manifest", "check", "--base", "HEAD~1"]);
    assert!(said.contains("HEAD~1:lidar.man"), "{said}");
    let said = own.fail(&["manifest", "check", "--base", "v9.9"]);
    assert!(said.contains("v9.9: it is neither a file nor a commit"), "{said}");
}

#[test]
fn a_repository_without_a_commit_is_named_as_such() {
    let own = Own::new();
    fs::remove_dir_all(own.path(".git")).unwrap();
    own.git(&["init", "--quiet"]);
    let said = own.fail(&["manifest", "check"]);
    assert!(said.contains("cannot compare with HEAD: the git repository"), "{said}");
    assert!(said.contains("has no commit yet; commit the driver"), "{said}");
    // Without a repository, the error is different.
    fs::remove_dir_all(own.path(".git")).unwrap();
    let said = own.fail(&["manifest", "check"]);
    assert!(said.contains("it is neither a file nor a commit"), "{said}");
    assert!(said.contains("(not a git repository"), "{said}");
}

#[test]
fn a_company_that_an_inf_file_cannot_have_is_named_with_the_option() {
    let own = Own::new();
    own.change("Cargo.toml", "Acme Robotics <drivers@acme.example>", "Åsa Ögren");
    let said = own.fail(&["inf", "new"]);
    assert!(said.contains("the company \"Åsa Ögren\" has characters outside ASCII"), "{said}");
    assert!(said.contains("; name the company with `--company`"), "{said}");
    own.succeed(&["inf", "new", "--company", "Asa Ogren"]);
}

#[test]
fn a_driver_of_another_model_is_refused_before_it_is_compiled() {
    let own = Own::new();
    own.change("Cargo.toml", "driver-type = \"KMDF\"", "driver-type = \"UMDF\"");
    let sentence =
        "acme-lidar has driver-type = \"UMDF\"; `cargo etw` builds and runs KMDF and WDM drivers";
    let said = own.fail(&["build"]);
    assert!(said.contains(sentence) && said.lines().count() == 1, "{said}");
    let output = own.etw_in(".", &["doctor"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains(sentence), "{told}");
}

#[test]
fn resources_are_compiled_for_the_driver() {
    let own = Own::new();
    let printed = own.succeed(&["manifest", "compile"]);
    assert_eq!(printed.lines().count(), 3, "{printed}");
    for name in ["lidar.wevt.bin", "lidar.msg.bin", "lidar.res"] {
        assert!(own.path("target/manifest").join(name).is_file(), "{printed}");
    }
}

#[test]
fn a_driver_without_a_declaration_is_told_what_to_do() {
    let own = Own::new();
    own.change(EVENTS, "#[wdk_etw::provider(", "#[other(");
    let said = own.fail(&["manifest", "write"]);
    assert!(said.contains("acme-lidar declares no provider"), "{said}");
    assert!(said.contains("[package.metadata.etw]"), "{said}");
    let said = own.fail(&["recipes"]);
    assert!(said.contains("`cargo etw build`"), "{said}");
    // A setting names a file that no module refers to.
    own.change(EVENTS, "#[other(", "#[wdk_etw::provider(");
    fs::rename(own.path(EVENTS), own.path("events.rs")).unwrap();
    own.change("source/telemetry/mod.rs", "mod events;", "");
    own.change(
        "Cargo.toml",
        "[lib]",
        "[package.metadata.etw]\ndeclaration = \"events.rs\"\nmanifest = \"etw/of-lidar.man\"\n\n[lib]",
    );
    fs::create_dir(own.path("etw")).unwrap();
    own.succeed(&["manifest", "write"]);
    assert!(own.text("etw/of-lidar.man").contains("from events.rs."));
    own.change("Cargo.toml", "declaration =", "declarations =");
    let said = own.fail(&["manifest", "write"]);
    assert!(said.contains("unknown key \"declarations\""), "{said}");
}

#[test]
fn the_inf_file_is_written_and_checked() {
    let own = Own::new();
    let said = own.fail(&["inf", "check"]);
    assert!(said.contains("`cargo etw inf new` writes one"), "{said}");
    let output = own.etw_in(".", &["inf", "new"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.trim().ends_with("/lidar.inx"), "{printed}");
    let said = String::from_utf8_lossy(&output.stderr);
    let command = r#"`wevtutil im lidar.man /rf:"%CD%\lidar.sys" /mf:"%CD%\lidar.sys"`"#;
    assert!(output.status.success() && said.contains(command), "{said}");
    let text = own.text("lidar.inx");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    let text = text.replace("\r\n", "\n");
    for line in [
        "%Device% = Device_Install,Root\\lidar\n",
        "Company                = \"Acme Robotics\"\n",
        "Device                 = \"Lidar of Acme\"\n",
        "ProviderName = Acme.Lidar.Health\n",
        // KMDF 1.31 is the driver's minimum version.
        "%Company% = Devices,NT$ARCH$.10.0...19041\n",
    ] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
    own.succeed(&["inf", "check"]);
    assert!(own.fail(&["inf", "new"]).contains("`--force` replaces it"));

    own.change("lidar.inx", "ServiceBinary = %13%", "ServiceBinary = %12%");
    own.change("lidar.inx", "$KMDFVERSION$", "1.27");
    own.change("lidar.inx", "...19041", "...17763");
    let output = own.etw_in(".", &["inf", "check", "--message-format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["reason"], "inf-check");
    let severity = |text: &str| {
        let diagnostics = json["findings"].as_array().unwrap();
        let found = diagnostics.iter().find(|one| one["message"].as_str().unwrap().contains(text));
        found.unwrap_or_else(|| panic!("no {text:?} in {json}"))["severity"].clone()
    };
    assert_eq!(severity("ServiceBinary is %12%"), "error");
    assert_eq!(severity("KmdfLibraryVersion is 1.27; expected 1.33"), "error");
    assert_eq!(severity("the oldest supported build is 19041"), "warning");

    own.succeed(&[
        "inf", "new", "--force", "--class", "USBDevice", "--hardware-id", r"USB\VID_1&PID_2",
    ]);
    own.succeed(&["inf", "check", "--hardware-id", r"USB\VID_1&PID_2"]);
    let said = own.fail(&["inf", "check", "--hardware-id", r"Root\lidar"]);
    assert!(said.contains(r"the driver's is Root\lidar"), "{said}");
}

/// Returns the error output of a successful command.
fn said(own: &Own, arguments: &[&str]) -> String {
    let output = own.etw_in(".", arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_driver_without_a_framework_has_a_device_only_if_it_is_named() {
    let own = Own::new();
    own.change("Cargo.toml", "driver-type = \"KMDF\"", "driver-type = \"WDM\"");
    let told = said(&own, &["inf", "new"]);
    assert!(told.contains("a service without a device (a primitive driver)"), "{told}");
    let text = own.text("lidar.inx");
    assert!(text.contains("[DefaultInstall.NT$ARCH$.Services]"), "{text}");
    assert!(!text.contains("Wdf") && !text.contains("[Manufacturer]"), "{text}");
    own.succeed(&["inf", "check"]);
    let told = said(&own, &["inf", "new", "--force", "--hardware-id", r"Root\lidar"]);
    assert!(!told.contains("primitive"), "{told}");
    let text = own.text("lidar.inx");
    assert!(text.contains(r"Root\lidar") && !text.contains("Wdf"), "{text}");
    own.succeed(&["inf", "check", "--hardware-id", r"Root\lidar"]);
    let output = own.etw_in(".", &["inf", "new", "--primitive", "--hardware-id", r"Root\lidar"]);
    assert_eq!(output.status.code(), Some(2));
    // A driver with a framework can be a service too.
    own.change("Cargo.toml", "driver-type = \"WDM\"", "driver-type = \"KMDF\"");
    own.succeed(&["inf", "new", "--force", "--primitive"]);
    let text = own.text("lidar.inx");
    assert!(text.contains("[DefaultInstall.NT$ARCH$.Wdf]"), "{text}");
    own.succeed(&["inf", "check"]);
}

#[test]
fn the_mode_of_infverif_is_an_option_and_a_setting() {
    let own = Own::new();
    own.succeed(&["inf", "new"]);
    own.change("lidar.inx", "HKR,,Security", "HKLM,Software\\Acme,Size,,1\r\nHKR,,Security");
    let told = own.fail(&["inf", "check"]);
    assert!(told.contains("error: ") && told.contains("(infverif 1321)"), "{told}");
    let told = own.fail(&["inf", "check", "--mode", "universal"]);
    assert!(told.contains("error: ") && told.contains("(infverif 1304)"), "{told}");
    let told = said(&own, &["inf", "check", "--mode", "declarative"]);
    assert!(told.contains("warning: ") && told.contains("(infverif 1304)"), "{told}");
    own.change(
        "Cargo.toml",
        "[lib]",
        "[package.metadata.etw]\ninf-mode = \"declarative\"\n\n[lib]",
    );
    let told = said(&own, &["inf", "check"]);
    assert!(told.contains("(infverif 1304)"), "{told}");
    assert!(own.fail(&["inf", "check", "--mode", "windows"]).contains("(infverif 1321)"));
}

#[test]
fn the_inf_file_adds_the_session_of_the_declaration() {
    let own = Own::new();
    let argument = "name = \"Acme.Lidar.Frames\", autologger(session = \"Acme Boot\", \
                    match_any_keyword = FRAME | DEVICE, max_file_size = 32)";
    own.change(EVENTS, "name = \"Acme.Lidar.Frames\"", argument);
    let told = said(&own, &["inf", "new"]);
    assert!(told.contains("note: only Windows 11 and later add the session Acme Boot"), "{told}");
    let text = own.text("lidar.inx").replace("\r\n", "\n");
    for part in [
        "AddAutoLogger = Acme Boot,{",
        "Start = 1\nMaxFileSize = 32\nAddAutoLoggerProvider = {",
        "Enabled = 1\nEnableLevel = 0xff\nMatchAnyKeyword = 0x10000000008\n",
        "Devices,NT$ARCH$.10.0...19041,NT$ARCH$.10.0...22000\n",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    own.succeed(&["inf", "check"]);
    own.change(EVENTS, "max_file_size = 32", "max_file_size = 64");
    let told = own.fail(&["inf", "check"]);
    assert!(
        told.contains("MaxFileSize of the session Acme Boot is 32; the declaration says 64"),
        "{told}"
    );
}

#[test]
fn the_settings_of_channels_come_from_the_manifest_that_a_declaration_names() {
    let own = Own::new();
    own.change(
        EVENTS,
        "pub mod frames {",
        "pub mod frames {\n    #[channels]\n    enum Channel {\n        \
         #[channel(Operational, enabled = true)]\n        Operational = 16,\n    }",
    );
    own.succeed(&["manifest", "write"]);
    fs::rename(own.path("lidar.man"), own.path("kept.man")).unwrap();
    for name in ["Frames\"", "Health\""] {
        own.change(EVENTS, name, &format!("{name}, manifest = \"kept.man\""));
    }
    own.succeed(&["inf", "new"]);
    own.succeed(&["inf", "check"]);
    // The declaration must not contradict the manifest.
    own.change("kept.man", "enabled=\"true\"", "enabled=\"false\"");
    let told = own.fail(&["inf", "check"]);
    assert!(
        told.contains("the channel 16: its enabled is true; the manifest specifies false"),
        "{told}"
    );
    assert!(told.contains("events.rs:") && told.contains("/kept.man)"), "{told}");
    // The manifest supplies the omitted settings, and messages name it.
    own.change(EVENTS, "(Operational, enabled = true)", "(Operational)");
    let told = own.fail(&["inf", "check"]);
    let sentence = "is 1; the manifest kept.man says 0; write `Enabled = 0`";
    assert!(told.contains(sentence), "{told}");
    own.change("kept.man", " enabled=\"false\"", "");
    let told = said(&own, &["inf", "new", "--force"]);
    assert!(
        told.contains("write `enabled=\"true\"` in its element of the manifest kept.man"),
        "{told}"
    );
}

#[test]
fn the_recipes_have_every_provider() {
    let own = Own::new();
    own.succeed(&["recipes"]);
    own.succeed(&["recipes", "--check"]);
    let text = own.text("tracing.md");
    let profile = own.text("lidar.wprp");
    let guids = {
        own.succeed(&["manifest", "write"]);
        attributes(&own.text("lidar.man"), "provider", "guid")
    };
    let guids: Vec<&str> = guids.iter().map(|guid| guid.trim_matches(['{', '}'])).collect();
    // Each tool's section contains all providers.
    for tool in ["logman", "tracelog", "PowerShell", "xperf"] {
        let (_, section) = text.split_once(&format!("\n## {tool}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        for guid in &guids {
            assert!(section.contains(guid), "{tool} has no {guid}:\n{section}");
        }
    }
    // Every PowerShell line is a comment or a cmdlet with balanced quotes.
    let (_, script) = text.split_once("```powershell\n").unwrap();
    for line in script.split("```").next().unwrap().lines() {
        let word = line.split(' ').next().unwrap();
        let is_known = [
            "#", "Start-EtwTraceSession", "Add-EtwTraceProvider", "Stop-EtwTraceSession",
            "New-AutologgerConfig", "Remove-AutologgerConfig",
        ];
        assert!(is_known.contains(&word), "{line}");
        assert_eq!(line.matches('\'').count() % 2, 0, "{line}");
    }
    let all = format!("xperf -start lidar -on {}:0x10000000008:5+{}:0x1:3 ", guids[0], guids[1]);
    assert!(text.contains(&all), "no {all:?} in:\n{text}");
    // The profiles refer to providers that the file defines.
    let defined = attributes(&profile, "EventProvider", "Id");
    assert_eq!(defined.len(), 4, "{profile}");
    for used in attributes(&profile, "EventProviderId", "Value") {
        assert!(defined.contains(&used), "{used} is not in {defined:?}");
    }
    for id in attributes(&profile, "Profile", "Id") {
        assert_eq!(id.split('.').count(), 3, "{id}");
    }
    own.change(EVENTS, "level = Warning", "level = Error");
    assert!(own.fail(&["recipes", "--check"]).contains("is stale: run `cargo etw recipes`"));
}

#[test]
fn the_doctor_knows_the_driver() {
    let own = Own::new();
    let output = own.etw_in(".", &["doctor", "--message-format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["reason"], "doctor");
    assert_eq!(output.status.success(), json["success"] == true);
    let found = |json: &serde_json::Value, what: &str| {
        let diagnostics = json["findings"].as_array().unwrap();
        let found = diagnostics.iter().find(|one| one["what"] == what);
        found.unwrap_or_else(|| panic!("no {what} in {json}")).clone()
    };
    assert_eq!(found(&json, "KMDF")["found"], "1.33, at least 1.31");
    let declared = found(&json, "declaration")["found"].to_string();
    assert!(declared.contains("Acme.Lidar.Health in source/telemetry/events.rs"), "{declared}");
    let crates = found(&json, "WDK crates")["found"].to_string();
    assert!(crates.contains("wdk-sys 0.5."), "{crates}");
    assert_eq!(found(&json, "INF file")["remedy"], "cargo etw inf new");

    own.change("Cargo.toml", "target-kmdf-version-minor = 33", "target-kmdf-version-minor = 14");
    own.change(
        "Cargo.lock", "name = \"wdk-build\"\nversion = \"0.6",
        "name = \"wdk-build\"\nversion = \"0.2",
    );
    let output = own.etw_in(".", &["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("is for KMDF 1.14") && printed.contains("1.13, 1.15"), "{printed}");
    assert!(printed.contains("uses wdk-build 0.2"), "{printed}");
}

#[test]
fn completions_know_the_commands() {
    let own = Own::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = own.succeed(&["completions", shell]);
        for word in ["cargo-etw", "manifest", "doctor", "message-format"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
    }
    // bash completes `cargo etw`, and leaves all other commands to cargo's completions.
    let script = own.path("etw.bash");
    fs::write(&script, own.succeed(&["completions", "bash"])).unwrap();
    let complete = |words: &str| {
        let test = format!(
            "_cargo() {{ COMPREPLY=(cargos-own); }}; complete -F _cargo cargo; source {}\n\
             COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _cargo_with_etw cargo \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["-c", &test]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("cargo etw doc"), "doctor");
    assert_eq!(complete("cargo etw manifest ch"), "check");
    assert_eq!(complete("cargo buil"), "cargos-own");
}

/// Checks with osslsigncode that the image and the catalog are signed, and that the catalog
/// contains the image.
fn are_signed(folder: &Path) {
    let file = |name: &str| folder.join(name);
    let (image, catalog) = (file("lidar.sys"), file("lidar.cat"));
    let verify = |options: &[&Path], of: &Path| verify_signature(&file("lidar.cer"), options, of);
    let by_catalog = [Path::new("-catalog"), &catalog];
    for (options, of) in [(&[][..], &image), (&[], &catalog), (&by_catalog, &image)] {
        let (is_sound, said) = verify(options, of);
        assert!(is_sound, "{options:?} {}: {said}", of.display());
    }
    let mut changed = fs::read(&image).unwrap();
    changed[0x800] ^= 1;
    fs::write(&image, changed).unwrap();
    let (is_sound, _) = verify(&by_catalog, &image);
    assert!(!is_sound);
}

/// Checks that a driver that calls a routine in a static WDK library can be built, and that the
/// stand-in kernel reports the routine's name when it is called.
fn a_routine_of_a_static_library_links_and_is_named(own: &Own) {
    own.change(
        "Cargo.toml",
        "wdk-sys = \"0.5\"",
        "wdk-sys = { version = \"0.5\", features = [\"usb\"] }",
    );
    own.change(
        "source/driver.rs",
        "    emit!(frames::opened(NtStatus(status)));",
        "    let mut usb = ptr::null_mut();\n    \
         // SAFETY: the routine is called to see its name.\n    \
         let status = status + unsafe {\n        \
         wdk_sys::usb::USBD_CreateHandle(\n            \
         ptr::null_mut(), ptr::null_mut(), 0x602, 0, &raw mut usb)\n    };\n    \
         emit!(frames::opened(NtStatus(status)));",
    );
    own.succeed(&["build", "--release"]);
    let output = own.etw_in(".", &["inf", "check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("usbdex.lib!USBD_CreateHandle was called"), "{said}");
    assert!(said.contains("source/driver.rs:"), "{said}");
    // The file itself is valid.
    assert!(output.status.success(), "{said}");
    let output = own.etw_in(".", &["package", "--certificate", "."]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("uses routines of usbdex.lib"), "{said}");
}

/// Unpacks an archive whose files are in one folder.
fn unpack(archive: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut zip = zip::ZipArchive::new(fs::File::open(archive).unwrap()).unwrap();
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).unwrap();
        let name = entry.name().unwrap().strip_prefix("lidar/").unwrap().to_owned();
        let mut data = Vec::new();
        entry.read_to_end(&mut data).unwrap();
        fs::write(folder.path().join(name), data).unwrap();
    }
    folder
}

/// Tests that build drivers; `cargo xtask test` runs them in parallel with the other tests.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the built drivers; `cargo xtask test` runs it"]
    fn a_driver_without_a_device_is_accepted() {
        let own = Own::new();
        own.succeed(&["inf", "new"]);
        // This driver provides an EvtDriverDeviceAdd only under a certain service name.
        let image = etw_test_support::drivers("release").join("etw_rules_driver.sys");
        let image = image.to_str().unwrap();
        let examined = own.succeed(&["inf", "examine", image]);
        let examined: serde_json::Value = serde_json::from_str(&examined).unwrap();
        assert!(examined["sddl"].is_null() && examined["framework"][0] == 1, "{examined}");
        let output = own.etw_in(".", &["inf", "check", "--image", image]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("note: the driver has no EvtDriverDeviceAdd"), "{said}");
        assert!(!said.contains("cannot add a device"), "{said}");
    }

    #[test]
    #[ignore = "needs the built drivers; `cargo xtask test` runs it"]
    fn a_device_without_a_descriptor_of_its_own_gets_no_note() {
        let own = Own::new();
        own.succeed(&["inf", "new"]);
        let image = etw_test_support::drivers("release").join("etw_wpp_driver.sys");
        let image = image.to_str().unwrap();
        let examined = own.succeed(&["inf", "examine", image]);
        let examined: serde_json::Value = serde_json::from_str(&examined).unwrap();
        assert!(examined["sddl"].is_null() && examined["adds_devices"] == true, "{examined}");
        let output = own.etw_in(".", &["inf", "check", "--image", image]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("EvtDriverDeviceAdd"), "{said}");
    }

    /// A WDM driver that creates its device itself, and one with an `AddDevice` routine.
    #[test]
    #[ignore = "needs the built drivers and the signing tools; `cargo xtask test` runs it"]
    fn the_file_of_a_driver_without_a_framework_is_compared_with_its_image() {
        let own = Own::new();
        let image = |name: &str| {
            let path = etw_test_support::drivers("release").join(name);
            path.to_str().unwrap().to_owned()
        };
        let (service, of_devices) = (image("etw_wdm_driver.sys"), image("etw_wdm_pnp_driver.sys"));
        // The metadata name a framework, which the image does not use.
        own.succeed(&["inf", "new"]);
        let told = own.fail(&["inf", "check", "--image", &of_devices]);
        assert!(
            told.contains("the driver uses no framework (WDM); remove [Device_Install"),
            "{told}"
        );
        own.change("Cargo.toml", "driver-type = \"KMDF\"", "driver-type = \"WDM\"");
        own.succeed(&["inf", "new", "--force", "--hardware-id", r"Root\lidar"]);
        let told = said(&own, &["inf", "check", "--image", &of_devices]);
        assert!(!told.contains("warning") && !told.contains("EvtDriverDeviceAdd"), "{told}");
        let told = said(&own, &["inf", "check", "--image", &service]);
        assert!(
            told.contains("warning: ") && told.contains("the driver adds no devices"),
            "{told}"
        );
        own.succeed(&["inf", "new", "--force"]);
        let told = said(&own, &["inf", "check", "--image", &of_devices]);
        assert!(told.contains("warning: ") && told.contains("Windows offers it none"), "{told}");
        let told = said(&own, &["inf", "check", "--image", &service]);
        assert!(!told.contains("warning"), "{told}");
        // The image has no resources for events with ids.
        for id in ["id = 20, ", "id = 30, "] {
            own.change(EVENTS, id, "");
        }
        own.succeed(&["inf", "new", "--force"]);
        let printed = own.succeed(&["package", "--image", &service, "--message-format", "json"]);
        let made: serde_json::Value = serde_json::from_str(printed.trim()).unwrap();
        let files = made["files"].as_array().unwrap();
        for (name, is_there) in
            [("service.ps1", true), ("lidar.sys", true), ("lidar.cat", true), ("device.ps1", false)]
        {
            assert_eq!(files.iter().any(|file| file == name), is_there, "{name}: {files:?}");
        }
        let unpacked = unpack(Path::new(made["archive"].as_str().unwrap()));
        are_signed(unpacked.path());
        let install = fs::read_to_string(unpacked.path().join("install.cmd")).unwrap();
        assert!(install.contains(r#"service.ps1 -Inf "lidar.inf" -Service "lidar""#), "{install}");
    }

    #[test]
    #[ignore = "needs the cross toolchain and the signing tools; `cargo xtask test` runs it"]
    fn the_package_is_the_drivers() {
        let own = Own { shares_target: true, ..Own::new() };
        own.succeed(&["inf", "new"]);
        // The package contains all files listed in the INF file, and the catalog contains their
        // hashes.
        own.change(
            "lidar.inx",
            "[SourceDisksFiles]\r\n",
            "[SourceDisksFiles]\r\nlidar.bin = 1,,\r\n",
        );
        own.change("lidar.inx", "[Files]\r\n", "[Files]\r\nlidar.bin\r\n");
        fs::write(own.path("lidar.bin"), "firmware").unwrap();
        let output =
            own.etw_in(".", &["package", "--certificate", ".", "--message-format", "json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        assert_eq!(json["reason"], "driver-package");
        assert_eq!(json["version"], "3.1.4.0");
        let archive = Path::new(json["archive"].as_str().unwrap());
        assert!(archive.ends_with("target/etw/package/lidar-3.1.4-x64.zip"), "{json}");
        let unpacked = unpack(archive);
        let file = |name: &str| unpacked.path().join(name);
        let read = |name: &str| fs::read_to_string(file(name)).unwrap();

        // The README lists the archive's files.
        let readme = read("README.txt");
        for name in json["files"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            assert!(file(name).is_file(), "{name}");
            assert!(name == "README.txt" || readme.contains(name), "no {name} in:\n{readme}");
        }
        assert!(readme.starts_with("Lidar of Acme, for a test machine"), "{readme}");
        assert!(readme.contains("-p Acme.Lidar.Frames 0x10000000008 5 -ets\r\n"), "{readme}");
        assert!(read("install.cmd").contains(r#"-HardwareId "Root\lidar""#));
        assert!(read("uninstall.cmd").contains(r#"-HardwareId "Root\lidar""#));
        assert!(read("lidar.inf").contains("KmdfLibraryVersion = 1.33"));
        assert_eq!(attributes(&read("lidar.man"), "event", "value"), ["20", "30"]);
        assert_eq!(attributes(&read("lidar.wprp"), "EventProvider", "Name").len(), 4);

        assert_eq!(read("lidar.bin"), "firmware");
        let catalog = fs::read(file("lidar.cat")).unwrap();
        // The member's tag is the SHA-1 of "firmware", in UTF-16.
        let tag = "9BCF18E4B22C0710ED69D3E91FB8285B936CDEA7".to_owned();
        let tag: Vec<u8> = tag.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(catalog.windows(tag.len()).any(|bytes| bytes == tag));

        // The symbols contain the author's files relative to the workspace, and no folder of this
        // machine.
        let symbols = fs::read(file("lidar.pdb")).unwrap();
        let has = |text: &str| symbols.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has(r"C:\src\source\telemetry\events.rs"));
        assert!(has(r"packages\wdk-etw\src\"));
        for folder in [own.folder.path().to_owned(), root(), std::env::home_dir().unwrap()] {
            assert!(!has(folder.to_str().unwrap()), "{}", folder.display());
        }

        are_signed(unpacked.path());

        // The built image is self-describing: its resources suffice without the source.
        own.change(EVENTS, "#[wdk_etw::provider(", "#[other(");
        let printed = own.succeed(&["recipes"]);
        assert!(printed.contains("tracing.md"), "{printed}");
        let text = own.text("tracing.md");
        let sys = common::target().join("etw/x64/release/lidar.sys");
        assert!(text.contains(&format!("from {}", sys.display())), "{text}");
        assert!(text.contains("Acme.Lidar.Frames"), "{text}");
        assert!(text.contains("| all keywords | `0x10000000008` |"), "{text}");
        own.succeed(&["inf", "check"]);
        own.change(EVENTS, "#[other(", "#[wdk_etw::provider(");
        a_routine_of_a_static_library_links_and_is_named(&own);
    }
}
