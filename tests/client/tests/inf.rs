//! Tests the driver's INF with the setup API of Windows or Wine.

use std::{fs, os::windows::ffi::OsStrExt as _, path::Path, ptr};

use windows_sys::Win32::Devices::DeviceAndDriverInstallation::{
    INF_STYLE_WIN4, INFCONTEXT, SetupCloseInfFile, SetupDiGetActualSectionToInstallW,
    SetupFindFirstLineW, SetupGetFieldCount, SetupGetStringFieldW, SetupOpenInfFileW,
};

fn wide(text: impl AsRef<std::ffi::OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

struct Inf(*mut core::ffi::c_void);

impl Inf {
    /// Opens a file, or returns the number of the malformed line.
    fn open(path: &Path) -> Result<Self, u32> {
        let mut line = 0;
        let path = wide(path);
        // SAFETY: the path ends with a NUL, and the out-parameter is a local.
        let inf =
            unsafe { SetupOpenInfFileW(path.as_ptr(), ptr::null(), INF_STYLE_WIN4, &raw mut line) };
        let invalid = usize::MAX;
        if inf.addr() == invalid {
            return Err(line);
        }
        Ok(Self(inf))
    }

    /// Returns the values of the first line with this key.
    fn values(&self, section: &str, key: &str) -> Vec<String> {
        let mut context = INFCONTEXT::default();
        let (section, key) = (wide(section), wide(key));
        // SAFETY: the file is open, the strings end with a NUL, and the context is a local.
        let found = unsafe {
            SetupFindFirstLineW(self.0, section.as_ptr(), key.as_ptr(), &raw mut context)
        };
        if found == 0 {
            return Vec::new();
        }
        // SAFETY: the context was filled in.
        let count = unsafe { SetupGetFieldCount(&raw const context) };
        (1..=count)
            .map(|field| {
                let mut units = [0_u16; 512];
                let mut length = 0;
                // SAFETY: the context was filled in, and the buffer is as large as the given size.
                let got = unsafe {
                    SetupGetStringFieldW(
                        &raw const context,
                        field,
                        units.as_mut_ptr(),
                        512,
                        &raw mut length,
                    )
                };
                assert_ne!(got, 0);
                String::from_utf16_lossy(&units[..length as usize - 1])
            })
            .collect()
    }

    /// Returns the decorated section that applies to this machine.
    fn actual_section(&self, section: &str) -> String {
        let section = wide(section);
        let mut units = [0_u16; 256];
        let mut length = 0;
        // SAFETY: the file is open, the text ends with a NUL, and the buffer is as large as the
        // given size.
        let got = unsafe {
            SetupDiGetActualSectionToInstallW(
                self.0,
                section.as_ptr(),
                units.as_mut_ptr(),
                256,
                &raw mut length,
                ptr::null_mut(),
            )
        };
        assert_ne!(got, 0);
        String::from_utf16_lossy(&units[..length as usize - 1])
    }
}

impl Drop for Inf {
    fn drop(&mut self) {
        // SAFETY: the file is open and not used afterwards.
        unsafe { SetupCloseInfFile(self.0) };
    }
}

/// Returns the file that stampinf writes for x64.
fn stamped() -> String {
    include_str!("../../../inf/etw_sample_driver.inx")
        .replace("$ARCH$", "amd64")
        .replace("$KMDFVERSION$", "1.31")
}

fn write(name: &str, text: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("wdk-etw-inf-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn setup_understands_it() {
    let inf = Inf::open(&write("good.inf", &stamped())).unwrap();
    assert_eq!(inf.values("Version", "Class"), ["System"]);
    assert_eq!(inf.values("Version", "Provider"), ["wdk-etw"]);
    let models = inf.values("Manufacturer", "wdk-etw");
    assert_eq!(models, ["Devices", "NTamd64.10.0...19041"]);
    let model = inf.values("Devices.NTamd64.10.0...19041", "wdk-etw sample device");
    assert_eq!(model, ["EtwSampleDriver", etw_sample_interface::HARDWARE_ID]);
    let section = inf.actual_section("EtwSampleDriver");
    assert_eq!(section, "EtwSampleDriver.NTamd64");
    let service = inf.values(&format!("{section}.Services"), "AddService");
    assert_eq!(service, [etw_sample_interface::SERVICE, "0x00000002", "Service"]);
    assert_eq!(inf.values("Service", "StartType"), ["3"]);
    assert!(inf.values("Service", "ServiceBinary")[0].ends_with("etw_sample_driver.sys"));
    let framework = inf.values(&format!("{section}.Wdf"), "KmdfService");
    assert_eq!(framework, [etw_sample_interface::SERVICE, "Framework"]);
    assert_eq!(inf.values("Framework", "KmdfLibraryVersion"), ["1.31"]);
    let events = inf.values(&format!("{section}.Events"), "AddEventProvider");
    assert_eq!(events, [&format!("{{{}}}", etw_scenarios::provider()), "Event.Provider"]);
    assert_eq!(inf.values("Event.Provider", "ProviderName"), [etw_sample_interface::PROVIDER_NAME]);
}

#[test]
fn setup_returns_the_line_of_a_syntax_error() {
    let text = stamped().replace("[Files]", "[Files");
    let line = text.lines().position(|line| line == "[Files").unwrap() + 1;
    let error = Inf::open(&write("broken.inf", &text)).err();
    // No document says how Windows counts lines.
    if std::env::var_os("WINEPREFIX").is_some() {
        assert_eq!(error, u32::try_from(line).ok());
    }
    assert!(error.is_some());
}
