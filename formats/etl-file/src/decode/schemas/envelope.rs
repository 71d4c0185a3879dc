//! Assembles the manifests of .NET event sources, which traces contain in chunks (ETL-13.4).

use crate::cursor::Cursor;

/// The id, opcode and task of an event that contains a chunk.
const ID: u16 = 0xFFFE;
const OPCODE: u8 = 0xFE;
/// `ManifestEnvelope.Format`: XML in UTF-8.
const FORMAT: u8 = 1;
/// `ManifestEnvelope.Magic`.
const MAGIC: u8 = 0x5B;

/// A part of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub version: (u8, u8),
    pub total: u16,
    pub number: u16,
    pub bytes: &'a [u8],
}

/// Returns true if an event with this id, opcode and task contains a chunk.
pub const fn is_chunk(id: u16, opcode: u8, task: u16) -> bool {
    id == ID && opcode == OPCODE && task == ID
}

impl<'a> Chunk<'a> {
    /// Reads the user data of an event.
    pub fn parse(user_data: &'a [u8]) -> Option<Self> {
        let mut c = Cursor::new(user_data);
        let format = c.u8()?;
        let version = (c.u8()?, c.u8()?);
        let magic = c.u8()?;
        let total = c.u16()?;
        let number = c.u16()?;
        let is_sound = format == FORMAT && magic == MAGIC && number < total;
        is_sound.then(|| Self { version, total, number, bytes: c.rest() })
    }
}

/// The chunks of a manifest that have been found so far.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    version: (u8, u8),
    chunks: Vec<Option<Vec<u8>>>,
}

impl Assembly {
    /// Returns true if a chunk is already present or belongs to another manifest.
    pub fn contradicts(&self, chunk: &Chunk<'_>) -> bool {
        self.version != chunk.version
            || self.chunks.len() != usize::from(chunk.total)
            || self.chunks.get(usize::from(chunk.number)).is_some_and(Option::is_some)
    }

    /// Returns an empty assembly for the manifest that a chunk belongs to.
    pub fn new(chunk: &Chunk<'_>) -> Self {
        Self { version: chunk.version, chunks: vec![None; chunk.total.into()] }
    }

    /// Adds a chunk.
    pub fn add(&mut self, chunk: &Chunk<'_>) {
        if let Some(place) = self.chunks.get_mut(usize::from(chunk.number)) {
            *place = Some(chunk.bytes.to_vec());
        }
    }

    /// Returns the manifest's version and number of chunks.
    pub const fn identity(&self) -> ((u8, u8), usize) {
        (self.version, self.chunks.len())
    }

    /// Returns the memory size of the chunks in bytes.
    pub fn cost(&self) -> usize {
        let found: usize = self.chunks.iter().flatten().map(Vec::len).sum();
        found.saturating_add(size_of_val(self.chunks.as_slice()))
    }

    /// Returns the manifest once all chunks have been found.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let chunks: Option<Vec<&Vec<u8>>> = self.chunks.iter().map(Option::as_ref).collect();
        Some(chunks?.into_iter().flatten().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the user data of an event with a one-byte chunk.
    fn data(version: (u8, u8), total: u16, number: u16) -> Vec<u8> {
        let mut data = vec![FORMAT, version.0, version.1, MAGIC];
        data.extend(total.to_le_bytes());
        data.extend(number.to_le_bytes());
        data.push(b'x');
        data
    }

    #[test]
    fn a_chunk_has_its_format_its_mark_and_a_number_below_the_total() {
        let sound = data((1, 2), 3, 2);
        let chunk = Chunk::parse(&sound).unwrap();
        let expected = Chunk { version: (1, 2), total: 3, number: 2, bytes: b"x" };
        assert_eq!(chunk, expected);
        for (at, value) in [(0, 2), (3, 0x5C), (6, 3), (6, 4)] {
            let mut other = sound.clone();
            other[at] = value;
            assert_eq!(Chunk::parse(&other), None, "{at}");
        }
        assert_eq!(Chunk::parse(&sound[..7]), None);
    }

    #[test]
    fn an_event_with_a_chunk_has_its_id_opcode_and_task() {
        assert!(is_chunk(ID, OPCODE, ID));
        assert!(!is_chunk(1, OPCODE, ID));
        assert!(!is_chunk(ID, 1, ID));
        assert!(!is_chunk(ID, OPCODE, 1));
    }

    #[test]
    fn an_assembly_takes_the_missing_chunks_of_its_manifest() {
        let chunk = |data: &[u8]| Assembly::new(&Chunk::parse(data).unwrap());
        let first = data((1, 2), 3, 0);
        let mut assembly = chunk(&first);
        assert_eq!(assembly.identity(), ((1, 2), 3));
        let empty = assembly.cost();
        assert_eq!(empty, 3 * size_of::<Option<Vec<u8>>>());
        assembly.add(&Chunk::parse(&first).unwrap());
        assert_eq!(assembly.cost(), empty + 1);
        let contradicts = |data: &[u8]| assembly.contradicts(&Chunk::parse(data).unwrap());
        assert!(!contradicts(&data((1, 2), 3, 1)));
        assert!(contradicts(&first), "present already");
        assert!(contradicts(&data((1, 3), 3, 1)), "another version");
        assert!(contradicts(&data((1, 2), 4, 1)), "another total");
    }
}
