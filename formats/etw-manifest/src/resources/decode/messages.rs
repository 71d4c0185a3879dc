//! Reads the message table (`RT_MESSAGETABLE`).

use std::collections::BTreeMap;

use super::bytes::Bytes;
use super::error::DecodeError;

/// Reads a table (`MESSAGE_RESOURCE_DATA`): strings by id, without the final line break.
pub fn read(data: &[u8]) -> Result<BTreeMap<u32, String>, DecodeError> {
    const UTF16: u16 = 1;
    let table = Bytes::new("MESSAGETABLE", data);
    let count = table.place(0, "number of blocks")?;
    let mut messages = BTreeMap::new();
    // Messages do not overlap, so their total size is at most the table's. Otherwise, overlapping
    // blocks could repeat the same messages without limit.
    let mut left = data.len();
    for block in table.entries(4, count, 12, "blocks")? {
        let (low, high) = (table.u32(block, "block")?, table.u32(block + 4, "block")?);
        let mut at = table.place(block + 8, "block")?;
        for id in low..=high {
            let size = usize::from(table.u16(at, "message")?);
            let flags = table.u16(at + 2, "message")?;
            // A message is at least as large as its header, so the loop terminates.
            let length = size.checked_sub(4).filter(|length| *length > 0);
            let length = length.ok_or(DecodeError::Overrun {
                resource: "MESSAGETABLE",
                what: "message",
                offset: at,
            })?;
            let text = if flags == UTF16 {
                table.text(at + 4, length, "message")?
            } else {
                let bytes = table.slice(at + 4, length, "message")?;
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                String::from_utf8_lossy(text).into_owned()
            };
            let text = text.strip_suffix("\r\n").unwrap_or(&text);
            messages.insert(id, text.to_owned());
            at += size;
            left = left
                .checked_sub(size)
                .ok_or(DecodeError::Reference { what: "block", offset: block })?;
        }
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with one block.
    fn table(first: u32, texts: &[&str]) -> Vec<u8> {
        let last = first + u32::try_from(texts.len()).unwrap() - 1;
        let mut table: Vec<u8> =
            [1, first, last, 16].into_iter().flat_map(u32::to_le_bytes).collect();
        for text in texts {
            let units: Vec<u8> =
                format!("{text}\r\n\0").encode_utf16().flat_map(u16::to_le_bytes).collect();
            let size = (4 + units.len()).next_multiple_of(4);
            table.extend(u16::try_from(size).unwrap().to_le_bytes());
            table.extend(1_u16.to_le_bytes());
            let start = table.len();
            table.extend(units);
            table.resize(start + size - 4, 0);
        }
        table
    }

    #[test]
    fn messages_are_found_by_their_ids() {
        let messages = read(&table(0xB000_0001, &["one", "two %1"])).unwrap();
        assert_eq!(messages[&0xB000_0001], "one");
        assert_eq!(messages[&0xB000_0002], "two %1");
        assert_eq!(messages.get(&0xB000_0003), None);
    }

    #[test]
    fn blocks_cannot_repeat_the_same_messages_endlessly() {
        const BLOCKS: u32 = 100;
        const TEXTS: u32 = 200;
        let texts = ["t"; TEXTS as usize];
        let one = table(0, &texts);
        let entries = &one[16..];
        // All blocks refer to the same strings, with different ids or with equal ids.
        for step in [TEXTS, 0] {
            let mut bad = BLOCKS.to_le_bytes().to_vec();
            for number in 0..BLOCKS {
                let first = number * step;
                for part in [first, first + TEXTS - 1, 4 + BLOCKS * 12] {
                    bad.extend(part.to_le_bytes());
                }
            }
            bad.extend(entries);
            assert!(bad.len() < (BLOCKS * TEXTS) as usize);
            let error = read(&bad).unwrap_err();
            assert!(
                matches!(error, DecodeError::Reference { what: "block", .. }),
                "{step}: {error}"
            );
        }
    }

    #[test]
    fn a_few_long_messages_cannot_be_repeated() {
        let long = "t".repeat(10_000);
        let one = table(0, &[&long]);
        let mut bad = 2_u32.to_le_bytes().to_vec();
        for id in 0..2_u32 {
            for part in [id, id, 28] {
                bad.extend(part.to_le_bytes());
            }
        }
        bad.extend(&one[16..]);
        assert!(read(&bad).is_err());
    }

    #[test]
    fn damaged_tables_never_cause_a_panic_or_a_hang() {
        let good = table(1, &["one", "two"]);
        for length in 0..good.len() {
            assert!(read(&good[..length]).is_err(), "{length}");
        }
        for at in 0..good.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bad = good.clone();
                bad[at] = value;
                let _either = read(&bad);
            }
        }
    }
}
