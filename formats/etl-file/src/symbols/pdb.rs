//! The contents of a PDB.

use serde::{Deserialize, Serialize};

/// The functions and messages of a PDB.
#[derive(Debug, Deserialize, Serialize)]
pub struct Pdb {
    pub guid: [u8; 16],
    pub ages: [u32; 2],
    /// The functions' start, end and name, sorted by start.
    pub functions: Vec<(u32, u32, Box<str>)>,
    /// The strings of each annotation that contains the format of a WPP message.
    pub messages: Vec<Vec<Box<str>>>,
}
