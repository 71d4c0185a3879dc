//! The scripts and README of a test machine's package, filled in for the driver.

use crate::catalog::Version;

/// The driver of a package.
#[derive(Clone, Copy, Debug)]
pub struct Installed<'a> {
    /// The driver's description.
    pub description: &'a str,
    /// The INF file's name.
    pub inf: &'a str,
    /// The image's name.
    pub image: &'a str,
    /// The catalog's name.
    pub catalog: &'a str,
    /// The certificate's name.
    pub certificate: &'a str,
    /// The service's name.
    pub service: &'a str,
    /// The devices' hardware IDs; none for a driver without a device, a primitive driver.
    pub hardware_ids: &'a [String],
    /// The other files in the package, each with its description.
    pub files: &'a [(String, String)],
    /// The commands that trace the driver, one per line.
    pub trace: &'a str,
    /// Additional notes on the driver, or an empty string.
    pub notes: &'a str,
    /// The oldest supported version of Windows.
    pub oldest: &'a str,
    /// The architecture in inf2cat's notation: `X64` or `ARM64`.
    pub system: &'a str,
    /// The version of the catalog's members.
    pub catalog_version: Version,
}

/// A file in a package: its name and its text, with Unix line endings.
pub type Script = (&'static str, String);

/// Returns whether a device with this hardware ID exists only after a program has created it.
fn is_made(id: &str) -> bool {
    let start = id.get(..5);
    start.is_some_and(|start| start.eq_ignore_ascii_case("root\\"))
}

impl Installed<'_> {
    /// Returns the scripts and the README.
    #[must_use]
    pub fn files(&self) -> Vec<Script> {
        let fill = |template: &str| self.fill(template);
        let mut files = vec![
            ("README.txt", fill(include_str!("scripts/README.txt"))),
            ("prepare.cmd", fill(include_str!("scripts/prepare.cmd"))),
            ("install.cmd", fill(include_str!("scripts/install.cmd"))),
            ("uninstall.cmd", fill(include_str!("scripts/uninstall.cmd"))),
            ("restore.cmd", fill(include_str!("scripts/restore.cmd"))),
        ];
        if self.is_primitive() {
            files.push(("service.ps1", fill(include_str!("scripts/service.ps1"))));
            return files;
        }
        files.push(("uninstall.ps1", fill(include_str!("scripts/uninstall.ps1"))));
        if self.made().is_some() {
            let device = fill(include_str!("scripts/device.ps1"));
            files.push(("device.ps1", device));
        }
        files
    }

    /// Returns whether the driver is a service without a device.
    const fn is_primitive(&self) -> bool {
        self.hardware_ids.is_empty()
    }

    /// Returns the command that runs a script, with arguments.
    fn script(&self, name: &str, arguments: &str) -> String {
        let inf = self.inf;
        format!(
            "powershell -NoProfile -ExecutionPolicy Bypass -File {name} -Inf \"{inf}\" {arguments} || \
             exit /b 1"
        )
    }

    /// Returns the commands that install and uninstall the driver.
    fn commands(&self) -> (String, String) {
        if self.is_primitive() {
            let service = format!("-Service \"{}\"", in_batch(self.service));
            let remove = format!("{service} -Remove");
            return (self.script("service.ps1", &service), self.script("service.ps1", &remove));
        }
        let install = self.made().map_or_else(
            || format!(include_str!("scripts/pnputil.txt"), inf = self.inf).trim_end().to_owned(),
            |id| self.script("device.ps1", &format!("-HardwareId \"{}\"", in_batch(id))),
        );
        // Hardware IDs contain no commas.
        let ids = format!("-HardwareId \"{}\"", in_batch(&self.hardware_ids.join(",")));
        (install, self.script("uninstall.ps1", &ids))
    }

    /// Returns the hardware ID of the device that the installation creates.
    fn made(&self) -> Option<&str> {
        let mut ids = self.hardware_ids.iter().map(String::as_str);
        ids.find(|id| is_made(id))
    }

    fn fill(&self, template: &str) -> String {
        let (install, uninstall) = self.commands();
        let (made, removed) = match self.made() {
            _ if self.is_primitive() => (" and starts its service", ""),
            Some(_) => (" and creates its device", " and its devices"),
            None => ("", " and its devices"),
        };
        let hashes = match self.catalog_version {
            Version::One => "SHA-1",
            Version::Two => "SHA-1 and SHA-256",
        };
        let mut trace = String::new();
        for line in self.trace.lines() {
            trace.extend(["    ", line, "\n"]);
        }
        if !trace.is_empty() {
            trace = format!("Then trace the driver:\n\n{trace}\n");
        }
        let notes = match self.notes.trim_end() {
            "" => String::new(),
            notes => format!("{notes}\n\n"),
        };
        let mut list = vec![
            (self.image.to_owned(), "the driver, signed with the test certificate".to_owned()),
            (self.inf.to_owned(), "the installation instructions for Windows".to_owned()),
            (
                self.catalog.to_owned(),
                "the signed hashes of the driver and the INF file".to_owned(),
            ),
            (self.certificate.to_owned(), "the test certificate".to_owned()),
        ];
        list.extend(self.files.iter().cloned());
        let scripts = [
            ("device.ps1", self.made().is_some(), "used by install.cmd: creates the device"),
            (
                "uninstall.ps1",
                !self.is_primitive(),
                "used by uninstall.cmd: removes devices and the driver",
            ),
            (
                "service.ps1",
                self.is_primitive(),
                "used by install.cmd and uninstall.cmd: installs and removes the driver",
            ),
        ];
        let scripts = scripts.into_iter().filter(|(_, is_used, _)| *is_used);
        list.extend(scripts.map(|(name, _, what)| (name.to_owned(), what.to_owned())));
        let width = list.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let list: Vec<String> =
            list.iter().map(|(name, what)| format!("    {name:width$}   {what}")).collect();
        // In some checkouts, batch files have Windows line endings.
        template
            .replace("\r\n", "\n")
            .replace("@DESCRIPTION@", self.description)
            .replace("@OLDEST@", self.oldest)
            .replace("@INF@", self.inf)
            .replace("@CATALOG@", self.catalog)
            .replace("@CERTIFICATE@", self.certificate)
            .replace("@INSTALL@", &install)
            .replace("@UNINSTALL@", &uninstall)
            .replace("@MADE@", made)
            .replace("@REMOVED@", removed)
            .replace("@TRACE_SECTION@", &trace)
            .replace("@SYSTEM@", self.system)
            .replace("@HASHES@", hashes)
            .replace("@NOTES@", &notes)
            .replace("@FILES@", &list.join("\n"))
    }
}

/// Escapes text for use between double quotes in a batch file. `powershell -File` would pass on any
/// other quotes as part of the argument.
fn in_batch(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(hardware_ids: &[String]) -> Vec<Script> {
        let installed = Installed {
            description: "Contoso sensor",
            inf: "sensor.inf",
            image: "sensor.sys",
            catalog: "sensor.cat",
            certificate: "sensor.cer",
            service: "sensor",
            hardware_ids,
            files: &[("sensor.pdb".to_owned(), "symbols".to_owned())],
            trace: "one\ntwo",
            notes: "",
            oldest: "Windows 10 2004",
            system: "X64",
            catalog_version: Version::One,
        };
        installed.files()
    }

    #[test]
    fn every_place_is_filled() {
        for ids in [Some(r"Root\Sensor"), Some(r"USB\VID_1&PID_2"), None] {
            let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
            for (name, text) in files(&ids) {
                for place in text.split('@').skip(1) {
                    let is_name = |one: &char| one.is_ascii_uppercase() || *one == '_';
                    let word: String = place.chars().take_while(is_name).collect();
                    assert!(word.len() < 3, "{name}: @{word}");
                }
            }
        }
    }

    #[test]
    fn a_device_is_made_where_there_is_no_hardware() {
        let made = files(&[r"root\Sensor".to_owned()]);
        let (_, install) = &made[2];
        assert!(install.contains(r#"-HardwareId "root\Sensor""#), "{install}");
        assert!(made.iter().any(|(name, _)| *name == "device.ps1"));
        let found = files(&[r"USB\VID_1&PID_2".to_owned()]);
        assert!(found[2].1.contains("pnputil /add-driver \"sensor.inf\" /install"));
        assert!(found.iter().all(|(name, _)| *name != "device.ps1"));
        assert!(!found[0].1.contains("device.ps1"), "{}", found[0].1);
    }

    #[test]
    fn a_driver_without_a_device_is_a_service() {
        let files = files(&[]);
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "README.txt", "prepare.cmd", "install.cmd", "uninstall.cmd", "restore.cmd",
                "service.ps1"
            ]
        );
        let called = r#"-File service.ps1 -Inf "sensor.inf" -Service "sensor""#;
        assert!(files[2].1.contains(&format!("{called} || exit")), "{}", files[2].1);
        assert!(files[3].1.contains(&format!("{called} -Remove || exit")), "{}", files[3].1);
        let readme = &files[0].1;
        for part in ["installs the driver and starts its service\n", "removes the driver\n"] {
            assert!(readme.contains(part), "{readme}");
        }
        assert!(!readme.contains("device"), "{readme}");
    }

    #[test]
    fn what_is_removed_is_named_on_the_command_line() {
        let ids = [r"root\Sensor", r"root\50%"].map(str::to_owned);
        let files = files(&ids);
        let text = |wanted: &str| &files.iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert!(
            text("uninstall.cmd").contains(
                r#"-File uninstall.ps1 -Inf "sensor.inf" -HardwareId "root\Sensor,root\50%%""#
            ),
            "{}",
            text("uninstall.cmd")
        );
        // The PowerShell scripts are not templates, so that the files themselves can be checked.
        for name in ["uninstall.ps1", "device.ps1"] {
            assert_eq!(text(name).matches("[Parameter(Mandatory)]").count(), 2);
        }
    }

    /// A dialog on a machine without a user would wait forever.
    #[test]
    fn no_installation_asks() {
        let text = |ids: &[String], wanted: &str| {
            let found = files(ids).into_iter().find(|(name, _)| *name == wanted);
            found.unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let device = text(&[r"root\Sensor".to_owned()], "device.ps1");
        assert!(device.contains("NonInteractive = 4;"), "{device}");
        assert_eq!(device.matches("UpdateDriverForPlugAndPlayDevicesW(IntPtr.Zero,").count(), 1);
        assert!(device.contains("id, inf, Force | NonInteractive, out restart)"), "{device}");
        let service = text(&[], "service.ps1");
        for call in ["DiInstallDriverW", "DiUninstallDriverW"] {
            let calls = service.matches(&format!("{call}(IntPtr.Zero,")).count();
            let quiet = format!("SetupSetNonInteractiveMode(true); if ({call}(IntPtr.Zero,");
            assert_eq!((calls, service.matches(&quiet).count()), (1, 1), "{service}");
        }
    }

    #[test]
    fn the_readme_lists_the_files_and_the_commands() {
        let (_, readme) = &files(&[r"Root\Sensor".to_owned()])[0];
        for part in ["    one\n    two\n", "sensor.pdb      symbols\n", "Contoso sensor, for"] {
            assert!(readme.contains(part), "no {part:?} in:\n{readme}");
        }
    }
}
