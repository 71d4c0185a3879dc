//! The lines of a manifest, for the locations of errors.

use std::iter;

use crate::model::Position;

/// Converts offsets to lines and columns, efficiently even in very long lines.
pub struct Lines {
    /// The offsets of the text's lines.
    starts: Vec<usize>,
    /// The number of characters before each block of `BLOCK` bytes.
    blocks: Vec<usize>,
}

impl Lines {
    const BLOCK: usize = 256;

    pub fn new(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let mut total = 0;
        let blocks = text.as_bytes().chunks(Self::BLOCK).map(|block| {
            let before = total;
            total += count(block);
            before
        });
        Self { blocks: blocks.collect(), starts: iter::once(0).chain(ends).collect() }
    }

    /// Returns the line and the column of `offset`.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.wrapping_sub(1)).copied();
        let before = |offset: usize| {
            let block = offset / Self::BLOCK;
            let rest = text.as_bytes().get(block * Self::BLOCK..offset);
            let known = self.blocks.get(block).copied();
            known.unwrap_or_default() + count(rest.unwrap_or_default())
        };
        Position { line, column: before(offset).saturating_sub(before(start.unwrap_or(0))) + 1 }
    }
}

/// Returns the number of characters that start in these UTF-8 bytes.
fn count(bytes: &[u8]) -> usize {
    let starts = bytes.iter().filter(|byte| **byte & 0xC0 != 0x80);
    starts.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = format!("one\n{}b", "\u{20AC}".repeat(1000));
        let lines = Lines::new(&text);
        for (offset, line, column) in [(0, 1, 1), (2, 1, 3), (4, 2, 1), (3004, 2, 1001)] {
            let position = lines.position(&text, offset);
            assert_eq!((position.line, position.column), (line, column));
        }
    }
}
