//! Reads the filters of a provider.

use super::{error::DecodeError, reader::Reader};
use crate::model::Filter;

impl Reader<'_> {
    pub fn filters(&mut self, at: usize) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        let what = "filter";
        bytes.tag(at, *b"FLTR")?;
        let count = bytes.place(at + 8, "number of filters")?;
        for entry in self.entries(at + 16, count, 16, "filters")? {
            let template = match bytes.place(entry + 12, what)? {
                0 => None,
                place => Some(self.template(place)?),
            };
            let filter = Filter {
                name: self.qualified(entry + 8, what)?,
                value: bytes.u8(entry, what)?,
                version: bytes.u8(entry + 1, what)?,
                message: self.message(entry + 4, what)?,
                template,
                ..Filter::default()
            };
            self.provider.filters.push(filter);
        }
        Ok(())
    }
}
