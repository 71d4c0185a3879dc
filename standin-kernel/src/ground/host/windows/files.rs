//! The files of the volume that a driver finds.

#[cfg(test)]
pub use std::os::windows::fs::symlink_dir as link_folder;
use std::{
    fs::{self, Metadata, OpenOptions},
    mem::MaybeUninit,
    os::windows::{fs::OpenOptionsExt as _, io::AsRawHandle as _},
    path::{Path, PathBuf},
};

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, GetFileInformationByHandle,
};

/// Returns the number that identifies a file on its volume, or 0 if the file cannot be opened.
pub fn file_number(path: &Path, _metadata: &Metadata) -> u64 {
    // A directory can be opened only with this flag, and without rights.
    let opened =
        OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path);
    let Ok(file) = opened else {
        return 0;
    };
    let mut information = MaybeUninit::<BY_HANDLE_FILE_INFORMATION>::zeroed();
    // SAFETY: the handle is open, and the result is stored in a local.
    unsafe { GetFileInformationByHandle(file.as_raw_handle(), information.as_mut_ptr()) };
    // SAFETY: zeros are valid, and the call may have replaced them.
    let information = unsafe { information.assume_init() };
    u64::from(information.nFileIndexHigh) << 32 | u64::from(information.nFileIndexLow)
}

/// Returns the path below which a driver's files are, for a folder that the test provides. The path
/// begins with `\\?\`, so that names such as `NUL` denote files and not devices of this system.
pub fn folder_of_volume(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Quotes a path for a command line, if necessary. Paths of Windows do not contain double quotes.
#[cfg(feature = "run")]
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |one: char| one.is_alphanumeric() || r"_-./+:@\~".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("\"{text}\"") }
}
