//! The requirements of a build with the WDK, and of a machine that loads test-signed drivers.
//!
//! Everything is optional, because `cargo etw` needs none of it. Registry values and exit codes are
//! read instead of messages, which depend on the language of Windows.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::requirement::Requirement;

/// The commands that build with the WDK.
const BUILDS: &str = "cargo make package, cargo wdk build";
/// The commands that load the driver on this machine.
const LOADS: &str = "install.cmd on this machine";

/// A Windows machine.
pub trait Machine {
    /// Runs a program, and returns its exit code and standard output, or `None` if it cannot be
    /// started.
    fn run(&self, program: &str, arguments: &[&str]) -> Option<(i32, String)>;

    /// Returns an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns a registry value as `reg query` shows it.
    fn registry(&self, key: &str, name: &str) -> Option<String> {
        let (code, text) = self.run("reg", &["query", key, "/v", name])?;
        let line = text.lines().map(str::trim).find(|line| line.starts_with(name))?;
        // The name, the type, and the value, which can contain spaces.
        let value = line[name.len()..].trim_start().split_once(char::is_whitespace)?.1;
        (code == 0).then(|| value.trim().to_owned())
    }
}

/// The machine that this process runs on.
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn run(&self, program: &str, arguments: &[&str]) -> Option<(i32, String)> {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some((output.status.code()?, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    fn variable(&self, name: &str) -> Option<String> {
        env::var(name).ok()
    }
}

/// Returns the requirements.
pub fn list(machine: &dyn Machine) -> Vec<Requirement> {
    let first = |program: &str, arguments: &[&str]| {
        let (code, text) = machine.run(program, arguments)?;
        (code == 0).then(|| text.lines().next().unwrap_or_default().trim().to_owned())
    };
    let (wdk, wdk_remedy) = wdk(machine);
    let (llvm, llvm_remedy) = llvm(first("clang", &["--version"]));
    let all = [
        Requirement::new("WDK", BUILDS, wdk, &wdk_remedy),
        Requirement::new("LLVM", BUILDS, llvm, llvm_remedy),
        Requirement::new(
            "cargo-make",
            "cargo make package",
            first("cargo", &["make", "--version"]),
            "cargo install --locked cargo-make",
        ),
        Requirement::new(
            "rust-script",
            "cargo make package",
            first("rust-script", &["--version"]),
            "cargo install --locked rust-script --version 0.30.0",
        ),
        developer_mode(machine),
        test_signing(machine),
        secure_boot(machine),
        drive_protection(machine),
    ];
    all.into_iter().map(Requirement::optional).collect()
}

/// Returns the version and folder of the WDK that wdk-build uses, and the remedy if it uses none.
fn wdk(machine: &dyn Machine) -> (Option<String>, String) {
    const ROOTS: &str = r"HKLM\SOFTWARE\Microsoft\Windows Kits\Installed Roots";
    // A prompt of the EWDK sets both variables.
    let root = machine
        .variable("WDKContentRoot")
        .or_else(|| machine.registry(ROOTS, "KitsRoot10"))
        .map(PathBuf::from);
    let Some(root) = root else {
        return (
            None,
            "winget install --id Microsoft.WindowsSDK.10.0.26100, then --id \
             Microsoft.WindowsWDK.10.0.26100; or run this in a prompt of the EWDK (LaunchBuildEnv.cmd)"
                .to_owned(),
        );
    };
    let include = root.join("Include");
    let has_wdk = |version: &str| include.join(version).join("km/ntddk.h").is_file();
    let versions = versions(&include);
    let with_wdk = versions.iter().rev().find(|version| has_wdk(version));
    // Without the variable, wdk-build takes the newest SDK.
    let chosen = machine.variable("Version_Number");
    let used = chosen.as_ref().or_else(|| versions.last());
    match (used, with_wdk) {
        (Some(used), _) if has_wdk(used) => {
            (Some(format!("{used} in {}", root.display())), String::new())
        }
        (Some(used), Some(other)) => (
            None,
            format!(
                "the SDK {used}{} has no WDK: set Version_Number={other}, which has",
                if chosen.is_some() { " of Version_Number" } else { ", the newest," }
            ),
        ),
        (used, _) => (
            None,
            format!(
                "{} has no WDK: winget install --id Microsoft.WindowsWDK.{}",
                root.display(),
                used.map_or("10.0.26100", |used| used
                    .rsplit_once('.')
                    .map_or(used, |(base, _)| base))
            ),
        ),
    }
}

/// Returns the names of the folders that are versions, the newest last.
fn versions(include: &Path) -> Vec<String> {
    let numbers = |name: &str| -> Option<Vec<u32>> {
        name.split('.').map(|part| part.parse().ok()).collect()
    };
    let entries = fs::read_dir(include).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| numbers(name).is_some_and(|all| all.len() == 4)).collect();
    names.sort_by_key(|name| numbers(name));
    names
}

/// Returns LLVM's version, if bindgen can use it for both architectures.
fn llvm(version: Option<String>) -> (Option<String>, &'static str) {
    match version {
        Some(version) if version.contains("version 18.") => {
            (None, "LLVM 18 generates no bindings for ARM64: use 17, or 19 or later")
        }
        Some(version) => (Some(version), ""),
        None => (None, "winget install --id LLVM.LLVM --version 17.0.6, and add its bin to PATH"),
    }
}

fn developer_mode(machine: &dyn Machine) -> Requirement {
    const KEY: &str = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\AppModelUnlock";
    let value = machine.registry(KEY, "AllowDevelopmentWithoutDevLicense");
    let found = value.filter(|value| value == "0x1").map(|_| "on".to_owned());
    let remedy = "wdk-build creates a symbolic link: turn Developer Mode on (Settings, \"For \
                  developers\"), or use an elevated prompt";
    Requirement::new("Developer Mode", "cargo make package", found, remedy)
}

fn test_signing(machine: &dyn Machine) -> Requirement {
    // The options with which Windows was started; bcdedit shows those for the next start.
    let options = machine.registry(r"HKLM\SYSTEM\CurrentControlSet\Control", "SystemStartOptions");
    let is_on = options.is_some_and(|options| options.contains("TESTSIGNING"));
    let remedy = "run prepare.cmd of a package on a machine for tests, and restart Windows";
    Requirement::new("test signing", LOADS, is_on.then(|| "on".to_owned()), remedy)
}

fn secure_boot(machine: &dyn Machine) -> Requirement {
    const KEY: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\SecureBoot\State";
    // Machines without UEFI do not have the value.
    let is_on = machine.registry(KEY, "UEFISecureBootEnabled").as_deref() == Some("0x1");
    let remedy = "Secure Boot is on, and refuses test-signed drivers: suspend BitLocker, then turn \
                  Secure Boot off in the firmware's settings";
    Requirement::new("Secure Boot off", LOADS, (!is_on).then(|| "off".to_owned()), remedy)
}

fn drive_protection(machine: &dyn Machine) -> Requirement {
    const ACCESS_DENIED: i32 = 0x8007_0005_u32.cast_signed();
    let drive = machine.variable("SystemDrive").unwrap_or_else(|| "C:".to_owned());
    let status = machine.run("manage-bde", &["-status", &drive, "-protectionaserrorlevel"]);
    let (found, remedy) = match status.map(|(code, _)| code) {
        // Windows without BitLocker does not have the program.
        None | Some(1) => (Some(format!("{drive} is not protected")), String::new()),
        Some(0) => (
            None,
            format!(
                "{drive} is protected: before you turn Secure Boot off or test signing on, keep the \
                 recovery key (manage-bde -protectors -get {drive}) and run manage-bde -protectors \
                 -disable {drive} -RebootCount 0"
            ),
        ),
        Some(ACCESS_DENIED) => (None, "run this from an elevated prompt to find out".to_owned()),
        Some(code) => {
            (None, format!("manage-bde failed with 0x{code:08X}; use an elevated prompt"))
        }
    };
    Requirement::new("BitLocker off", LOADS, found, &remedy)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A machine with these programs' exit codes and output, by command line, and variables.
    #[derive(Default)]
    struct Mock(BTreeMap<String, (i32, String)>, BTreeMap<&'static str, String>);

    impl Mock {
        fn with(mut self, line: &str, code: i32, text: &str) -> Self {
            self.0.insert(line.to_owned(), (code, text.to_owned()));
            self
        }

        fn set(mut self, name: &'static str, value: &str) -> Self {
            self.1.insert(name, value.to_owned());
            self
        }

        fn value(self, key: &str, name: &str, value: &str) -> Self {
            let text = format!("\r\n{key}\r\n    {name}    REG_SZ    {value}\r\n\r\n");
            self.with(&format!("reg query {key} /v {name}"), 0, &text)
        }

        fn shown(&self) -> BTreeMap<&'static str, Result<String, String>> {
            let all = list(self).into_iter();
            all.map(|one| (one.what, one.found.ok_or(one.remedy))).collect()
        }
    }

    impl Machine for Mock {
        fn run(&self, program: &str, arguments: &[&str]) -> Option<(i32, String)> {
            self.0.get(&format!("{program} {}", arguments.join(" "))).cloned()
        }

        fn variable(&self, name: &str) -> Option<String> {
            self.1.get(name).cloned()
        }
    }

    const CONTROL: &str = r"HKLM\SYSTEM\CurrentControlSet\Control";

    #[test]
    fn a_machine_without_anything_is_told_what_to_run() {
        let shown = Mock::default().shown();
        for (what, remedy) in [
            ("WDK", "winget install --id Microsoft.WindowsSDK.10.0.26100"),
            ("LLVM", "winget install --id LLVM.LLVM"),
            ("cargo-make", "cargo install --locked cargo-make"),
            ("rust-script", "--version 0.30.0"),
            ("Developer Mode", "Settings"),
            ("test signing", "prepare.cmd"),
        ] {
            let said = shown[what].as_ref().unwrap_err();
            assert!(said.contains(remedy), "{what}: {said}");
        }
        assert_eq!(shown["Secure Boot off"], Ok("off".to_owned()));
        assert_eq!(shown["BitLocker off"], Ok("C: is not protected".to_owned()));
    }

    #[test]
    fn a_complete_machine_misses_nothing() {
        let state = format!(r"{CONTROL}\SecureBoot\State");
        let unlock = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\AppModelUnlock";
        let machine = Mock::default()
            .with("clang --version", 0, "clang version 17.0.6\nTarget: x")
            .with("cargo make --version", 0, "cargo-make 0.37.24\n")
            .with("rust-script --version", 0, "rust-script 0.30.0\n")
            .with("manage-bde -status D: -protectionaserrorlevel", 1, "")
            .set("SystemDrive", "D:")
            .value(CONTROL, "SystemStartOptions", " NOEXECUTE=OPTIN  TESTSIGNING")
            .value(&state, "UEFISecureBootEnabled", "0x0")
            .value(unlock, "AllowDevelopmentWithoutDevLicense", "0x1");
        let missing: Vec<_> =
            machine.shown().into_iter().filter(|(_, found)| found.is_err()).collect();
        assert_eq!(missing.len(), 1, "only the WDK: {missing:?}");
    }

    #[test]
    fn what_would_end_at_a_recovery_key_is_said() {
        let state = format!(r"{CONTROL}\SecureBoot\State");
        let machine = Mock::default()
            .with("clang --version", 0, "clang version 18.1.8")
            .with("manage-bde -status C: -protectionaserrorlevel", 0, "")
            .value(CONTROL, "SystemStartOptions", " NOEXECUTE=OPTIN")
            .value(&state, "UEFISecureBootEnabled", "0x1");
        let shown = machine.shown();
        for (what, remedy) in [
            ("LLVM", "18 generates no bindings"),
            ("BitLocker off", "-protectors -disable C:"),
            ("Secure Boot off", "suspend BitLocker"),
            ("test signing", "prepare.cmd"),
        ] {
            let said = shown[what].as_ref().unwrap_err();
            assert!(said.contains(remedy), "{what}: {said}");
        }
        let denied = 0x8007_0005_u32.cast_signed();
        let machine =
            Mock::default().with("manage-bde -status C: -protectionaserrorlevel", denied, "");
        assert!(machine.shown()["BitLocker off"].as_ref().unwrap_err().contains("elevated"));
    }

    #[test]
    fn the_wdk_is_that_of_the_version_that_wdk_build_takes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let installed = r"HKLM\SOFTWARE\Microsoft\Windows Kits\Installed Roots";
        let wdk = |version: Option<&str>| {
            let machine = Mock::default().value(installed, "KitsRoot10", &root);
            let machine =
                version.into_iter().fold(machine, |one, it| one.set("Version_Number", it));
            machine.shown()["WDK"].clone()
        };
        fs::create_dir_all(folder.path().join("Include/wdf/kmdf/1.31")).unwrap();
        fs::create_dir_all(folder.path().join("Include/10.0.9600.0/um")).unwrap();
        assert!(wdk(None).unwrap_err().contains("--id Microsoft.WindowsWDK.10.0.9600"));
        let with = folder.path().join("Include/10.0.26100.0/km");
        fs::create_dir_all(&with).unwrap();
        fs::write(with.join("ntddk.h"), "").unwrap();
        assert_eq!(wdk(None), Ok(format!("10.0.26100.0 in {root}")));
        // A newer SDK without a WDK, which wdk-build would take.
        fs::create_dir_all(folder.path().join("Include/10.0.28000.0/um")).unwrap();
        let said = wdk(None).unwrap_err();
        assert!(said.contains("10.0.28000.0, the newest, has no WDK"), "{said}");
        assert!(said.contains("set Version_Number=10.0.26100.0"), "{said}");
        // A prompt of the EWDK has chosen the version.
        assert_eq!(wdk(Some("10.0.26100.0")), Ok(format!("10.0.26100.0 in {root}")));
        let said = wdk(Some("10.0.28000.0")).unwrap_err();
        assert!(said.contains("of Version_Number has no WDK"), "{said}");
    }
}
