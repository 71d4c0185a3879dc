//! Writes import libraries, such as the WDK's ntoskrnl.lib, for the routines and variables that a
//! driver declares itself.
//!
//! A library is a COFF archive of short import objects, one for each name ([PE
//! format](https://learn.microsoft.com/windows/win32/debug/pe-format#import-library-format)).

use std::collections::BTreeMap;

use crate::{
    bindings::module,
    data::{Data, KERNEL},
};

/// The processor for which an import library is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x64.
    X64,
    /// Arm64.
    Arm64,
}

/// The kind of an exported item, as in the "Type" field of its import object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A routine; its name refers to a thunk that calls it.
    Code = 0,
    /// A variable; its name refers to the pointer to it in the import address table. wdm.h declares
    /// such a variable with one more level of indirection (`extern POBJECT_TYPE *PsProcessType`).
    Constant = 2,
}

/// Returns the names and contents of the import libraries for all modules whose exports the data
/// contains, and of the WDK's static libraries. The routines of a static library are imported as if
/// from a module with the library's name. Windows has no such module, but the driver can be linked,
/// and the stand-in kernel names the routine.
pub fn libraries(data: &Data, machine: Machine) -> Vec<(String, Vec<u8>)> {
    let mut modules: BTreeMap<&str, BTreeMap<&str, Kind>> = BTreeMap::new();
    let declared = data.functions.nt.iter().chain(&data.functions.feature);
    let declared = declared.map(|(name, one)| (name.as_str(), module(name, one)));
    let others = data.exports.functions.iter();
    let others =
        others.flat_map(|(module, names)| names.iter().map(|name| (name.as_str(), &**module)));
    for module in data.exports.functions.keys() {
        modules.insert(module, BTreeMap::new());
    }
    for (name, module) in declared.chain(others) {
        modules.entry(module).or_default().insert(name, Kind::Code);
    }
    let declared = data.statics.iter().filter(|(_, one)| one.from.as_deref() == Some(KERNEL));
    for name in declared.map(|(name, _)| name).chain(&data.exports.variables) {
        modules.entry(KERNEL).or_default().insert(name, Kind::Constant);
    }
    let libraries = modules.into_iter().filter_map(|(module, exports)| {
        // Some routines are only declared.
        let (stem, _) = module.rsplit_once('.')?;
        let name = format!("{}.lib", stem.to_lowercase());
        Some((name, archive(module, &exports, machine)))
    });
    libraries.collect()
}

/// Returns an archive of a module's import objects.
fn archive(module: &str, exports: &BTreeMap<&str, Kind>, machine: Machine) -> Vec<u8> {
    /// The size of an archive member's header.
    const HEADER: usize = 60;
    let objects: Vec<Vec<u8>> =
        exports.iter().map(|(name, kind)| object(module, name, *kind, machine)).collect();
    // Each object defines the pointer and the name. The second index is sorted by symbol name.
    let symbols = exports.keys().enumerate();
    let symbols =
        symbols.flat_map(|(at, name)| [(format!("__imp_{name}"), at), ((*name).to_owned(), at)]);
    let symbols: BTreeMap<String, usize> = symbols.collect();
    let names: Vec<u8> = symbols.keys().flat_map(|name| [name.as_bytes(), &[0]].concat()).collect();
    let first = 4 + 4 * symbols.len() + names.len();
    let second = 4 + 4 * objects.len() + 4 + 2 * symbols.len() + names.len();
    let mut offsets = Vec::new();
    let mut end = 8 + HEADER + even(first) + HEADER + even(second);
    for object in &objects {
        offsets.push(u32::try_from(end).unwrap_or(u32::MAX));
        end += HEADER + even(object.len());
    }
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut big = count(symbols.len()).to_be_bytes().to_vec();
    big.extend(symbols.values().filter_map(|at| offsets.get(*at)).flat_map(|at| at.to_be_bytes()));
    big.extend(&names);
    let mut little = count(objects.len()).to_le_bytes().to_vec();
    little.extend(offsets.iter().flat_map(|at| at.to_le_bytes()));
    little.extend(count(symbols.len()).to_le_bytes());
    let number = |at: &usize| u16::try_from(at + 1).unwrap_or(u16::MAX).to_le_bytes();
    little.extend(symbols.values().flat_map(number));
    little.extend(&names);
    let mut archive = b"!<arch>\n".to_vec();
    let member = format!("{module}/");
    let indices = [("/", &big), ("/", &little)];
    for (name, contents) in indices.into_iter().chain(objects.iter().map(|one| (&*member, one))) {
        let size = contents.len();
        archive
            .extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, "", "", 0).bytes());
        archive.extend(contents);
        archive.resize(even(archive.len()), b'\n');
    }
    archive
}

/// Returns a size including the padding of an archive member.
const fn even(size: usize) -> usize {
    size.next_multiple_of(2)
}

/// Returns a name's import object.
fn object(module: &str, name: &str, kind: Kind, machine: Machine) -> Vec<u8> {
    /// The "Name Type" field: the export's name is the symbol's name.
    const NAME: u16 = 1;
    let names = [name.as_bytes(), &[0], module.as_bytes(), &[0]].concat();
    let machine: u16 = match machine {
        Machine::X64 => 0x8664,
        Machine::Arm64 => 0xAA64,
    };
    let size = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let mut object = Vec::new();
    // The signature and the version.
    object.extend([0_u16, 0xFFFF, 0, machine].map(u16::to_le_bytes).concat());
    // The time, the size of the names, and the hint, which is an index in the export table.
    object.extend([0, size].map(u32::to_le_bytes).concat());
    object.extend([0, NAME << 2 | kind as u16].map(u16::to_le_bytes).concat());
    object.extend(names);
    object
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the number of the first member that defines a symbol according to the second index,
    /// and the members.
    fn look_up<'a>(archive: &'a [u8], symbol: &str) -> (Option<usize>, Vec<&'a [u8]>) {
        let mut members = Vec::new();
        let mut at = 8;
        while let Some(header) = archive.get(at..at + 60) {
            assert_eq!(&header[58..], b"`\n", "a header at {at}");
            let size = str::from_utf8(&header[48..58]).unwrap().trim().parse::<usize>().unwrap();
            members.push((at, &archive[at + 60..at + 60 + size]));
            at = even(at + 60 + size);
        }
        let number = |bytes: &[u8]| {
            bytes.iter().rev().fold(0_usize, |all, byte| all << 8 | usize::from(*byte))
        };
        let index = members[1].1;
        let count = number(&index[..4]);
        for (place, (at, _)) in members[2..].iter().enumerate() {
            assert_eq!(number(&index[4 + 4 * place..][..4]), *at);
        }
        let rest = &index[4 + 4 * count..];
        let symbols = number(&rest[..4]);
        let names = rest[4 + 2 * symbols..].split(|byte| *byte == 0);
        let found = names.take(symbols).position(|name| name == symbol.as_bytes());
        let found = found.map(|place| number(&rest[4 + 2 * place..][..2]) - 1);
        (found, members[2..].iter().map(|(_, member)| *member).collect())
    }

    #[test]
    fn the_kernels_library_has_routines_and_pointers_to_variables() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
        let all = libraries(&Data::read(&data).unwrap(), Machine::X64);
        let all: BTreeMap<String, Vec<u8>> = all.into_iter().collect();
        let kernel = &all["ntoskrnl.lib"];
        for (name, kind) in [
            // Declared by the headers, not declared, and from newer systems.
            ("IoGetCurrentProcess", Some(4)),
            ("PsGetProcessImageFileName", Some(4)),
            ("ExAcquirePushLockExclusiveEx", Some(4)),
            ("PsProcessType", Some(6)),
            ("PsLoadedModuleList", Some(6)),
            ("HalTranslateBusAddress", None),
            ("NoSuchRoutine", None),
        ] {
            for symbol in [name.to_owned(), format!("__imp_{name}")] {
                let (found, members) = look_up(kernel, &symbol);
                let expected = [name.as_bytes(), b"\0ntoskrnl.exe\0"].concat();
                let found = found.map(|number| members[number]);
                assert_eq!(found.map(|member| member[18]), kind, "{symbol}");
                assert!(found.is_none_or(|member| member[20..] == expected), "{symbol}");
            }
        }
        for (library, name, module) in [
            ("hal.lib", "HalTranslateBusAddress", "HAL.dll"),
            ("fltmgr.lib", "FltRegisterFilter", "FLTMGR.SYS"),
            ("fwpkclnt.lib", "FwpsCalloutRegister1", "fwpkclnt.sys"),
            ("ndis.lib", "NdisMRegisterMiniportDriver", "NDIS.SYS"),
            ("netio.lib", "WskRegister", "NETIO.SYS"),
            ("ksecdd.lib", "BCryptOpenAlgorithmProvider", "ksecdd.sys"),
            ("cng.lib", "BCryptHash", "cng.sys"),
            ("portcls.lib", "PcAddAdapterDevice", "portcls.sys"),
            ("storport.lib", "StorPortInitialize", "storport.sys"),
            ("wdmsec.lib", "WdmlibIoCreateDeviceSecure", "wdmsec.lib"),
            ("usbdex.lib", "USBD_CreateHandle", "usbdex.lib"),
        ] {
            let (found, members) = look_up(&all[library], name);
            let expected = [name, "\0", module, "\0"].concat();
            assert_eq!(members[found.unwrap()][20..], *expected.as_bytes(), "{library}");
        }
        for empty in ["uuid.lib", "bufferoverflowfastfailk.lib", "wdfdriverentry.lib"] {
            assert!(look_up(&all[empty], "DriverEntry").1.is_empty(), "{empty}");
        }
    }
}
