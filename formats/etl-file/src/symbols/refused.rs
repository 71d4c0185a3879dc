//! The contents of a PDB in a build without the feature `symbols`: none.

use super::pdb::Pdb;

const REASON: &str = "this program was built without the feature `symbols` of etl-file";

/// Returns the reason why the PDB cannot be read.
pub fn functions(_: Vec<u8>) -> Result<Pdb, String> {
    Err(REASON.to_owned())
}

/// Returns the reason why the PDB cannot be read.
pub fn messages(_: Vec<u8>) -> Result<Vec<Vec<Box<str>>>, String> {
    Err(REASON.to_owned())
}
