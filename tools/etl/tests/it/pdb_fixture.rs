//! Generates PDB files.

/// The size of a page in bytes.
const PAGE: usize = 0x200;
/// The number of a stream that does not exist.
const NO_STREAM: u16 = 0xFFFF;

/// The PDB of an image with one code section, at address 0x1000.
pub struct Pdb<'a> {
    pub guid: [u8; 16],
    /// The age of the PDB, and the age of its debug information, which equals the image's.
    pub ages: [u32; 2],
    /// The functions: offset in the section, length and name. Each has one parameter.
    pub functions: &'a [(u32, u32, &'a str)],
    /// The strings of annotations.
    pub annotations: &'a [&'a [&'a str]],
}

impl Pdb<'_> {
    /// Returns the file.
    pub fn file(&self) -> Vec<u8> {
        let symbols = self.symbols();
        let streams = [
            Vec::new(),
            self.information(),
            types(),
            self.debug_information(symbols.len()),
            // Ids and public symbols.
            Vec::new(),
            Vec::new(),
            symbols,
            section(),
        ];
        container(&streams)
    }

    fn information(&self) -> Vec<u8> {
        let mut out = words(&[20_000_404, 0, self.ages[0]]);
        out.extend(self.guid);
        // No named streams.
        out.extend(words(&[0; 5]));
        out
    }

    /// Returns the symbols of the only module that has any.
    fn symbols(&self) -> Vec<u8> {
        const PROCEDURE: u16 = 0x1110;
        const ANNOTATION: u16 = 0x1019;
        const END: u16 = 0x0006;
        let mut out = words(&[4]);
        for (offset, length, name) in self.functions {
            let mut data = words(&[0, 0, 0, *length, 0, 0, 0x1001, *offset]);
            data.extend([1, 0, 0]);
            data.extend(name.bytes().chain([0]));
            out.extend(record(PROCEDURE, &data));
            out.extend(record(END, &[]));
        }
        for strings in self.annotations {
            let mut data = words(&[0]);
            data.extend([1, 0]);
            data.extend(u16::try_from(strings.len()).unwrap().to_le_bytes());
            for text in *strings {
                data.extend(text.bytes().chain([0]));
            }
            out.extend(record(ANNOTATION, &data));
        }
        out
    }

    fn debug_information(&self, symbols: usize) -> Vec<u8> {
        let symbols = u32::try_from(symbols).unwrap();
        // The first module has no symbols.
        let modules = [module(NO_STREAM, 0), module(6, symbols)].concat();
        let contributions = [words(&[0xF12E_BA2D]), contribution(1)].concat();
        let mut streams = [NO_STREAM; 11];
        streams[5] = 7;
        let streams: Vec<u8> = streams.into_iter().flat_map(u16::to_le_bytes).collect();
        let size = |part: &[u8]| u32::try_from(part.len()).unwrap();
        let mut out = words(&[u32::MAX, 19_990_903, self.ages[1]]);
        out.extend([NO_STREAM, 0, NO_STREAM, 0, 5, 0].into_iter().flat_map(u16::to_le_bytes));
        out.extend(words(&[size(&modules), size(&contributions), 0, 0, 0, 0, size(&streams), 0]));
        // For x64.
        out.extend([0, 0, 0x64, 0x86]);
        out.extend(words(&[0]));
        [out, modules, contributions, streams].concat()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a symbol or a type, padded to 4 bytes.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = (data.len() + 4).next_multiple_of(4) - 2;
    let mut out = u16::try_from(length).unwrap().to_le_bytes().to_vec();
    out.extend(kind.to_le_bytes());
    out.extend(data);
    out.resize(length + 2, 0);
    out
}

/// Returns two types: 0x1000, a list of one argument, and 0x1001, a function with these arguments.
fn types() -> Vec<u8> {
    const INT: u32 = 0x74;
    let arguments = record(0x1201, &words(&[1, INT]));
    let function = [words(&[INT]), vec![0, 0, 1, 0], words(&[0x1000])].concat();
    let records = [arguments, record(0x1008, &function)].concat();
    let size = u32::try_from(records.len()).unwrap();
    let mut out = words(&[20_040_203, 56, 0x1000, 0x1002, size]);
    out.extend([0xFF; 4]);
    out.extend(words(&[4, 0x3FFFF, 0, 0, 0, 0, 0, 0]));
    out.extend(records);
    out
}

/// Returns the code that a module contributes to the section.
fn contribution(module: u32) -> Vec<u8> {
    words(&[1, 0, 0x1000, 0x6000_0020, module, 0, 0])
}

fn module(stream: u16, symbols: u32) -> Vec<u8> {
    let mut out = words(&[0]);
    out.extend(contribution(0));
    out.extend([0, 0]);
    out.extend(stream.to_le_bytes());
    out.extend(words(&[symbols, 0, 0, 0, 0, 0, 0]));
    out.extend(b"a.obj\0b.obj\0");
    out
}

/// Returns the header of the section.
fn section() -> Vec<u8> {
    let mut out = b".text\0\0\0".to_vec();
    out.extend(words(&[0x1000, 0x1000, 0x1000, 0x400, 0, 0, 0, 0x6000_0020]));
    out
}

/// Returns a PDB file with these streams.
fn container(streams: &[Vec<u8>]) -> Vec<u8> {
    // The header and two free page maps, which readers ignore.
    let mut pages = vec![0; 3 * PAGE];
    let mut put = |bytes: &[u8]| -> Vec<u32> {
        let first = pages.len() / PAGE;
        pages.extend(bytes);
        pages.resize(pages.len().next_multiple_of(PAGE), 0);
        let numbers = first..pages.len() / PAGE;
        numbers.map(|number| u32::try_from(number).unwrap()).collect()
    };
    let places: Vec<u32> = streams.iter().flat_map(|stream| put(stream)).collect();
    let sizes = streams.iter().map(Vec::len);
    let sizes: Vec<u32> = std::iter::once(streams.len())
        .chain(sizes)
        .map(|size| u32::try_from(size).unwrap())
        .collect();
    let directory = words(&[sizes, places].concat());
    let place = put(&directory);
    let place = put(&words(&place));
    let size = u32::try_from(directory.len()).unwrap();
    let count = u32::try_from(pages.len() / PAGE).unwrap();
    let mut header = b"Microsoft C/C++ MSF 7.00\r\n\x1A\x44\x53\0\0\0".to_vec();
    let page = u32::try_from(PAGE).unwrap();
    header.extend(words(&[page, 1, count, size, 0, place[0]]));
    pages[..header.len()].copy_from_slice(&header);
    pages
}
