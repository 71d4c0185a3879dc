//! Tests that the release builds of the drivers cannot panic.
//!
//! The compiler keeps a panicking function only if the function can be called. The test therefore
//! disassembles the image and lists the functions that call, or take the address of, a function in
//! the panic machinery.

use crate::common;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, OpKind, Register};
use object::{Object as _, read::pe::PeFile64};
use pdb_addr2line::pdb::{FallibleIterator as _, PDB, SymbolData};

/// The names of functions in the panic machinery. The panic handler is in wdk-panic and calls
/// `KeBugCheckEx`.
const MACHINERY: &[&str] = &[
    "core::panicking", "core::option::unwrap_failed", "core::option::expect_failed",
    "core::result::unwrap_failed", "core::slice::index", "core::str::slice_error_fail",
    "core::cell::panic_already", "alloc::raw_vec::handle_error",
    "alloc::raw_vec::capacity_overflow", "alloc::alloc::handle_alloc_error", "rust_begin_unwind",
    "wdk_panic",
];

/// Returns the name and length of each function of an image, by address.
fn functions(pdb: &Path) -> BTreeMap<u64, (String, u64)> {
    let mut pdb = PDB::open(File::open(pdb).unwrap()).unwrap();
    let addresses = pdb.address_map().unwrap();
    let information = pdb.debug_information().unwrap();
    let mut found = BTreeMap::new();
    let mut modules = information.modules().unwrap();
    while let Some(module) = modules.next().unwrap() {
        let Some(info) = pdb.module_info(&module).unwrap() else {
            continue;
        };
        let mut symbols = info.symbols().unwrap();
        while let Some(symbol) = symbols.next().unwrap() {
            if let Ok(SymbolData::Procedure(procedure)) = symbol.parse()
                && let Some(address) = procedure.offset.to_rva(&addresses)
            {
                let name = procedure.name.to_string().into_owned();
                found.insert(u64::from(address.0), (name, u64::from(procedure.len)));
            }
        }
    }
    found
}

fn is_machinery(name: &str) -> bool {
    MACHINERY.iter().any(|part| name.contains(part))
}

/// A reference to the panic machinery from a function outside it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    caller: String,
    callee: String,
    /// The source line that panics, if the call passes a location.
    source: Option<String>,
}

impl Reference {
    /// Returns whether the reference is the bounds check in Microsoft's macro for framework calls:
    /// it compares the function's index with the number of functions. The check cannot fail,
    /// because the framework's loader rejects a driver that needs a function that the framework
    /// lacks.
    fn is_the_frameworks_table(&self) -> bool {
        self.callee.ends_with("panic_bounds_check")
            && self.source.as_deref().is_some_and(|source| {
                // The test drivers use the macro through their own macro.
                source.starts_with("call_unsafe_wdf_function_binding!") || source.contains("wdf!(")
            })
    }
}

/// An image, with its bytes at their offsets in memory.
struct Image<'a> {
    bytes: &'a [u8],
    pe: PeFile64<'a>,
}

impl Image<'_> {
    fn at(&self, address: u64, length: u64) -> Option<&[u8]> {
        let sections = self.pe.section_table();
        let data = sections.pe_data_at(self.bytes, u32::try_from(address).ok()?)?;
        data.get(..usize::try_from(length).ok()?)
    }

    fn number(&self, address: u64, length: u64) -> Option<u64> {
        let mut number = [0; 8];
        let bytes = self.at(address, length)?;
        number[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }

    /// Returns the source line of a `core::panic::Location`, which contains the file's name
    /// (address and length), line and column.
    fn source(&self, location: u64) -> Option<String> {
        let base = self.pe.relative_address_base();
        let name = self.number(location, 8)?.checked_sub(base)?;
        let length = self.number(location + 8, 8)?;
        let name = str::from_utf8(self.at(name, length)?).ok()?;
        let line = usize::try_from(self.number(location + 16, 4)?).ok()?;
        let column = usize::try_from(self.number(location + 20, 4)?).ok()?;
        let text = fs::read_to_string(source_file(name)?).ok()?;
        let line = text.lines().nth(line.checked_sub(1)?)?;
        Some(line.chars().skip(column.checked_sub(1)?).collect())
    }
}

/// Returns the source file for a path in an image, which is relative to the workspace's root, or
/// starts with `cargo/` for a published package.
fn source_file(name: &str) -> Option<PathBuf> {
    let Some(packaged) = name.strip_prefix("cargo/") else {
        return Some(etw_test_support::root().join(name));
    };
    let home = env::var_os("CARGO_HOME")
        .map_or_else(|| env::home_dir().unwrap_or_default().join(".cargo"), PathBuf::from);
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    registries.flatten().map(|registry| registry.path().join(packaged)).find(|path| path.exists())
}

/// Returns the references to the panic machinery from outside it.
fn references(driver: &str) -> BTreeSet<Reference> {
    let path = common::driver("release", &format!("{driver}.sys"));
    let functions = functions(&path.with_extension("pdb"));
    assert!(functions.len() > 10, "{driver}: {} functions", functions.len());
    let bytes = fs::read(&path).unwrap();
    let image = Image { bytes: &bytes, pe: PeFile64::parse(&*bytes).unwrap() };
    let mut found = BTreeSet::new();
    for (address, (name, length)) in &functions {
        if is_machinery(name) {
            continue;
        }
        let code = image.at(*address, *length).unwrap();
        // The third argument is where panic_bounds_check receives its location.
        let mut location = None;
        for instruction in &mut Decoder::with_ip(64, code, *address, DecoderOptions::NONE) {
            let loads = instruction.is_ip_rel_memory_operand();
            if loads
                && instruction.code() == Code::Lea_r64_m
                && instruction.op0_register() == Register::R8
            {
                location = Some(instruction.ip_rel_memory_address());
                continue;
            }
            let target = match instruction.flow_control() {
                FlowControl::Call
                | FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch
                    if instruction.op0_kind() == OpKind::NearBranch64 =>
                {
                    instruction.near_branch_target()
                }
                _ if loads => instruction.ip_rel_memory_address(),
                _ => continue,
            };
            if let Some((callee, _)) = functions.get(&target)
                && is_machinery(callee)
            {
                found.insert(Reference {
                    caller: name.clone(),
                    callee: callee.clone(),
                    source: location.and_then(|location| image.source(location)),
                });
            }
        }
    }
    found
}

#[test]
fn no_shipped_driver_can_panic() {
    for driver in ["etw_sample_driver", "etw_minimal_driver", "etw_probes_driver"] {
        let found = references(driver);
        let (harmless, rest): (Vec<_>, Vec<_>) =
            found.iter().partition(|one| one.is_the_frameworks_table());
        assert!(rest.is_empty(), "{driver} can panic: {rest:#?}");
        // The test must find the references that are known to exist.
        assert!(!harmless.is_empty(), "{driver}");
    }
}

/// The references to the panic machinery, in a driver with the facades, that are unreachable or not
/// in the facades. Each has the caller, the callee and the reason. They are in third-party code,
/// and neither the facades nor the compiler can remove them.
const OF_OTHERS: [(&str, &str, &str); 7] = [
    (
        "etw_facades_driver::frames::find_frame",
        "core::",
        "the driver calls a third-party crate there, which checks indices",
    ),
    (
        "tracing_core::callsite::DefaultCallsite::register",
        "core::panicking::assert_failed",
        "a callsite is registered twice: only the thread that changed its state registers it",
    ),
    (
        "tracing_core::callsite::Callsites::rebuild_interest",
        "core::panicking::panic",
        "the creation of an empty list has panicked",
    ),
    (
        "wdk_etw_tracing::fields::",
        "core::panicking::panic_bounds_check",
        "the name of a field, whose index `tracing-core` took from the same list of names",
    ),
    (
        "wdk_etw_tracing::install::Installation::install",
        "alloc::alloc::handle_alloc_error",
        "the allocator had memory immediately before; the documentation of `install` says so",
    ),
    (
        "alloc::alloc::__alloc_error_handler::__rdl_alloc_error_handler",
        "core::panicking::panic",
        "the only caller is the one above",
    ),
    (
        "wdk_etw_tracing::install::Installation::remove",
        "core::panicking::panic",
        "the subscriber has more references than memory has bytes",
    ),
];

/// Writing records, spans and events cannot panic, although `log`, `tracing-core` and the core
/// library's formatting are in the image.
#[test]
fn no_driver_with_facades_can_panic_in_them() {
    let found = references("etw_facades_driver");
    let is_of = |one: &Reference, (caller, callee, _): &(&str, &str, &str)| {
        one.caller.starts_with(caller) && one.callee.starts_with(callee)
    };
    let rest: Vec<_> = found
        .iter()
        .filter(|one| !one.is_the_frameworks_table())
        .filter(|one| !OF_OTHERS.iter().any(|known| is_of(one, known)))
        .collect();
    assert!(rest.is_empty(), "{rest:#?}");
    // No entry in the list is outdated.
    for known in &OF_OTHERS {
        assert!(found.iter().any(|one| is_of(one, known)), "{known:?}");
    }
}

/// The rules driver panics on purpose, which proves that the test can detect a panic.
#[test]
fn a_driver_that_can_panic_is_detected() {
    let found = references("etw_rules_driver");
    // The two functions have the same code, which the linker keeps only once, under either name.
    let is_panic = |one: &Reference| {
        one.callee.contains("::panic_fmt") || one.callee.contains("::panic_nounwind_fmt")
    };
    assert!(
        found.iter().any(|one| is_panic(one) && one.caller.contains("etw_rules_driver::SERVICES")),
        "{found:?}"
    );
}
