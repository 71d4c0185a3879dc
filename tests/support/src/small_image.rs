//! Builds driver images of a few KiB without a toolchain, so that tests can change every byte.

/// The alignment of sections in the file.
const FILE_PAGE: usize = 0x200;
/// The alignment of sections in memory.
const PAGE: u32 = 0x1000;

/// The offset of the optional header in the file.
pub const OPTIONAL_HEADER: usize = 0x58;
/// The offset of the section table in the file: after 16 data directories.
pub const SECTIONS: usize = OPTIONAL_HEADER + 112 + 16 * 8;

/// The file offset of the read-only data, which starts with the import table.
pub const IMPORTS: usize = 3 * FILE_PAGE;

/// The contents of an image.
pub struct Image<'a> {
    /// The names of imported routines, by module.
    pub imports: &'a [(&'a str, &'a [&'a str])],
    /// True if the image has a relocation table, with one pointer in the data.
    pub relocations: bool,
    /// The name of the code section.
    pub code: &'a [u8; 8],
    /// The machine code of the entry point.
    pub entry: &'a [u8],
}

impl Default for Image<'_> {
    fn default() -> Self {
        Self {
            imports: &[
                ("ntoskrnl.exe", &["DbgPrint", "EtwRegister"]),
                ("WDFLDR.SYS", &["WdfVersionBind"]),
            ],
            relocations: true,
            code: b".text\0\0\0",
            // The code returns success: `xor eax, eax; ret`.
            entry: &[0x31, 0xC0, 0xC3],
        }
    }
}

/// A section's name, characteristics and bytes.
type Section = ([u8; 8], u32, Vec<u8>);

impl Image<'_> {
    /// Returns the file's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut sections: Vec<Section> = vec![(*self.code, 0x6000_0020, self.entry.to_vec())];
        let at = end(&sections);
        let imports = self.import_table(at);
        let import_size = imports.len();
        sections.push((*b".rdata\0\0", 0x4000_0040, imports));
        let data_at = end(&sections);
        let pointer = 0x1_4000_0000_u64 + u64::from(PAGE);
        sections.push((*b".data\0\0\0", 0xC000_0040, pointer.to_le_bytes().to_vec()));
        let mut directories = [(0, 0); 16];
        directories[1] = (at, import_size);
        if self.relocations {
            let mut block = data_at.to_le_bytes().to_vec();
            block.extend(12_u32.to_le_bytes());
            // The relocation is for a 64-bit pointer at the start of the data, and is followed by
            // padding.
            block.extend(0xA000_u16.to_le_bytes());
            block.extend([0; 2]);
            directories[5] = (end(&sections), block.len());
            sections.push((*b".reloc\0\0", 0x4200_0040, block));
        }
        file(&sections, &directories)
    }

    /// Returns the import table: the descriptors, each module's name pointers and address slots,
    /// and the strings.
    fn import_table(&self, base: u32) -> Vec<u8> {
        let count = |names: &[&str]| (names.len() + 1) * 8;
        let tables: usize = self.imports.iter().map(|(_, names)| count(names)).sum();
        let lookups = (self.imports.len() + 1) * 20;
        let slots = lookups + tables;
        let mut texts = Vec::new();
        let texts_at = slots + tables;
        let mut descriptors = Vec::new();
        let mut thunks = Vec::new();
        let here = |offset: usize| base + u32::try_from(offset).expect("images are small");
        for (module, names) in self.imports {
            let module_at = texts_at + texts.len();
            texts.extend(module.as_bytes());
            texts.push(0);
            for field in
                [here(lookups + thunks.len()), 0, 0, here(module_at), here(slots + thunks.len())]
            {
                descriptors.extend(field.to_le_bytes());
            }
            for name in *names {
                thunks.extend(u64::from(here(texts_at + texts.len())).to_le_bytes());
                texts.extend([0, 0]); // the hint
                texts.extend(name.as_bytes());
                texts.push(0);
            }
            thunks.extend([0; 8]);
        }
        descriptors.extend([0; 20]);
        [&descriptors[..], &thunks, &thunks, &texts].concat()
    }
}

/// Returns the end of the last section in memory. Sections start on page boundaries, after the page
/// that contains the headers.
fn end(sections: &[Section]) -> u32 {
    sections.iter().fold(PAGE, |end, (_, _, bytes)| {
        let size = u32::try_from(bytes.len()).expect("images are small");
        end + size.next_multiple_of(PAGE)
    })
}

/// Returns the whole file: the headers, then the sections.
fn file(sections: &[Section], directories: &[(u32, usize); 16]) -> Vec<u8> {
    let half = |size: usize| u16::try_from(size).expect("images are small");
    let word = |size: usize| u32::try_from(size).expect("images are small");
    let mut out = b"MZ".to_vec();
    out.resize(0x3C, 0);
    out.extend(0x40_u32.to_le_bytes());
    out.extend(b"PE\0\0");
    out.extend(0x8664_u16.to_le_bytes());
    out.extend(half(sections.len()).to_le_bytes());
    out.extend([0; 12]);
    out.extend(240_u16.to_le_bytes()); // SizeOfOptionalHeader
    out.extend(0x0022_u16.to_le_bytes()); // executable, large addresses
    assert_eq!(out.len(), OPTIONAL_HEADER);
    out.extend(0x020B_u16.to_le_bytes());
    out.extend([14, 0]);
    for field in [
        word(FILE_PAGE), // SizeOfCode
        0,
        0,
        PAGE, // AddressOfEntryPoint
        PAGE, // BaseOfCode
    ] {
        out.extend(field.to_le_bytes());
    }
    out.extend(0x1_4000_0000_u64.to_le_bytes());
    out.extend(PAGE.to_le_bytes());
    out.extend(word(FILE_PAGE).to_le_bytes());
    for version in [10_u16, 0, 10, 0, 10, 0] {
        out.extend(version.to_le_bytes());
    }
    out.extend([0; 4]);
    out.extend(end(sections).to_le_bytes()); // SizeOfImage
    out.extend(word(FILE_PAGE * 2).to_le_bytes()); // SizeOfHeaders
    out.extend([0; 4]); // CheckSum
    out.extend(1_u16.to_le_bytes()); // native
    out.extend(0x0140_u16.to_le_bytes()); // NX, movable
    for size in [0x10_0000_u64, 0x1000, 0x10_0000, 0x1000] {
        out.extend(size.to_le_bytes());
    }
    out.extend([0; 4]);
    out.extend(16_u32.to_le_bytes());
    for (at, size) in directories {
        out.extend(at.to_le_bytes());
        out.extend(word(*size).to_le_bytes());
    }
    assert_eq!(out.len(), SECTIONS);
    let mut place = FILE_PAGE * 2;
    for (number, (name, characteristics, bytes)) in sections.iter().enumerate() {
        out.extend(name);
        out.extend(word(bytes.len()).to_le_bytes());
        out.extend(end(&sections[..number]).to_le_bytes());
        let size = bytes.len().next_multiple_of(FILE_PAGE);
        out.extend(word(size).to_le_bytes());
        out.extend(word(place).to_le_bytes());
        out.extend([0; 12]);
        out.extend(characteristics.to_le_bytes());
        place += size;
    }
    out.resize(FILE_PAGE * 2, 0);
    for (_, _, bytes) in sections {
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(FILE_PAGE), 0);
    }
    out
}
