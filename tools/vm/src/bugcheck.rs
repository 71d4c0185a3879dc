//! Bugchecks from QEMU's events and from crash dumps.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde_json::Value;

/// A bugcheck code and its four parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bugcheck {
    /// The code.
    pub code: u32,
    /// The parameters.
    pub parameters: [u64; 4],
}

/// The names of bugcheck codes in Microsoft's documentation.
const NAMES: [(u32, &str); 31] = [
    (0x0A, "IRQL_NOT_LESS_OR_EQUAL"),
    (0x18, "REFERENCE_BY_POINTER"),
    (0x19, "BAD_POOL_HEADER"),
    (0x1A, "MEMORY_MANAGEMENT"),
    (0x1E, "KMODE_EXCEPTION_NOT_HANDLED"),
    (0x3B, "SYSTEM_SERVICE_EXCEPTION"),
    (0x44, "MULTIPLE_IRP_COMPLETE_REQUESTS"),
    (0x4A, "IRQL_GT_ZERO_AT_SYSTEM_SERVICE"),
    (0x50, "PAGE_FAULT_IN_NONPAGED_AREA"),
    (0x7A, "KERNEL_DATA_INPAGE_ERROR"),
    (0x7E, "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED"),
    (0x7F, "UNEXPECTED_KERNEL_MODE_TRAP"),
    (0x80, "NMI_HARDWARE_FAILURE"),
    (0x9F, "DRIVER_POWER_STATE_FAILURE"),
    (0xA0, "INTERNAL_POWER_ERROR"),
    (0xBE, "ATTEMPTED_WRITE_TO_READONLY_MEMORY"),
    (0xC1, "SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION"),
    (0xC2, "BAD_POOL_CALLER"),
    (0xC4, "DRIVER_VERIFIER_DETECTED_VIOLATION"),
    (0xC5, "DRIVER_CORRUPTED_EXPOOL"),
    (0xC9, "DRIVER_VERIFIER_IOMANAGER_VIOLATION"),
    (0xCE, "DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS"),
    (0xD1, "DRIVER_IRQL_NOT_LESS_OR_EQUAL"),
    (0xD5, "DRIVER_PAGE_FAULT_IN_FREED_SPECIAL_POOL"),
    (0xE2, "MANUALLY_INITIATED_CRASH"),
    (0xEF, "CRITICAL_PROCESS_DIED"),
    (0xF7, "DRIVER_OVERRAN_STACK_BUFFER"),
    (0xFC, "ATTEMPTED_EXECUTE_OF_NOEXECUTE_MEMORY"),
    (0x10D, "WDF_VIOLATION"),
    (0x133, "DPC_WATCHDOG_VIOLATION"),
    (0x139, "KERNEL_SECURITY_CHECK_FAILURE"),
];

impl Bugcheck {
    /// Returns the code's name, if drivers can cause the bugcheck.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        let found = NAMES.iter().find(|(code, _)| *code == self.code);
        found.map(|(_, name)| *name)
    }

    /// Reads the data of QEMU's `GUEST_PANICKED` event. Windows reports its bugcheck through the
    /// Hyper-V interface (`hv-crash`); other guests report only the panic.
    #[must_use]
    pub fn of_event(data: &Value) -> Option<Self> {
        let info = &data["info"];
        if info["type"] != "hyper-v" {
            return None;
        }
        let number = |name: &str| info[name].as_u64();
        Some(Self {
            code: u32::try_from(number("arg1")?).ok()?,
            parameters: [number("arg2")?, number("arg3")?, number("arg4")?, number("arg5")?],
        })
    }

    /// Reads the header of a crash dump of 64-bit Windows. Returns `None` for other files.
    ///
    /// The header starts with `PAGEDU64`; the code is at 0x38 and the parameters are at 0x40
    /// (`DUMP_HEADER64`, according to the Volatility project and Rekall).
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn of_dump(path: &Path) -> io::Result<Option<Self>> {
        const LENGTH: usize = 0x60;
        let mut header = Vec::new();
        File::open(path)?
            .take(u64::try_from(LENGTH).unwrap_or(u64::MAX))
            .read_to_end(&mut header)?;
        if header.len() < LENGTH || !header.starts_with(b"PAGEDU64") {
            return Ok(None);
        }
        let four = |at: usize| {
            let bytes = header.get(at..at.checked_add(4)?)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        let eight = |at: usize| {
            let bytes = header.get(at..at.checked_add(8)?)?;
            bytes.try_into().ok().map(u64::from_le_bytes)
        };
        Ok(four(0x38).and_then(|code| {
            let parameters = [eight(0x40)?, eight(0x48)?, eight(0x50)?, eight(0x58)?];
            Some(Self { code, parameters })
        }))
    }
}

impl fmt::Display for Bugcheck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third, fourth] = self.parameters;
        match self.name() {
            Some(name) => write!(out, "bugcheck {:#X} {name}", self.code)?,
            None => write!(out, "bugcheck {:#X}", self.code)?,
        }
        write!(out, " ({first:#x}, {second:#x}, {third:#x}, {fourth:#x})")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_event_of_hyper_v_has_code_and_parameters() {
        // The example comes from GuestPanicInformationHyperV in QEMU's QAPI reference.
        let data = json!({ "action": "run", "info": {
            "type": "hyper-v", "arg1": 0xD1, "arg2": 0x1000, "arg3": 2, "arg4": 0,
            "arg5": 0xffff_f800_1234_5678_u64 } });
        let bugcheck = Bugcheck::of_event(&data).unwrap();
        assert_eq!(
            bugcheck.to_string(),
            "bugcheck 0xD1 DRIVER_IRQL_NOT_LESS_OR_EQUAL (0x1000, 0x2, 0x0, 0xfffff80012345678)"
        );
        assert_eq!(Bugcheck::of_event(&json!({ "action": "run" })), None);
    }

    #[test]
    fn the_header_of_a_dump_has_code_and_parameters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("MEMORY.DMP");
        let mut dump = b"PAGEDU64".to_vec();
        dump.resize(0x2000, 0);
        dump[0x38..0x3c].copy_from_slice(&0xDEAD_u32.to_le_bytes());
        for (number, at) in [0x40, 0x48, 0x50, 0x58].into_iter().enumerate() {
            dump[at] = u8::try_from(number).unwrap();
        }
        std::fs::write(&path, &dump).unwrap();
        let bugcheck = Bugcheck::of_dump(&path).unwrap().unwrap();
        assert_eq!(bugcheck.to_string(), "bugcheck 0xDEAD (0x0, 0x1, 0x2, 0x3)");
        // A 32-bit Windows dump, and a truncated dump.
        for other in [b"PAGEDUMP".to_vec(), dump[..0x50].to_vec()] {
            std::fs::write(&path, other).unwrap();
            assert_eq!(Bugcheck::of_dump(&path).unwrap(), None);
        }
        Bugcheck::of_dump(folder.path().join("none").as_path()).unwrap_err();
    }
}
