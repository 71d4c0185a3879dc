//! The disk on which a guest stores its results: a raw image with one FAT32 partition.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use fatfs::{Dir, FatType, FileSystem, FormatVolumeOptions, FsOptions};
use fscommon::{BufStream, StreamSlice};

use crate::error::{Error, Result, file};

/// The file that identifies the disk to the guest, because drive letters and disk order change
/// between boots.
pub const TAG: &str = "wdk-etw-results.tag";

/// The partition type: FAT32 with sector addressing.
const FAT32_LBA: u8 = 0x0C;
const SECTOR: u64 = 512;
/// The partition's first sector, at 1 MiB.
const FIRST_SECTOR: u64 = 2048;
/// The minimum disk size for FAT32 with its smallest clusters, plus a margin.
const MIN_BYTES: u64 = 40 << 20;
/// The maximum disk size that a partition table can describe.
const MAX_BYTES: u64 = 1 << 40;

type Partition = BufStream<StreamSlice<File>>;

/// A file that could not be copied from a results disk, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCopied {
    /// The path on the disk.
    pub path: String,
    /// The reason.
    pub reason: String,
}

fn failure<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl Fn(&dyn std::fmt::Display) -> Error + 'a {
    move |reason| Error::Disk { action, path: path.to_owned(), reason: reason.to_string() }
}

/// Creates a disk with the tag file. The image is sparse: it uses only as much space as has been
/// written.
///
/// # Errors
///
/// Fails with [`Error::Disk`] if the size is not valid for FAT32, or if the file system cannot be
/// created.
pub fn create(path: &Path, bytes: u64) -> Result<()> {
    let fail = failure("make", path);
    if !(MIN_BYTES..=MAX_BYTES).contains(&bytes) {
        let reason = format!(
            "{bytes} bytes are not between {} MiB and {} GiB",
            MIN_BYTES >> 20,
            MAX_BYTES >> 30
        );
        return Err(fail(&reason));
    }
    let bytes = bytes / SECTOR * SECTOR;
    let mut options = OpenOptions::new();
    let mut image = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(file("create", path))?;
    image.set_len(bytes).map_err(file("resize", path))?;
    let sectors = u32::try_from(bytes / SECTOR - FIRST_SECTOR).map_err(|error| fail(&error))?;
    image.write_all(&boot_record(sectors)).map_err(file("write", path))?;
    let mut partition = partition(image, path)?;
    let options = FormatVolumeOptions::new().fat_type(FatType::Fat32).volume_label(*b"WDK-ETW    ");
    fatfs::format_volume(&mut partition, options).map_err(|error| fail(&error))?;
    let file_system = FileSystem::new(partition, FsOptions::new()).map_err(|error| fail(&error))?;
    let tag = file_system.root_dir().create_file(TAG);
    tag.and_then(|mut tag| tag.write_all(b"results of cargo etw vm\r\n"))
        .map_err(|error| fail(&error))?;
    file_system.unmount().map_err(|error| fail(&error))
}

/// Returns the master boot record of a disk with one partition.
///
/// Source: the Microsoft Learn page "Master boot record (MBR)" describes the
/// signature, the table and the end.
fn boot_record(sectors: u32) -> Vec<u8> {
    const SIGNATURE_AT: usize = 440;
    const TABLE_AT: usize = 446;
    const END_AT: usize = 510;
    // The cylinder, head and sector values for an address that cannot be represented.
    const BEYOND: [u8; 3] = [0xFE, 0xFF, 0xFF];
    let mut record = vec![0; SIGNATURE_AT];
    // Windows takes a disk offline if another disk has the same signature.
    record.extend(fastrand::u32(1..).to_le_bytes());
    record.resize(TABLE_AT, 0);
    record.push(0);
    record.extend(BEYOND);
    record.push(FAT32_LBA);
    record.extend(BEYOND);
    record.extend(FIRST_SECTOR.to_le_bytes().iter().take(4));
    record.extend(sectors.to_le_bytes());
    record.resize(END_AT, 0);
    record.extend([0x55, 0xAA]);
    record
}

/// Returns the bytes of the partition.
fn partition(image: File, path: &Path) -> Result<Partition> {
    let length = image.metadata().map_err(file("read", path))?.len();
    StreamSlice::new(image, FIRST_SECTOR * SECTOR, length)
        .map(BufStream::new)
        .map_err(|error| failure("read", path)(&error))
}

/// Copies all files except the tag from a disk to a folder. Returns the files that could not be
/// copied; stopping a guest during a write can damage files.
///
/// # Errors
///
/// Fails with [`Error::Disk`] if the disk has no readable file system.
pub fn copy_out(path: &Path, folder: &Path) -> Result<Vec<NotCopied>> {
    let image = File::open(path).map_err(file("open", path))?;
    let fail = failure("read", path);
    let partition = partition(image, path)?;
    // Reading must not write, so access dates are not updated.
    let options = FsOptions::new().update_accessed_date(false);
    let file_system = FileSystem::new(partition, options).map_err(|error| fail(&error))?;
    let mut not_copied = Vec::new();
    fs::create_dir_all(folder).map_err(file("create", folder))?;
    copy(&file_system.root_dir(), "", folder, 0, &mut not_copied);
    Ok(not_copied)
}

/// Copies a folder. Records failures and continues.
fn copy(
    from: &Dir<'_, Partition>,
    shown: &str,
    to: &Path,
    depth: usize,
    not_copied: &mut Vec<NotCopied>,
) {
    /// A damaged file system can contain cycles.
    const MAX_DEPTH: usize = 32;
    let mut note = |path: &str, reason: String| {
        not_copied.push(NotCopied { path: path.to_owned(), reason });
    };
    if depth > MAX_DEPTH {
        note(shown, format!("folders are nested more than {MAX_DEPTH} levels deep"));
        return;
    }
    let mut folders = Vec::new();
    for entry in from.iter() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                note(shown, format!("cannot read the rest of the folder: {error}"));
                break;
            }
        };
        let name = entry.file_name();
        let shown = if shown.is_empty() { name.clone() } else { format!("{shown}/{name}") };
        if name == "." || name == ".." || shown == TAG || shown == "System Volume Information" {
            continue;
        }
        if !is_plain(&name) {
            note(&shown, "its name is not valid on this machine".to_owned());
            continue;
        }
        let target = to.join(&name);
        if entry.is_dir() {
            folders.push((entry.to_dir(), shown, target));
        } else if let Err(error) = copy_file(&mut entry.to_file(), entry.len(), &target) {
            note(&shown, error.to_string());
        }
    }
    for (dir, shown, target) in folders {
        match fs::create_dir_all(&target) {
            Ok(()) => copy(&dir, &shown, &target, depth + 1, not_copied),
            Err(error) => not_copied.push(NotCopied { path: shown, reason: error.to_string() }),
        }
    }
}

/// Returns whether a name refers to an entry in the same folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0', ':'])
}

fn copy_file(from: &mut impl Read, length: u64, to: &PathBuf) -> io::Result<()> {
    let mut output = File::create(to)?;
    let copied = io::copy(from, &mut output)?;
    output.flush()?;
    if copied == length {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("only {copied} of its {length} bytes are on the disk"),
        ))
    }
}
