//! Identifies the stack frames in the driver author's own code.
//!
//! A diagnostic names the innermost of these frames. A driver's crate may have any name and path,
//! so this module recognizes the other frames instead: known libraries, and the code that macros of
//! known libraries generate in the author's crate.

use std::path::Path;

/// Crates whose functions are never the author's. The functions that `wdk_macros` and `wdk_etw_macros`
/// generate are in the crates that use the macros.
const CRATES: [&str; 15] = [
    "__rustc", "alloc", "compiler_builtins", "core", "etw_wire", "panic_abort", "panic_unwind",
    "std", "wdk", "wdk_alloc", "wdk_etw", "wdk_etw_log", "wdk_etw_tracing", "wdk_panic", "wdk_sys",
];

/// Functions outside any crate that linkers, compilers and the framework's library add to a driver.
const FUNCTIONS: [&str; 19] = [
    "FxDriverUnloadCommon", "FxStubBindClasses", "FxStubDriverMiniportUnload",
    "FxStubDriverUnloadCommon", "FxStubUnbindClasses", "GsDriverEntry", "_chkstk", "bcmp",
    "memcmp", "memcpy", "memmove", "memset", "rust_begin_unwind", "rust_eh_personality",
    "rust_panic", "strlen", "wcslen", "wcscmp", "wcsncpy",
];

/// Prefixes of the names of such functions.
const PREFIXES: [&str; 10] = [
    "FxDriver", "__GSHandler", "__C_specific", "__chkstk", "__rdl_", "__report_", "__rg_",
    "__rust_", "__rustc", "__security_",
];

/// A stack frame, with its source position in the PDB. Where functions are inlined, several frames have
/// the same instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The function, such as `my_driver::queue::read`, without its parameters.
    pub function: String,
    /// The file's path in the PDB.
    pub file: Option<String>,
    /// The line number, from 1.
    pub line: Option<u32>,
}

/// Returns the index of the author's innermost frame. `frames` starts with the innermost frame.
/// Frames with a known line are preferred, then frames with a known file. A frame without either
/// may belong to a library.
pub fn culprit(frames: &[Source]) -> Option<usize> {
    let own: Vec<bool> = own(frames);
    let place = |wanted: &dyn Fn(&Source) -> bool| {
        frames.iter().zip(&own).position(|(frame, own)| *own && wanted(frame))
    };
    place(&|frame| frame.file.is_some() && frame.line.is_some_and(|line| line != 0))
        .or_else(|| place(&|frame| frame.file.is_some()))
        .or_else(|| place(&|frame| !frame.function.is_empty()))
}

/// Returns the number of frames from the first to the outermost frame of the panic handler, or 0 if
/// the panic handler has no frame. All these frames belong to the handler, even those without
/// names.
pub fn panic_frames(frames: &[Source]) -> usize {
    let is_handler = |frame: &Source| {
        let name = without_parameters(&frame.function);
        name.rsplit("::").next() == Some("rust_begin_unwind") || name.starts_with("wdk_panic::")
    };
    let last = frames.iter().rposition(is_handler);
    last.map_or(0, |last| last + 1)
}

/// Returns, for each frame, whether it is in the author's code.
fn own(frames: &[Source]) -> Vec<bool> {
    let mut generated = Generated::default();
    frames
        .iter()
        .map(|frame| {
            let name = without_parameters(&frame.function);
            // `generated` must see every frame in turn, because it remembers the previous frames.
            let is_generated = generated.contains(&name) || is_in_a_macro(&name);
            !is_generated && !is_library(&name, frame.file.as_deref())
        })
        .collect()
}

/// The functions that `#[wdk_etw::provider]` and `event!` generate. They are in the author's crate,
/// and their line is the line of the macro call.
///
/// For each event, a provider's module `p` has a function `p::name`. Its implementation is
/// `p::name::__wdk_etw_call`, which calls `p::name::write`, which calls `p::__write_7`. `p::register`
/// and `p::unregister` each call a nested function.
#[derive(Default)]
struct Generated {
    /// The module of the most recent frame that was a writer.
    module: Option<String>,
    /// The name of the function that is also generated if its frame is next.
    next: Option<String>,
}

impl Generated {
    /// Returns whether a function is generated. The functions must be passed in order, from the
    /// innermost outward.
    fn contains(&mut self, name: &str) -> bool {
        let (parent, last) = name.rsplit_once("::").unwrap_or(("", name));
        let (module, next) = (self.module.take(), self.next.take());
        if last.starts_with("__write_") {
            self.module = Some(parent.to_owned());
            return true;
        }
        if last == "__wdk_etw_provider" {
            self.next = Some(parent.to_owned());
            return true;
        }
        let is_write = last == "write"
            && module.is_some()
            && parent.rsplit_once("::").map(|(module, _)| module) == module.as_deref();
        if is_write {
            self.next = Some(parent.to_owned());
        }
        is_write || last.starts_with("__wdk_etw_") || next.as_deref() == Some(name)
    }
}

/// Returns whether a function is in the module that `wdk_macros` generates.
fn is_in_a_macro(name: &str) -> bool {
    name.contains("::private__::")
}

/// Returns whether a function belongs to a library, judging by its name or file.
fn is_library(name: &str, file: Option<&str>) -> bool {
    if crate_of(name).is_some_and(|name| CRATES.contains(&name)) {
        return true;
    }
    // An allocator function's path starts with the static that has the attribute, so only the
    // path's last segment is compared.
    let last = name.rsplit("::").next().unwrap_or(name);
    FUNCTIONS.contains(&name)
        || PREFIXES.iter().any(|prefix| last.starts_with(prefix))
        || file.is_some_and(is_foreign)
}

/// Returns the crate of a function, which is the first segment of its path: `core` for
/// `enum2$<core::option::Option<u8> >::map`.
fn crate_of(name: &str) -> Option<&str> {
    let (first, _) = name.split_once("::")?;
    first
        .rsplit(|character: char| !character.is_alphanumeric() && character != '_')
        .next()
        .filter(|name| !name.is_empty())
}

/// Returns a function's name without generic arguments, unless the name starts with them.
fn without_parameters(name: &str) -> String {
    let starts_with_path = match (name.find('<'), name.find(':')) {
        (Some(arguments), Some(path)) => path < arguments,
        (_, path) => path.is_some(),
    };
    if !starts_with_path {
        return name.to_owned();
    }
    let mut depth = 0_usize;
    name.chars()
        .filter(|character| {
            match character {
                '<' => depth += 1,
                '>' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

/// Returns whether a file belongs to the Rust toolchain, to the WDK, or to a package from a
/// registry or a repository other than the author's.
pub fn is_foreign(file: &str) -> bool {
    is_in_a_foreign_folder(file) || is_vendored(file)
}

/// Returns whether a file is in a package that `cargo vendor` copied. Such a package has a checksum
/// file.
fn is_vendored(file: &str) -> bool {
    /// The folder that reproducible builds record instead of the build folder.
    const BUILT_IN: &str = r"C:\src\";
    let inside = file.strip_prefix(BUILT_IN).map(|file| file.replace('\\', "/"));
    let file = inside.as_deref().unwrap_or(file);
    let mut folders = Path::new(file).ancestors().skip(1);
    folders.any(|folder| folder.join(".cargo-checksum.json").is_file())
}

fn is_in_a_foreign_folder(file: &str) -> bool {
    /// The folders that `cargo xtask build` and `cargo etw build` record instead of the host's folders.
    const WRITTEN: [&str; 2] = ["c:/src/cargo/", "c:/src/rust/"];
    /// Folder names that no author uses.
    const INSIDE: [&str; 3] = ["/rustc/", "/rustlib/src/rust/", "/windows kits/"];
    /// Cargo's folders. Inside each, a folder's name ends with a hash of 16 digits.
    const HASHED: [&str; 3] = ["/registry/src/", "/git/checkouts/", "/build/"];
    let file = file.replace('\\', "/").to_lowercase();
    WRITTEN.iter().any(|folder| file.starts_with(folder))
        || INSIDE.iter().any(|folder| file.contains(folder))
        || HASHED.iter().any(|folder| {
            let after = file.split_once(folder).map(|(_, after)| after);
            let inside = after.and_then(|after| after.split('/').next());
            let hash = inside.and_then(|name| name.rsplit_once('-'));
            hash.is_some_and(|(package, hash)| {
                let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
                // If another package's build script generated the file, the file may be the
                // author's.
                is_hash && (*folder != "/build/" || package == "wdk-sys")
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(function: &str, file: &str) -> Source {
        Source {
            function: function.to_owned(),
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: (!file.is_empty()).then_some(7),
        }
    }

    /// The functions and their files, innermost first, and the index of the culprit.
    type Row = (&'static [(&'static str, &'static str)], Option<usize>);

    const ROWS: &[Row] = &[
        (
            &[
                ("core::ptr::read_volatile", r"C:\src\rust\library\core\src\ptr\mod.rs"),
                ("my_driver::queue::read", r"C:\src\src\queue.rs"),
            ],
            Some(1),
        ),
        // The author's crate can have any name and path.
        (
            &[
                ("wdk_sys::ntddk::x", "/home/a/wdk-sys/src/lib.rs"),
                (
                    "wdk::go",
                    "/home/me/.cargo/registry/src/index-1949cf8c6b5b557f/wdk-0.5.0/src/x.rs",
                ),
                ("registry::src::run", "/home/me/registry/src/lib.rs"),
            ],
            Some(2),
        ),
        // Libraries from a registry, and their generic functions in the author's crate.
        (
            &[
                (
                    "spin::lock",
                    "/home/me/.cargo/registry/src/index-0123456789abcdef/spin-1/src/x.rs",
                ),
                ("enum2$<core::option::Option<u8> >::map", "/rustc/0a/library/core/src/option.rs"),
                ("alloc::vec::Vec<my_driver::Thing>::push", ""),
                ("__rustc::__rust_alloc", ""),
                ("my_driver::_::__rg_alloc", "/home/me/d/src/lib.rs"),
                ("my_driver::start", "/home/me/d/src/lib.rs"),
            ],
            Some(5),
        ),
        // The framework's macro.
        (
            &[
                (
                    "my_driver::device::create::private__::wdf_device_create_impl",
                    "/d/src/device.rs",
                ),
                ("my_driver::device::create", "/d/src/device.rs"),
            ],
            Some(1),
        ),
        // A declared event.
        (
            &[
                ("wdk_etw::write::Provider::hand_over", "/d/etw/src/write.rs"),
                ("my_driver::trace::etw::__write_7_with_care<wdk_etw::Plain>", "/d/src/trace.rs"),
                ("my_driver::trace::etw::started::write<wdk_etw::Plain>", "/d/src/trace.rs"),
                ("my_driver::trace::etw::started::__wdk_etw_call", "/d/src/trace.rs"),
                ("my_driver::queue::write", "/d/src/queue.rs"),
            ],
            Some(4),
        ),
        // An event at its call site, and an author's function that has the same name as a function of a
        // provider.
        (
            &[
                ("my_driver::queue::write::__wdk_etw_write", "/d/src/queue.rs"),
                ("my_driver::queue::write", "/d/src/queue.rs"),
            ],
            Some(1),
        ),
        // A registration.
        (
            &[
                ("wdk_etw::provider::Provider::register", "/d/etw/src/provider.rs"),
                ("my_driver::trace::etw::register::__wdk_etw_provider", "/d/src/trace.rs"),
                ("my_driver::trace::etw::register", "/d/src/trace.rs"),
                ("my_driver::trace::register", "/d/src/trace.rs"),
            ],
            Some(3),
        ),
        // C code, and an entry point outside any crate.
        (
            &[
                ("memcpy", ""),
                ("FxDriverEntryWorker", r"D:\stub\stub.cpp"),
                ("EvtIoRead", r"C:\work\queue.c"),
            ],
            Some(2),
        ),
        (&[("core::panicking::panic", ""), ("__chkstk", "")], None),
    ];

    #[test]
    fn the_innermost_frame_of_the_author_is_the_culprit() {
        for (frames, expected) in ROWS {
            let sources: Vec<_> = frames.iter().map(|(name, file)| source(name, file)).collect();
            assert_eq!(culprit(&sources), *expected, "{frames:#?}");
        }
    }

    #[test]
    fn a_frame_with_a_line_is_preferred() {
        let frames = [source("DriverEntry", ""), source("a::b", "/d/src/a.rs")];
        assert_eq!(culprit(&frames), Some(1));
        assert_eq!(culprit(&frames[..1]), Some(0));
    }

    #[test]
    fn a_frame_about_which_nothing_is_known_is_not_the_authors() {
        let in_a_file = Source { line: None, ..source("", "/d/src/a.rs") };
        let frames = [source("", ""), source("EvtIoRead", ""), in_a_file];
        assert_eq!(culprit(&frames), Some(2));
        assert_eq!(culprit(&frames[..2]), Some(1));
        assert_eq!(culprit(&frames[..1]), None);
    }

    #[test]
    fn the_frames_of_a_panic_end_with_the_handler() {
        let frames = [
            source("", ""),
            source("__rustc::rust_begin_unwind", ""),
            source("core::panicking::panic_fmt", ""),
        ];
        assert_eq!(panic_frames(&frames), 2);
        assert_eq!(panic_frames(&frames[2..]), 0);
    }

    #[test]
    fn a_vendored_crate_is_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let vendored = folder.path().join("vendor/spin-1.0");
        std::fs::create_dir_all(vendored.join("src")).unwrap();
        std::fs::write(vendored.join(".cargo-checksum.json"), "{}").unwrap();
        let file = vendored.join("src/mutex.rs");
        assert!(is_foreign(file.to_str().unwrap()));
        let own = folder.path().join("vendor/src/mutex.rs");
        assert!(!is_foreign(own.to_str().unwrap()));
    }
}
