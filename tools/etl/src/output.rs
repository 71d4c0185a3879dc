//! The file that a command writes.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::failure::Failure;
use crate::input::inputs;
use crate::options::out;

/// The size of the output buffer, in bytes.
pub const OUTPUT_BUFFER: usize = 1 << 16;

/// Writes the output file through a temporary file, so that it is written either completely or not
/// at all. Writes to a device or a pipe directly. Refuses to replace an input file.
pub fn write_out<T>(
    arguments: &ArgMatches,
    write: impl FnOnce(&mut io::BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = out(arguments)?;
    let failed = |source| Failure::Write { file: file.to_owned(), source };
    let (open, replaced) = match std::fs::metadata(file) {
        Ok(known) if known.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        // A link continues to name the file that it names.
        Ok(known) if known.is_file() => through(file.canonicalize().map_err(failed)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !file.is_symlink() => {
            through(file.clone())
        }
        // Opens devices, pipes and links without a file directly; there is no file to replace.
        _ => (file.clone(), None),
    };
    let written = [Some(&open), replaced.as_ref()].into_iter().flatten();
    let written: Vec<_> = written.filter_map(|path| path.canonicalize().ok()).collect();
    // From a folder, a command reads all files with these extensions.
    let is_read = |path: &Path, from: &Path| {
        let extension = path.extension().unwrap_or_default();
        path == from || (path.starts_with(from) && (extension == "pdb" || extension == "tmf"))
    };
    let mut read = inputs(arguments).filter_map(|path| path.canonicalize().ok());
    if read.any(|from| written.iter().any(|path| is_read(path, &from))) {
        return Err(Failure::Input { file: file.clone() });
    }
    let created = File::options().write(true).create(true).truncate(true).open(&open);
    let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, created.map_err(failed)?);
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        if let Some(replaced) = &replaced {
            std::fs::rename(&open, replaced)?;
        }
        Ok(written)
    });
    written.map_err(|failure| {
        if replaced.is_some() {
            // Report only the first failure.
            let _unheard = std::fs::remove_file(&open);
        }
        match failure {
            Failure::Output(source) => failed(source),
            other => other,
        }
    })
}

/// Returns the temporary file for a file, and the file.
fn through(file: PathBuf) -> (PathBuf, Option<PathBuf>) {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    (beside.into(), Some(file))
}

/// Returns the width of the terminal, if the output is a terminal.
pub fn terminal_width(stdout: &io::Stdout) -> Option<u16> {
    stdout.is_terminal().then(|| comfy_table::Table::new().width()).flatten()
}
