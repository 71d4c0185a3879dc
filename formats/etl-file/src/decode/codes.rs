//! The names of status codes (ETL-10.10).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use etw_wire::NtStatus;

/// The upper half of an NTSTATUS that contains a Win32 error (`FACILITY_NTWIN32`).
const NTSTATUS_OF_WIN32: u32 = 0xC007;
/// The upper half of an HRESULT that contains a Win32 error (`FACILITY_WIN32`).
const HRESULT_OF_WIN32: u32 = 0x8007;
/// The flag of an HRESULT that contains an NTSTATUS (`FACILITY_NT_BIT`).
const NT_BIT: u32 = 0x1000_0000;

/// Names by code.
type Names = HashMap<u32, &'static str>;

/// The names of each kind of code.
#[derive(Default)]
struct Tables {
    ntstatus: Names,
    win32: Names,
    hresult: Names,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    // A test checks that no word is malformed.
    let (tables, _) = parse(include_str!("codes.txt"));
    tables
});

/// Reads the tables. Returns the malformed words, which are skipped.
fn parse(text: &'static str) -> (Tables, Vec<&'static str>) {
    let mut tables = Tables::default();
    let mut malformed = Vec::new();
    let mut kind = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if !line.starts_with(' ') {
            kind = line;
            continue;
        }
        for word in line.split_ascii_whitespace() {
            let names = match kind {
                "ntstatus" => Some(&mut tables.ntstatus),
                "win32" => Some(&mut tables.win32),
                "hresult" => Some(&mut tables.hresult),
                _ => None,
            };
            let code = word.split_once(':').and_then(|(code, name)| {
                let code = u32::from_str_radix(code, 16).ok()?;
                Some((code, name))
            });
            match (names, code) {
                (Some(names), Some((code, name))) if !names.contains_key(&code) => {
                    names.insert(code, name);
                }
                _ => malformed.push(word),
            }
        }
    }
    (tables, malformed)
}

/// Returns the name of an NTSTATUS.
pub fn ntstatus(code: u32) -> Option<Cow<'static, str>> {
    let known = TABLES.ntstatus.get(&code).copied();
    if let Some(name) = known.or_else(|| NtStatus::from_bits(code).name()) {
        return Some(name.into());
    }
    let error = error_in(code, NTSTATUS_OF_WIN32)?;
    Some(format!("NTSTATUS_FROM_WIN32({error})").into())
}

/// Returns the name of a Win32 error, which may be an HRESULT.
pub fn win32(code: u32) -> Option<Cow<'static, str>> {
    let known = TABLES.win32.get(&code).map(|name| (*name).into());
    known.or_else(|| hresult(code).filter(|_| code.cast_signed() < 0))
}

/// Returns the name of an HRESULT.
pub fn hresult(code: u32) -> Option<Cow<'static, str>> {
    if let Some(name) = TABLES.hresult.get(&code) {
        return Some((*name).into());
    }
    if let Some(error) = error_in(code, HRESULT_OF_WIN32) {
        return Some(format!("HRESULT_FROM_WIN32({error})").into());
    }
    let status = ntstatus(code & !NT_BIT).filter(|_| code & NT_BIT != 0)?;
    Some(format!("HRESULT_FROM_NT({status})").into())
}

/// Returns the name of the Win32 error in a code with this upper half.
fn error_in(code: u32, upper: u32) -> Option<&'static str> {
    let error = code & 0xFFFF;
    TABLES.win32.get(&error).copied().filter(|_| code >> 16 == upper && error != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_and_names_a_code_of_its_kind() {
        let (tables, malformed) = parse(include_str!("codes.txt"));
        assert_eq!(malformed, [""; 0]);
        for names in [&tables.ntstatus, &tables.win32, &tables.hresult] {
            assert!(names.len() > 500);
            let plain =
                |name: &str| name.bytes().all(|one| one == b'_' || one.is_ascii_alphanumeric());
            assert!(names.values().all(|name| plain(name)));
        }
        for status in NtStatus::NAMED {
            let (known, name) = (tables.ntstatus.get(&status.bits()), status.name());
            assert!(known.is_none_or(|known| Some(*known) == name), "{known:?} {name:?}");
        }
        let (_, malformed) = parse("ntstatus\n  5:A 5:B x:C D\nother\n  6:E");
        assert_eq!(malformed, ["5:B", "x:C", "D", "6:E"]);
    }

    #[test]
    fn a_code_has_the_name_of_its_kind() {
        let all = |code| [ntstatus, win32, hresult].map(|name| name(code).unwrap_or_default());
        assert_eq!(all(0), ["STATUS_SUCCESS", "ERROR_SUCCESS", "S_OK"]);
        assert_eq!(all(5), ["", "ERROR_ACCESS_DENIED", ""]);
        assert_eq!(all(0xC000_0022), ["STATUS_ACCESS_DENIED", "", ""]);
        assert_eq!(all(0xC020_0203), ["STATUS_WDF_PAUSED", "", ""]);
        assert_eq!(all(0x8007_0005), ["", "E_ACCESSDENIED", "E_ACCESSDENIED"]);
        let of_win32 = "HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)";
        assert_eq!(all(0x8007_0002)[1..], [of_win32; 2]);
        assert_eq!(all(0xC007_0002)[0], "NTSTATUS_FROM_WIN32(ERROR_FILE_NOT_FOUND)");
        assert_eq!(all(0xD000_0022)[1..], ["HRESULT_FROM_NT(STATUS_ACCESS_DENIED)"; 2]);
        assert_eq!(all(0xDDCD), [""; 3]);
        assert_eq!(all(0x8007_0000), [""; 3]);
    }
}
