//! The files of the volume that a driver finds.

#[cfg(test)]
pub use std::os::unix::fs::symlink as link_folder;
use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Returns the number that identifies a file on its volume.
pub fn file_number(_path: &Path, metadata: &Metadata) -> u64 {
    metadata.ino()
}

/// Returns the path below which a driver's files are, for a folder that the test provides.
pub fn folder_of_volume(folder: &Path) -> PathBuf {
    folder.to_owned()
}

/// Quotes a path for a shell's command line, if necessary.
#[cfg(feature = "run")]
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |one: char| one.is_alphanumeric() || "_-./+:@%,=".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(all(test, feature = "run"))]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_of_the_shell() {
        for (path, word) in [
            ("/a/b-1.etl", "/a/b-1.etl"),
            ("a b.etl", "'a b.etl'"),
            ("it's $1.etl", r"'it'\''s $1.etl'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
