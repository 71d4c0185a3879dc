//! The loader of driver images (PE files).
//!
//! The loader maps an image at an address that the operating system chooses, relocates it, binds
//! its imports to the kernel's gateways, and protects its sections according to their headers. A
//! driver that writes to its constants or executes its data therefore faults as it would on
//! Windows. Imports that the kernel does not provide are bound to addresses that fault on every
//! access, so that the driver runs until it uses one of them.

use std::{
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
    ptr::NonNull,
    sync::atomic::AtomicBool,
};

use etl_file::internals::show::Escaped;
use object::{
    LittleEndian as LE, Object,
    pe::{
        IMAGE_DIRECTORY_ENTRY_EXCEPTION, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG,
        IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_RELOCS_STRIPPED, IMAGE_REL_BASED_ABSOLUTE,
        IMAGE_REL_BASED_DIR64, IMAGE_SCN_MEM_DISCARDABLE, IMAGE_SCN_MEM_EXECUTE,
        IMAGE_SCN_MEM_NOT_PAGED, IMAGE_SCN_MEM_WRITE, IMAGE_SUBSYSTEM_NATIVE, ImageDataDirectory,
        ImageSectionHeader, SectionFlags,
    },
    read::pe::{ImageNtHeaders, ImageOptionalHeader, ImageThunkData, Import, PeFile64},
};
use parking_lot::Mutex;

use super::{
    arena::PAGE,
    host::{self, protection::Protection},
    image::{Image, Section},
    load_config,
    symbols::{PdbReference, Symbols},
    unprovided::Unprovided,
    unwind::Table,
};

/// The largest image in bytes. The limit keeps a damaged header from exhausting memory.
const MAX_IMAGE_BYTES: usize = 256 << 20;

/// The maximum number of imports of an image. Modules may share one list of names, so even a small
/// file could have any number of imports. The largest drivers have a few thousand imports.
const MAX_IMPORTS: usize = 16_384;

/// The maximum length in bytes of an import's or module's name. All imports of a file may share one
/// long name.
const MAX_NAME_BYTES: usize = 4096;

/// The reason that a file cannot be loaded as a driver.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file is not a well-formed PE image.
    #[error("{}: not a loadable PE image: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// A description of the defect and its position.
        what: String,
    },
    /// The operating system cannot provide memory for the image.
    #[error("{}: cannot map {size} bytes for the image: {error}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// The size of the image in memory.
        size: usize,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The image is for another processor or is not a driver.
    #[error("{}: not an x64 driver: {what}", path.display())]
    NotADriver {
        /// The file.
        path: PathBuf,
        /// A description of the property that a driver cannot have.
        what: String,
    },
}

/// Finds the address to which an import is bound, given its module and name.
pub type Resolve<'a> = &'a dyn Fn(&str, &str) -> Option<u64>;

/// Maps the file at `path` and prepares it to run.
///
/// # Errors
///
/// Returns an error if the file cannot be loaded as a driver.
pub fn load(path: &Path, resolve: Resolve<'_>) -> Result<Image, LoadError> {
    let data = fs::read(path).map_err(|error| LoadError::File { path: path.to_owned(), error })?;
    load_bytes(path, &data, resolve)
}

/// Returns the possible paths of the PDB of the image at `path`.
pub fn symbol_files(path: &Path) -> Vec<PathBuf> {
    // A file that is not an image has no PDB. Loading the file reports the error.
    let data = fs::read(path).unwrap_or_default();
    let reference = PeFile64::parse(&*data).ok().and_then(|pe| pdb_reference(&pe));
    Symbols::for_image(path, reference.as_ref()).into_places()
}

/// Maps the bytes of a file. Errors refer to the file as `path`.
///
/// # Errors
///
/// Returns an error if the bytes cannot be loaded as a driver.
pub fn load_bytes(path: &Path, data: &[u8], resolve: Resolve<'_>) -> Result<Image, LoadError> {
    Loader { path, data, resolve }.load()
}

/// Returns the page protection of a section.
fn protection(section: &ImageSectionHeader) -> Protection {
    let characteristics = section.characteristics.get(LE);
    Protection::readable(
        characteristics.contains(IMAGE_SCN_MEM_WRITE),
        characteristics.contains(IMAGE_SCN_MEM_EXECUTE),
    )
}

/// Returns the sections whose names and characteristics `wanted` accepts.
fn sections(pe: &PeFile64, wanted: impl Fn(&[u8], SectionFlags) -> bool) -> Vec<Section> {
    pe.section_table()
        .iter()
        .filter(|section| wanted(section.raw_name(), section.characteristics.get(LE)))
        .map(|section| Section {
            start: section.virtual_address.get(LE) as usize,
            length: (section.virtual_size.get(LE) as usize).next_multiple_of(PAGE),
            protection: protection(section),
        })
        .collect()
}

/// Returns the functions of a mapped image, before its relocation.
fn functions(pe: &PeFile64, bytes: &[u8]) -> Table {
    let directory = pe.data_directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
    let (start, size) = directory.map_or((0, 0), ImageDataDirectory::address_range);
    Table::new(bytes.to_vec(), start, size)
}

/// Returns the offsets of the image's code.
fn code(pe: &PeFile64, bytes: &[u8]) -> Vec<Range<usize>> {
    sections(pe, |_, flags| flags.contains(IMAGE_SCN_MEM_EXECUTE))
        .iter()
        .map(|section| section.start..section.start.saturating_add(section.length).min(bytes.len()))
        .collect()
}

/// Returns the image's reference to its PDB, if it has one.
fn pdb_reference(pe: &PeFile64) -> Option<PdbReference> {
    let view = pe.pdb_info().ok().flatten()?;
    Some(PdbReference { path: String::from_utf8_lossy(view.path()).into_owned(), id: view.guid() })
}

/// Loads the bytes of one file.
struct Loader<'a> {
    path: &'a Path,
    data: &'a [u8],
    resolve: Resolve<'a>,
}

impl Loader<'_> {
    fn malformed(&self, what: impl fmt::Display) -> LoadError {
        LoadError::Malformed { path: self.path.to_owned(), what: what.to_string() }
    }

    fn load(&self) -> Result<Image, LoadError> {
        let pe = PeFile64::parse(self.data).map_err(|error| self.malformed(error))?;
        self.check_kind(&pe)?;
        let headers = pe.nt_headers().optional_header();
        let size = headers.size_of_image() as usize;
        if size == 0 || size > MAX_IMAGE_BYTES {
            return Err(self.malformed(format_args!(
                "SizeOfImage is {size} bytes; it must be 1 to {MAX_IMAGE_BYTES}"
            )));
        }
        let mut bytes = vec![0; size.next_multiple_of(PAGE)];
        self.copy_sections(&pe, &mut bytes)?;
        let imports = self.imports(&pe)?;
        let unprovided = self.unprovided(&pe)?;
        let functions = functions(&pe, &bytes);
        let code = code(&pe, &bytes);
        let mapping = host::map_image(bytes.len()).map_err(|error| LoadError::Map {
            path: self.path.to_owned(),
            size: bytes.len(),
            error,
        })?;
        let base = mapping.address();
        self.relocate(&pe, &mut bytes, base)?;
        self.bind(&pe, &mut bytes, &unprovided)?;
        if let Some(directory) = pe.data_directory(IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG) {
            let (start, _) = directory.address_range();
            if start != 0 {
                load_config::initialize(&mut bytes, start as usize, base);
            }
        }
        let replaced = host::replace_instructions(&mut bytes, base, &functions, &code);
        let image = Image {
            path: self.path.to_owned(),
            mapping,
            _replaced: replaced,
            entry: base + u64::from(headers.address_of_entry_point()),
            imports,
            unprovided,
            pageable: sections(&pe, |name, flags| {
                name.starts_with(b"PAGE") && !flags.contains(IMAGE_SCN_MEM_NOT_PAGED)
            }),
            // The relocations are also discardable, and no code reads them.
            discardable: sections(&pe, |name, flags| {
                name == b"INIT" || (flags.contains(IMAGE_SCN_MEM_DISCARDABLE) && name != b".reloc")
            }),
            locked: Mutex::default(),
            started: AtomicBool::new(false),
            has_system_calls: host::has_system_calls(&bytes, &functions, &code),
            functions,
            symbols: Symbols::for_image(self.path, pdb_reference(&pe).as_ref()),
        };
        let to = image.mapping.at_offset(0);
        // SAFETY: the mapping is `bytes.len()` bytes long, writable and new.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes.as_slice()).cast(), bytes.len()) };
        self.protect(&pe, &image)?;
        Ok(image)
    }

    fn check_kind(&self, pe: &PeFile64) -> Result<(), LoadError> {
        let not_a_driver =
            |what: String| Err(LoadError::NotADriver { path: self.path.to_owned(), what });
        let machine = pe.nt_headers().file_header().machine.get(LE);
        if machine != IMAGE_FILE_MACHINE_AMD64 {
            return not_a_driver(format!("its machine is 0x{machine:04x}, not AMD64"));
        }
        let subsystem = pe.nt_headers().optional_header().subsystem();
        if subsystem != IMAGE_SUBSYSTEM_NATIVE {
            return not_a_driver(format!("its subsystem is {subsystem}, not native"));
        }
        let entry = pe.nt_headers().optional_header().address_of_entry_point();
        let executable = pe.section_table().iter().any(|section| {
            let start = section.virtual_address.get(LE);
            let end = start.saturating_add(section.virtual_size.get(LE));
            section.characteristics.get(LE).contains(IMAGE_SCN_MEM_EXECUTE)
                && (start..end).contains(&entry)
        });
        if !executable {
            return not_a_driver(format!("its entry point 0x{entry:x} is not in its code"));
        }
        Ok(())
    }

    /// Copies the headers and sections to their positions in memory.
    fn copy_sections(&self, pe: &PeFile64, bytes: &mut [u8]) -> Result<(), LoadError> {
        let length = pe.nt_headers().optional_header().size_of_headers() as usize;
        let headers = self.data.get(..length).ok_or_else(|| {
            self.malformed(format_args!(
                "the file ends within its headers, which are {length} bytes long"
            ))
        })?;
        bytes
            .get_mut(..length)
            .ok_or_else(|| self.malformed("the headers are larger than the image"))?
            .copy_from_slice(headers);
        for section in pe.section_table().iter() {
            let name = String::from_utf8_lossy(section.raw_name());
            let name = Escaped(&name);
            let start = section.virtual_address.get(LE) as usize;
            let content = section.pe_data(self.data).map_err(|error| {
                self.malformed(format_args!(
                    "section {name} at file offset 0x{:x}: {error}",
                    section.pointer_to_raw_data.get(LE)
                ))
            })?;
            bytes
                .get_mut(start..)
                .and_then(|rest| rest.get_mut(..content.len()))
                .ok_or_else(|| {
                    self.malformed(format_args!("section {name} extends past the end of the image"))
                })?
                .copy_from_slice(content);
        }
        Ok(())
    }

    fn relocate(&self, pe: &PeFile64, bytes: &mut [u8], base: u64) -> Result<(), LoadError> {
        let delta = base.wrapping_sub(pe.nt_headers().optional_header().image_base());
        let blocks = pe
            .data_directories()
            .relocation_blocks(self.data, &pe.section_table())
            .map_err(|error| self.malformed(format_args!("relocations: {error}")))?;
        let Some(mut blocks) = blocks else {
            // An image without a relocation table does not depend on its base, or its table was
            // stripped.
            let flags = pe.nt_headers().file_header().characteristics.get(LE);
            return if flags.contains(IMAGE_FILE_RELOCS_STRIPPED) {
                Err(self.malformed(
                    "its relocations were stripped, so it can be loaded only at the address for \
                     which it was linked, and Windows loads no driver there; link it without \
                     /FIXED",
                ))
            } else {
                Ok(())
            };
        };
        while let Some(block) =
            blocks.next().map_err(|error| self.malformed(format_args!("relocations: {error}")))?
        {
            for relocation in block {
                match relocation.typ {
                    IMAGE_REL_BASED_ABSOLUTE => {}
                    IMAGE_REL_BASED_DIR64 => {
                        let at = relocation.virtual_address as usize;
                        let slot = bytes
                            .get_mut(at..)
                            .and_then(|rest| rest.first_chunk_mut::<8>())
                            .ok_or_else(|| {
                                self.malformed(format_args!(
                                    "the relocation at 0x{at:x} is past the end of the image"
                                ))
                            })?;
                        *slot = u64::from_le_bytes(*slot).wrapping_add(delta).to_le_bytes();
                    }
                    other => {
                        return Err(self.malformed(format_args!(
                            "the relocation at 0x{:x} has the unknown type {other}",
                            relocation.virtual_address
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the name of a module or routine.
    fn import_name(&self, bytes: &[u8]) -> Result<String, LoadError> {
        if bytes.len() > MAX_NAME_BYTES {
            let length = bytes.len();
            return Err(self.malformed(format_args!(
                "imports: a name is {length} bytes long; the maximum is {MAX_NAME_BYTES}"
            )));
        }
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Calls `each` with the module, name and slot (an RVA) of every import.
    fn for_each_import(
        &self,
        pe: &PeFile64,
        mut each: impl FnMut(&str, &str, usize),
    ) -> Result<(), LoadError> {
        let broken = |error| self.malformed(format_args!("imports: {error}"));
        let Some(table) = pe.import_table().map_err(broken)? else {
            return Ok(());
        };
        let mut descriptors = table.descriptors().map_err(broken)?;
        let mut count = 0;
        while let Some(descriptor) = descriptors.next().map_err(broken)? {
            let module = table.name(descriptor.name.get(LE)).map_err(broken)?;
            let module = self.import_name(module)?;
            let names = match descriptor.original_first_thunk.get(LE) {
                0 => descriptor.first_thunk.get(LE),
                lookup => lookup,
            };
            let mut thunks = table.thunks(names).map_err(broken)?;
            let mut slot = descriptor.first_thunk.get(LE) as usize;
            while let Some(thunk) = thunks.next::<object::pe::ImageNtHeaders64>().map_err(broken)? {
                let import = table.import::<object::pe::ImageNtHeaders64>(thunk).map_err(broken)?;
                let name = match import {
                    Import::Name(_, name) => self.import_name(name)?,
                    Import::Ordinal(_) => format!("#{}", thunk.ordinal()),
                };
                count += 1;
                if count > MAX_IMPORTS {
                    return Err(
                        self.malformed(format_args!("it has more than {MAX_IMPORTS} imports"))
                    );
                }
                each(&module, &name, slot);
                slot += 8;
            }
        }
        Ok(())
    }

    fn imports(&self, pe: &PeFile64) -> Result<Vec<String>, LoadError> {
        let mut imports = Vec::new();
        self.for_each_import(pe, |module, name, _| {
            imports.push(format!("{module}!{name}"));
        })?;
        Ok(imports)
    }

    /// Returns the addresses of the imports that the kernel does not provide.
    fn unprovided(&self, pe: &PeFile64) -> Result<Unprovided, LoadError> {
        let mut names: Vec<String> = Vec::new();
        self.for_each_import(pe, |module, name, _| {
            if (self.resolve)(module, name).is_none() {
                names.push(format!("{module}!{name}"));
            }
        })?;
        names.sort_unstable();
        names.dedup();
        let size = Unprovided::size(names.len());
        Unprovided::new(names).map_err(|error| LoadError::Map {
            path: self.path.to_owned(),
            size,
            error,
        })
    }

    fn bind(
        &self,
        pe: &PeFile64,
        bytes: &mut [u8],
        unprovided: &Unprovided,
    ) -> Result<(), LoadError> {
        let mut stray = None;
        self.for_each_import(pe, |module, name, slot| {
            let address = (self.resolve)(module, name)
                .or_else(|| unprovided.address(&format!("{module}!{name}")))
                .unwrap_or_default();
            match bytes.get_mut(slot..).and_then(|rest| rest.first_chunk_mut::<8>()) {
                Some(place) => *place = address.to_le_bytes(),
                None => stray = Some(slot),
            }
        })?;
        stray.map_or(Ok(()), |slot| {
            Err(self.malformed(format_args!(
                "the import slot at 0x{slot:x} is past the end of the image"
            )))
        })
    }

    fn protect(&self, pe: &PeFile64, image: &Image) -> Result<(), LoadError> {
        let mut ranges = vec![(
            0,
            pe.nt_headers().optional_header().size_of_headers() as usize,
            Protection::Read,
        )];
        for section in pe.section_table().iter() {
            let protection = protection(section);
            ranges.push((
                section.virtual_address.get(LE) as usize,
                section.virtual_size.get(LE) as usize,
                protection,
            ));
        }
        for (start, length, protection) in ranges {
            let end = start.saturating_add(length).next_multiple_of(PAGE);
            if start % PAGE != 0 {
                return Err(self.malformed(format_args!(
                    "the section from 0x{start:x} to 0x{end:x} is not page-aligned"
                )));
            }
            if end > image.size() {
                return Err(self.malformed(format_args!(
                    "the section from 0x{start:x} to 0x{end:x} extends past the end of the image \
                     (0x{:x})",
                    image.size()
                )));
            }
            if length == 0 {
                continue;
            }
            image.mapping.protect(start, end - start, protection).map_err(|error| {
                self.malformed(format_args!("cannot protect the pages at 0x{start:x}: {error}"))
            })?;
        }
        Ok(())
    }
}
