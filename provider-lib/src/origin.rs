//! The fields that the facades' events have in common.

use crate::{DynamicEvent, FieldName};

/// Where a record of a facade comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The record's level, as the facade writes it.
    pub level: &'a str,
    /// The record's target.
    pub target: &'a str,
    /// The path of the module.
    pub module: Option<&'a str>,
    /// The path of the source file, or `None` if events do not have it.
    pub file: Option<&'a str>,
    /// The number of the line in the file.
    pub line: Option<u32>,
}

impl Origin<'_> {
    /// Adds the origin's fields to an event.
    #[inline]
    pub fn describe<const METADATA: usize, const DATA: usize>(
        &self,
        event: &mut DynamicEvent<METADATA, DATA>,
    ) {
        const LEVEL: FieldName<'_> = FieldName::new("Level");
        const TARGET: FieldName<'_> = FieldName::new("Target");
        const MODULE: FieldName<'_> = FieldName::new("Module");
        const FILE: FieldName<'_> = FieldName::new("File");
        const LINE: FieldName<'_> = FieldName::new("Line");
        event.str(LEVEL, self.level);
        event.str(TARGET, self.target);
        if let Some(module) = self.module {
            event.str(MODULE, module);
        }
        if let Some(file) = self.file {
            event.str(FILE, file);
        }
        if let Some(line) = self.line {
            event.u32(LINE, line);
        }
    }
}
