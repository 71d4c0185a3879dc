//! The sample driver's devices, found by their hardware ID (`SetupAPI`).
//!
//! A search only reads the registered devices. In contrast, `CM_Get_Device_ID_List` can create a
//! device node for a service that has no device.

use std::{
    fs, io,
    path::{Path, PathBuf},
    ptr,
};

use windows_sys::{
    Win32::{
        Devices::{
            DeviceAndDriverInstallation::{
                DICD_GENERATE_ID, DIF_REGISTERDEVICE, DIF_REMOVE, DIGCF_ALLCLASSES, DIGCF_PRESENT,
                HDEVINFO, SP_DEVINFO_DATA, SPDRP_HARDWAREID, SetupDiCallClassInstaller,
                SetupDiCreateDeviceInfoList, SetupDiCreateDeviceInfoW,
                SetupDiDestroyDeviceInfoList, SetupDiEnumDeviceInfo, SetupDiGetClassDevsW,
                SetupDiGetDevicePropertyW, SetupDiGetDeviceRegistryPropertyW, SetupDiGetINFClassW,
                SetupDiSetDeviceRegistryPropertyW,
            },
            Properties::DEVPKEY_Device_DriverInfPath,
        },
        Foundation::INVALID_HANDLE_VALUE,
    },
    core::GUID,
};

use etw_session::{
    error::Win32Error,
    wide::{list, wide},
};

/// The devices that a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Devices that Windows currently enumerates, started or disabled.
    Present,
    /// All registered devices, including those that are no longer enumerated.
    All,
}

/// A set of root-enumerated devices with one hardware ID.
pub struct Devices {
    set: DeviceSet,
    members: Vec<SP_DEVINFO_DATA>,
}

impl Devices {
    /// Finds the devices with this hardware ID.
    pub fn find(hardware_id: &str, search: Search) -> Result<Self, Win32Error> {
        let enumerator = wide("ROOT");
        let flags = match search {
            Search::Present => DIGCF_ALLCLASSES | DIGCF_PRESENT,
            Search::All => DIGCF_ALLCLASSES,
        };
        // SAFETY: the enumerator's name ends with a NUL; null means every class.
        let set = unsafe {
            SetupDiGetClassDevsW(ptr::null(), enumerator.as_ptr(), ptr::null_mut(), flags)
        };
        let set = DeviceSet::from_result("SetupDiGetClassDevs", set)?;
        let members = set.with_hardware_id(hardware_id);
        Ok(Self { set, members })
    }

    /// Creates and registers a device without a driver, in the class specified by an INF file.
    /// `inf` ends with a NUL.
    pub fn create(hardware_id: &str, inf: &[u16]) -> Result<Self, Win32Error> {
        let (class, name) = class_of(inf)?;
        // SAFETY: the class's GUID is a local.
        let set = unsafe { SetupDiCreateDeviceInfoList(&raw const class, ptr::null_mut()) };
        let set = DeviceSet::from_result("SetupDiCreateDeviceInfoList", set)?;
        let mut device = empty_device();
        // SAFETY: the set is open, the name ends with a NUL, and the structure contains its size.
        let made = unsafe {
            SetupDiCreateDeviceInfoW(
                set.0,
                name.as_ptr(),
                &raw const class,
                ptr::null(),
                ptr::null_mut(),
                DICD_GENERATE_ID,
                &raw mut device,
            )
        };
        succeeded("SetupDiCreateDeviceInfo", made)?;
        // A list of strings (REG_MULTI_SZ) ends with an empty string.
        let mut ids = wide(hardware_id);
        ids.push(0);
        // SAFETY: the set is open, the device is in it, and the list is as long as the given size.
        let stored = unsafe {
            SetupDiSetDeviceRegistryPropertyW(
                set.0,
                &raw mut device,
                SPDRP_HARDWAREID,
                ids.as_ptr().cast(),
                bytes(&ids),
            )
        };
        succeeded("SetupDiSetDeviceRegistryProperty", stored)?;
        set.call_installer(DIF_REGISTERDEVICE, &device)?;
        Ok(Self { set, members: vec![device] })
    }

    /// Returns true if no device was found.
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the device node of the first device.
    pub fn first_node(&self) -> Option<u32> {
        self.members.first().map(|device| device.DevInst)
    }

    /// Removes the devices.
    pub fn remove(&self) -> Result<(), Win32Error> {
        for device in &self.members {
            self.set.call_installer(DIF_REMOVE, device)?;
        }
        Ok(())
    }

    /// Returns the names under which Windows published the INF files of the devices' drivers, such
    /// as `oem4.inf`.
    pub fn published_infs(&self) -> Vec<String> {
        let names = self.members.iter();
        let names = names.filter_map(|device| self.set.published_inf(device));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the copies in `folder` of a driver package's INF file. Windows publishes the unchanged
/// file in its INF folder as `oem` followed by a number.
pub fn copies_of(inf: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let wanted = fs::read(inf)?;
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let number = name.strip_prefix("oem").and_then(|name| name.strip_suffix(".inf"));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) && fs::read(&path)? == wanted
        {
            copies.push(path);
        }
    }
    copies.sort_unstable();
    Ok(copies)
}

/// A device information set, which is destroyed when this value is dropped.
struct DeviceSet(HDEVINFO);

impl DeviceSet {
    fn from_result(call: &'static str, set: HDEVINFO) -> Result<Self, Win32Error> {
        if set == INVALID_HANDLE_VALUE as HDEVINFO {
            return Err(Win32Error::last(call));
        }
        Ok(Self(set))
    }

    /// Calls the class installer for a device.
    fn call_installer(&self, function: u32, device: &SP_DEVINFO_DATA) -> Result<(), Win32Error> {
        // SAFETY: the set is open, and the device is in it.
        let done = unsafe { SetupDiCallClassInstaller(function, self.0, device) };
        succeeded("SetupDiCallClassInstaller", done)
    }

    /// Returns the devices of the set that have this hardware ID.
    fn with_hardware_id(&self, hardware_id: &str) -> Vec<SP_DEVINFO_DATA> {
        let mut found = Vec::new();
        for member in 0.. {
            let mut device = empty_device();
            // SAFETY: the set is open, and the structure contains its size.
            if unsafe { SetupDiEnumDeviceInfo(self.0, member, &raw mut device) } == 0 {
                break;
            }
            let ids = self.hardware_ids(&device);
            if ids.iter().any(|id| id.eq_ignore_ascii_case(hardware_id)) {
                found.push(device);
            }
        }
        found
    }

    fn hardware_ids(&self, device: &SP_DEVINFO_DATA) -> Vec<String> {
        const UNITS: usize = 512;
        let mut ids = [0_u16; UNITS];
        // SAFETY: the set is open, the device is in it, and the buffer is as large as the given
        // size.
        let found = unsafe {
            SetupDiGetDeviceRegistryPropertyW(
                self.0,
                device,
                SPDRP_HARDWAREID,
                ptr::null_mut(),
                ids.as_mut_ptr().cast(),
                bytes(&ids),
                ptr::null_mut(),
            )
        };
        if found == 0 { Vec::new() } else { list(&ids) }
    }

    /// Returns the published name of the INF file with which a device was installed, or `None` for
    /// a device without a driver.
    fn published_inf(&self, device: &SP_DEVINFO_DATA) -> Option<String> {
        const UNITS: usize = 260;
        let mut name = [0_u16; UNITS];
        let mut kind = 0;
        let key = DEVPKEY_Device_DriverInfPath;
        // SAFETY: the set is open, the device is in it, and the buffer is as large as the given
        // size.
        let found = unsafe {
            SetupDiGetDevicePropertyW(
                self.0,
                device,
                &raw const key,
                &raw mut kind,
                name.as_mut_ptr().cast(),
                bytes(&name),
                ptr::null_mut(),
                0,
            )
        };
        list(&name).into_iter().next().filter(|_| found != 0)
    }
}

impl Drop for DeviceSet {
    fn drop(&mut self) {
        // SAFETY: this value owns the set.
        unsafe { SetupDiDestroyDeviceInfoList(self.0) };
    }
}

/// Returns the class of an INF file: its GUID, and its name with a NUL.
fn class_of(inf: &[u16]) -> Result<(GUID, [u16; NAME_UNITS]), Win32Error> {
    let mut class = GUID::from_u128(0);
    let mut name = [0_u16; NAME_UNITS];
    // SAFETY: the path ends with a NUL, and the name's buffer has as many units as the given size.
    let found = unsafe {
        SetupDiGetINFClassW(
            inf.as_ptr(),
            &raw mut class,
            name.as_mut_ptr(),
            u32::try_from(NAME_UNITS).unwrap_or(0),
            ptr::null_mut(),
        )
    };
    succeeded("SetupDiGetINFClass", found)?;
    Ok((class, name))
}

/// `MAX_CLASS_NAME_LEN`.
const NAME_UNITS: usize = 32;

/// Returns an error if a call of the setup API failed.
pub fn succeeded(call: &'static str, result: i32) -> Result<(), Win32Error> {
    if result == 0 {
        return Err(Win32Error::last(call));
    }
    Ok(())
}

/// Returns the size in bytes.
fn bytes(units: &[u16]) -> u32 {
    u32::try_from(size_of_val(units)).unwrap_or(u32::MAX)
}

fn empty_device() -> SP_DEVINFO_DATA {
    SP_DEVINFO_DATA {
        cbSize: u32::try_from(size_of::<SP_DEVINFO_DATA>()).unwrap_or(0),
        ..SP_DEVINFO_DATA::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's INF file, stamped for x64.
    fn stamped(folder: &Path) -> Vec<u16> {
        let text = include_str!("../../../inf/etw_sample_driver.inx")
            .replace("$ARCH$", "amd64")
            .replace("$KMDFVERSION$", "1.31");
        let path = folder.join("etw_sample_driver.inf");
        fs::write(&path, text).unwrap();
        wide(path)
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("wdk-etw-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Like Windows, Wine registers devices in its registry. On Windows, this test would need an
    /// elevated prompt and would start a device.
    #[test]
    fn devices_are_created_found_by_their_hardware_id_and_removed() {
        const ID: &str = r"Root\WdkEtwTestOfDevices";
        if std::env::var_os("WINEPREFIX").is_none() {
            return;
        }
        let inf = stamped(&folder("devices"));
        let find = |search| Devices::find(ID, search).unwrap();
        // An interrupted run may have left a device.
        find(Search::All).remove().unwrap();
        assert!(find(Search::Present).is_empty());
        assert_eq!(find(Search::All).first_node(), None);
        // The search must not create a device that another search finds.
        assert!(find(Search::All).is_empty());
        let one = Devices::create(ID, &inf).unwrap();
        let two = Devices::create(ID, &inf).unwrap();
        let upper = Devices::find(&ID.to_uppercase(), Search::Present).unwrap();
        assert_eq!(upper.members.len(), 2);
        assert!(find(Search::Present).first_node().is_some());
        // Neither device has a driver.
        assert_eq!(find(Search::All).published_infs(), [""; 0]);
        // Removing one device leaves the other.
        one.remove().unwrap();
        assert_eq!(find(Search::All).members.len(), 1);
        two.remove().unwrap();
        assert!(find(Search::All).is_empty());
    }

    #[test]
    fn a_published_inf_is_found_by_its_content() {
        let folder = folder("published");
        let inf = folder.join("sample.inf");
        for (name, text) in [
            ("sample.inf", "; one"),
            ("oem3.inf", "; one"),
            ("OEM12.INF", "; one"),
            ("oem4.inf", "; another version"),
            ("oem.inf", "; one"),
            ("oem5.pnf", "; one"),
            ("machine.inf", "; one"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let found = copies_of(&inf, &folder).unwrap();
        assert_eq!(found, ["OEM12.INF", "oem3.inf"].map(|name| folder.join(name)));
        assert!(copies_of(&folder.join("no.inf"), &folder).is_err());
    }
}
