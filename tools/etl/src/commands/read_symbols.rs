//! `etl read-symbols`: reads a PDB for another process of this program, which a damaged PDB cannot
//! end then.

use std::io;
use std::process::ExitCode;

use etl_file::symbols;

use crate::failure::Failure;
use crate::output::OUTPUT_BUFFER;

/// Reads the PDB on standard input, for another process of this program.
pub fn run() -> Result<ExitCode, Failure> {
    let mut out = io::BufWriter::with_capacity(OUTPUT_BUFFER, io::stdout().lock());
    symbols::answer(&mut io::stdin().lock(), &mut out)?;
    Ok(ExitCode::SUCCESS)
}
