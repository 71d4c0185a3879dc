//! Writes CD images with xorriso: ISO 9660 with Joliet names, which preserve the case and length of names.
//!
//! The answer file is on a CD instead of a FAT disk, because Windows Setup erases disk 0, and no
//! test rules out that a second disk, on USB or not, becomes disk 0. The kit is on a CD so that
//! stages cannot change it.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use crate::error::{Error, Result, file};

/// The maximum length of a Joliet name that xorriso does not shorten, in UTF-16 units.
const MAX_NAME: usize = 103;

/// The files of an image: paths with `/` between folders, and contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The date of images and their files, in seconds since 1970: 1980, the earliest that FAT can store.
const DATE: &str = "315532800";

/// Writes an image with these files and this label. Equal files give equal images.
///
/// # Errors
///
/// Fails with [`Error::Iso`] if a name does not fit the format or xorriso reports a problem, with
/// [`Error::NoXorriso`] if xorriso cannot be run, and with [`Error::File`] if a file cannot be written.
pub fn write(image: &Path, label: &str, files: &Files) -> Result<()> {
    let refuse = |name: &str, reason: String| Error::Iso { name: name.to_owned(), reason };
    let folder = tempfile::tempdir().map_err(file("create a folder in", &std::env::temp_dir()))?;
    for (path, contents) in files {
        if let Some(part) = path.split('/').find(|part| part.encode_utf16().count() > MAX_NAME) {
            let reason = format!("{part} has more than {MAX_NAME} characters");
            return Err(refuse(path, reason));
        }
        let to = folder.path().join(path);
        let parent = to.parent().unwrap_or(&to);
        fs::create_dir_all(parent).map_err(file("create", parent))?;
        fs::write(&to, contents).map_err(file("write", &to))?;
    }
    let mut xorriso = Command::new("xorriso");
    xorriso.args(["-as", "mkisofs", "-quiet", "-iso-level", "3", "-J", "-joliet-long"]);
    xorriso.args(["--set_all_file_dates", &format!("={DATE}")]);
    xorriso.args(["-V", label, "-o"]).arg(image).arg(folder.path());
    // The variable dates the image, from which its identifier is made; the option dates the files.
    xorriso.env("SOURCE_DATE_EPOCH", DATE);
    let output = xorriso.output().map_err(Error::NoXorriso)?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(refuse("the files", format!("xorriso: {}", errors.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_be_shortened_is_refused() {
        let files = Files::from([(format!("a/{}", "x".repeat(104)), Vec::new())]);
        let error = write(Path::new("/nowhere"), "A", &files).unwrap_err().to_string();
        assert!(error.ends_with("x has more than 103 characters"), "{error}");
    }
}
