//! Sessions that Windows starts at boot (`AutoLogger`), configured in the registry.

use etl_file::Guid;

use crate::{Filter, Source};

/// The registry key of all boot sessions, below `HKEY_LOCAL_MACHINE`.
pub const KEY: &str = r"SYSTEM\CurrentControlSet\Control\WMI\Autologger";

/// The name of the value with the path of the session's file.
const FILE_NAME: &str = "FileName";
/// The name of the value with the error code of the session's last start, which ETW writes.
#[cfg(windows)]
const STATUS: &str = "Status";

/// A session that Windows starts at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoLogger {
    /// The session's name.
    pub session: String,
    /// The session's file.
    pub file: String,
    /// The providers and groups that the session enables. Filters by event id are not supported.
    pub enables: Vec<(Source, Filter)>,
}

/// The data of a registry value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A string (`REG_SZ`).
    Text(String),
    /// A 32-bit number (`REG_DWORD`).
    Number(u32),
    /// A 64-bit number (`REG_QWORD`).
    Mask(u64),
}

impl AutoLogger {
    /// Returns the session's registry key, below `HKEY_LOCAL_MACHINE`.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.session)
    }

    /// Returns the session's registry values: for each, the key below [`Self::key`], the name and
    /// the data (ETW-5.2).
    #[must_use]
    pub fn values(&self) -> Vec<(String, &'static str, Data)> {
        /// `EVENT_TRACE_FILE_MODE_SEQUENTIAL`: the buffers are in nonpaged memory, and the file's
        /// size is not limited.
        const SEQUENTIAL: u32 = 1;
        /// The performance counter.
        const CLOCK: u32 = 1;
        /// `EVENT_ENABLE_PROPERTY_PROVIDER_GROUP`.
        const GROUP: u32 = 0x20;
        let braced = |guid: Guid| format!("{{{guid}}}");
        let guid = Guid::of_name(&self.session).unwrap_or_default();
        let own = |name, data| (String::new(), name, data);
        let mut values = vec![
            own("Guid", Data::Text(braced(guid))),
            own(FILE_NAME, Data::Text(self.file.clone())),
            own("LogFileMode", Data::Number(SEQUENTIAL)),
            // No limit; without this value, the limit is 100 MB.
            own("MaxFileSize", Data::Number(0)),
            own("ClockType", Data::Number(CLOCK)),
        ];
        for (source, filter) in &self.enables {
            let (guid, property) = match source {
                Source::Provider(guid) => (*guid, 0),
                Source::Group(guid) => (*guid, GROUP),
            };
            let mut add = |name, data| values.push((braced(guid), name, data));
            add("Enabled", Data::Number(1));
            add("EnableLevel", Data::Number(filter.level.into()));
            add("MatchAnyKeyword", Data::Mask(filter.any));
            add("MatchAllKeyword", Data::Mask(filter.all));
            add("EnableProperty", Data::Number(property));
        }
        // The last value: a session that is only partly written does not start.
        values.push(own("Start", Data::Number(1)));
        values
    }
}

fn key(session: &str) -> String {
    format!(r"{KEY}\{session}")
}

#[cfg(windows)]
pub use windows::{Removed, install, remove};

#[cfg(windows)]
mod windows {
    use windows_sys::Win32::{
        Foundation::{ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, ERROR_WMI_INSTANCE_NOT_FOUND},
        System::Registry::{
            HKEY_LOCAL_MACHINE, REG_DWORD, REG_QWORD, REG_SZ, RRF_RT_REG_DWORD, RRF_RT_REG_SZ,
            RegDeleteTreeW, RegGetValueW, RegSetKeyValueW,
        },
    };

    use super::{AutoLogger, Data, FILE_NAME, STATUS, key};
    use crate::{
        error::{SessionError, Win32Error},
        session::{self, Counts},
        wide::wide,
    };

    /// A session that Windows will no longer start.
    #[derive(Clone, Debug)]
    pub struct Removed {
        /// The session's file.
        pub file: String,
        /// The error code of the session's last start, or `None` if Windows has never started it.
        pub status: Option<u32>,
        /// The counters of the session if it was running and has been stopped.
        pub stopped: Option<Counts>,
    }

    /// Makes Windows start a session from the next boot. Replaces an existing session with this
    /// name.
    ///
    /// # Errors
    ///
    /// Fails if the registry cannot be written; a partly written session is removed.
    pub fn install(session: &AutoLogger) -> Result<(), Win32Error> {
        delete(&session.session)?;
        let written = session
            .values()
            .iter()
            .try_for_each(|(below, name, data)| set(&session.key(), below, name, data));
        // A partly written session has no `Start` value, so it would not start.
        written.or_else(|error| delete(&session.session).and(Err(error)))
    }

    /// Removes a boot session, and stops it if it is running. Returns `None` if there is no such
    /// session.
    ///
    /// # Errors
    ///
    /// Fails if the registry cannot be read or written, or if the session cannot be stopped.
    pub fn remove(session: &str) -> Result<Option<Removed>, SessionError> {
        let Some(file) = text(&key(session), FILE_NAME)? else {
            return Ok(None);
        };
        let status = number(&key(session), STATUS)?;
        // The key is kept if the session cannot be stopped, so that the session can be found again.
        let stopped = match session::stop(session) {
            Ok(counts) => Some(counts),
            Err(SessionError::Win32(error)) if error.code == ERROR_WMI_INSTANCE_NOT_FOUND => None,
            Err(error) => return Err(error),
        };
        delete(session)?;
        Ok(Some(Removed { file, status, stopped }))
    }

    /// Returns true if a registry routine succeeded, and false if the item does not exist. Other
    /// codes are errors.
    fn exists(call: &'static str, code: u32) -> Result<bool, Win32Error> {
        if code == ERROR_FILE_NOT_FOUND {
            return Ok(false);
        }
        Win32Error::check(call, code).map(|()| true)
    }

    fn delete(session: &str) -> Result<bool, Win32Error> {
        let key = wide(key(session));
        // SAFETY: the name ends with a NUL.
        let code = unsafe { RegDeleteTreeW(HKEY_LOCAL_MACHINE, key.as_ptr()) };
        exists("RegDeleteTree", code)
    }

    fn set(key: &str, below: &str, name: &str, data: &Data) -> Result<(), Win32Error> {
        let key = if below.is_empty() { key.to_owned() } else { format!(r"{key}\{below}") };
        let (kind, bytes) = match data {
            Data::Text(text) => {
                (REG_SZ, wide(text).iter().flat_map(|unit| unit.to_le_bytes()).collect())
            }
            Data::Number(number) => (REG_DWORD, number.to_le_bytes().to_vec()),
            Data::Mask(mask) => (REG_QWORD, mask.to_le_bytes().to_vec()),
        };
        let (key, name) = (wide(key), wide(name));
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // SAFETY: the names end with a NUL, and the data has the given length.
        let code = unsafe {
            RegSetKeyValueW(
                HKEY_LOCAL_MACHINE,
                key.as_ptr(),
                name.as_ptr(),
                kind,
                bytes.as_ptr().cast(),
                length,
            )
        };
        Win32Error::check("RegSetKeyValue", code)
    }

    fn number(key: &str, name: &str) -> Result<Option<u32>, Win32Error> {
        let (key, name) = (wide(key), wide(name));
        let mut number = 0_u32;
        let mut size = 4;
        // SAFETY: the names end with a NUL, and the buffer has the given size.
        let code = unsafe {
            RegGetValueW(
                HKEY_LOCAL_MACHINE,
                key.as_ptr(),
                name.as_ptr(),
                RRF_RT_REG_DWORD,
                std::ptr::null_mut(),
                (&raw mut number).cast(),
                &raw mut size,
            )
        };
        Ok(exists("RegGetValue", code)?.then_some(number))
    }

    fn text(key: &str, name: &str) -> Result<Option<String>, Win32Error> {
        let (key, name) = (wide(key), wide(name));
        let mut units = vec![0_u16; 512];
        loop {
            let mut size = u32::try_from(size_of_val(units.as_slice())).unwrap_or(u32::MAX);
            // SAFETY: the names end with a NUL, and the buffer has the given size.
            let code = unsafe {
                RegGetValueW(
                    HKEY_LOCAL_MACHINE,
                    key.as_ptr(),
                    name.as_ptr(),
                    RRF_RT_REG_SZ,
                    std::ptr::null_mut(),
                    units.as_mut_ptr().cast(),
                    &raw mut size,
                )
            };
            if code == ERROR_MORE_DATA {
                units.resize(units.len() * 2, 0);
                continue;
            }
            let length = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
            let found = exists("RegGetValue", code)?;
            return Ok(found.then(|| String::from_utf16_lossy(units.split_at(length).0)));
        }
    }
}

#[cfg(test)]
mod tests;
