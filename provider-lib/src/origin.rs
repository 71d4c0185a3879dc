//! The fields that the facades' events have in common.

use crate::{DynamicEvent, FieldName};

/// The maximum size in bytes of an event's metadata: the names and types of its fields.
pub const MAX_METADATA: usize = 512;

/// The maximum size in bytes of an event's data: the values of its fields.
pub const MAX_DATA: usize = 1024;

/// The maximum size in bytes of a string in an event.
pub const MAX_TEXT: usize = MAX_DATA / 2;

/// The maximum stack use in bytes of writing an event, excluding ETW and the values' `Display` and
/// `Debug` implementations.
pub const MAX_STACK: usize = 3072;

/// An event in a facade's buffers.
pub type Event = DynamicEvent<MAX_METADATA, MAX_DATA>;

const _: () = assert!(size_of::<Event>() + 1024 <= MAX_STACK);

/// The source location of a facade's record.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The record's level, as the facade spells it.
    pub level: &'a str,
    /// The record's target.
    pub target: &'a str,
    /// The path of the module.
    pub module: Option<&'a str>,
    /// The path of the source file, or `None` if events do not contain it.
    pub file: Option<&'a str>,
    /// The line number in the file.
    pub line: Option<u32>,
}

impl Origin<'_> {
    /// Adds the fields of the source location to an event.
    #[inline]
    pub fn describe(&self, event: &mut Event) {
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
