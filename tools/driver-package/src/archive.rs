//! Writes the archive (`.zip`) of a driver package.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use zip::{ZipWriter, result::ZipError, write::SimpleFileOptions};

/// The reason why an archive cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct ArchiveError {
    /// The archive's path.
    pub path: PathBuf,
    /// The error of the file system or the archive writer.
    pub source: ZipError,
}

/// Writes an archive with all files in one folder, in list order.
///
/// # Errors
///
/// Fails if the archive cannot be written or two files have the same name.
pub fn write(path: &Path, folder: &str, files: &[(String, Vec<u8>)]) -> Result<(), ArchiveError> {
    let failed = |source| ArchiveError { path: path.to_owned(), source };
    let file = File::create(path).map_err(|error| failed(error.into()))?;
    let mut zip = ZipWriter::new(file);
    for (name, data) in files {
        zip.start_file(format!("{folder}/{name}"), SimpleFileOptions::default()).map_err(failed)?;
        zip.write_all(data).map_err(|error: io::Error| failed(error.into()))?;
    }
    zip.finish().map(drop).map_err(failed)
}

/// Returns text with Windows line endings.
#[must_use]
pub fn windows_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let files = [
            ("README.txt".to_owned(), windows_lines("one\r\ntwo\n").into_bytes()),
            ("a.sys".to_owned(), vec![0; 10_000]),
        ];
        write(&path, "package", &files).unwrap();
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let mut entry = zip.by_index(0).unwrap();
        assert_eq!(entry.name().unwrap(), "package/README.txt");
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\r\ntwo\r\n");
        drop(entry);
        assert_eq!(zip.by_index(1).unwrap().size(), 10_000);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/a.zip");
        let error = write(&path, "package", &[]).unwrap_err().to_string();
        assert!(error.contains("missing/a.zip"), "{error}");
    }
}
