//! The guest that stands in for Windows: a Linux kernel and busybox from Debian packages.
//!
//! `cargo xtask test` downloads them to `target/guest`; `WDK_ETW_GUEST` can name another folder
//! with `vmlinuz`, `busybox` and `modules/*.ko`.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use etw_test_support::root;

/// The kernel modules in loading order; some kernels lack some of them.
const MODULES: [&str; 23] = [
    "crct10dif_common", "crct10dif_generic", "crc-t10dif", "crc64", "crc64-rocksoft", "t10-pi",
    "scsi_common", "scsi_mod", "libata", "libahci", "ahci", "sd_mod", "cdrom", "sr_mod",
    "nls_cp437", "nls_ascii", "nls_iso8859-1", "fat", "vfat", "isofs", "pvpanic", "pvpanic-pci",
    "pvpanic_pci",
];

/// Returns the folder that contains the kernel and busybox.
fn folder() -> PathBuf {
    let folder =
        env::var_os("WDK_ETW_GUEST").map_or_else(|| root().join("target/guest"), PathBuf::from);
    assert!(
        folder.join("vmlinuz").exists(),
        "the stand-in guest's kernel {} does not exist: run `cargo xtask doctor --install`, or set \
         WDK_ETW_GUEST",
        folder.join("vmlinuz").display()
    );
    folder
}

/// Returns the kernel: uncompressed if it is there, since uncompressing takes most of a start. UEFI
/// firmware starts only compressed kernels.
pub fn kernel(is_uefi: bool) -> PathBuf {
    let plain = folder().join("vmlinux");
    if plain.exists() && !is_uefi { plain } else { folder().join("vmlinuz") }
}

/// Writes the initial file system for the kernel.
pub fn write_initramfs(to: &Path) {
    let folder = folder();
    let mut files: BTreeMap<String, (u32, Vec<u8>)> = BTreeMap::new();
    let busybox = fs::read(folder.join("busybox")).unwrap();
    for name in ["bin", "dev", "modules"] {
        files.insert(name.to_owned(), (0o040_755, Vec::new()));
    }
    files.insert("bin/busybox".to_owned(), (0o100_755, busybox));
    files.insert("init".to_owned(), (0o100_755, include_bytes!("init.sh").to_vec()));
    for name in MODULES {
        if let Ok(module) = fs::read(folder.join(format!("modules/{name}.ko"))) {
            files.insert(format!("modules/{name}.ko"), (0o100_644, module));
        }
    }
    let order = MODULES.join("\n").into_bytes();
    files.insert("modules/order".to_owned(), (0o100_644, order));
    let mut archive = Vec::new();
    for (number, (name, (mode, contents))) in files.iter().enumerate() {
        entry(&mut archive, number + 1, name, *mode, contents);
    }
    entry(&mut archive, 0, "TRAILER!!!", 0, &[]);
    fs::write(to, archive).unwrap();
}

/// Appends an entry to a cpio archive in the format that the kernel reads ("newc").
fn entry(archive: &mut Vec<u8>, number: usize, name: &str, mode: u32, contents: &[u8]) {
    let pad = |archive: &mut Vec<u8>| archive.resize(archive.len().next_multiple_of(4), 0);
    let header = format!(
        "070701{number:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
        0,
        0,
        1,
        0,
        contents.len(),
        0,
        0,
        0,
        0,
        name.len() + 1,
        0
    );
    archive.extend(header.into_bytes());
    archive.extend(name.bytes());
    archive.push(0);
    pad(archive);
    archive.extend(contents);
    pad(archive);
}
