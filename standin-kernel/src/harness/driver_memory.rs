//! The structures passed to a driver's entry point.

use zerocopy::IntoBytes;

use crate::{
    ground::{
        abi::{DriverExtension, DriverObject, UnicodeString},
        arena::Block,
        image::Image,
        memory,
    },
    services::ntoskrnl::io::devices::driver_flag,
};

/// The size of a loader's entry (`LDR_DATA_TABLE_ENTRY`).
const LOADER_ENTRY: usize = 0xA0;

/// The structures passed to a driver's entry point.
pub struct DriverMemory {
    pub object: Block,
    pub registry_path: Block,
    /// The name of the service.
    pub service: String,
    _extension: Block,
    /// The loader's entry for the image (`DriverSection`), and the string of `HardwareDatabase`.
    _others: [Block; 2],
    _texts: [Block; 6],
}

impl DriverMemory {
    /// Allocates the structures for the driver of a service. `dispatch` is the address of the routine that
    /// refuses requests.
    pub fn new(image: &Image, service: &str, dispatch: u64) -> Self {
        let (path_text, path) = unicode_string(&format!(
            r"\Registry\Machine\System\CurrentControlSet\Services\{service}"
        ));
        let (name_text, driver_name) = unicode_string(&format!(r"\Driver\{service}"));
        let (key_text, service_key_name) = unicode_string(service);
        let (hardware_text, hardware) =
            unicode_string(r"\REGISTRY\MACHINE\HARDWARE\DESCRIPTION\SYSTEM");
        let image_file = format!("{service}.sys");
        let (full_text, full_name) =
            unicode_string(&format!(r"\SystemRoot\System32\drivers\{image_file}"));
        let (base_text, base_name) = unicode_string(&image_file);
        let hardware_database = Block::zeroed(size_of::<UnicodeString>());
        let section = Block::zeroed(LOADER_ENTRY);
        let object = Block::zeroed(size_of::<DriverObject>());
        let extension = Block::zeroed(size_of::<DriverExtension>());
        let registry_path = Block::zeroed(size_of::<UnicodeString>());
        let fill = |block: &Block, bytes: &[u8]| {
            memory::write_bytes(block.address(), bytes)
                .expect("a block of the kernel's own memory is writable");
        };
        fill(&registry_path, path.as_bytes());
        fill(&hardware_database, hardware.as_bytes());
        // The entry is alone in the three lists of the loader. The image's address, its entry point, its
        // size and its names follow.
        let links = [0, 0x10, 0x20].map(|offset| [section.address() + offset; 2]);
        let of_image = [image.base(), image.entry(), image.size() as u64];
        let names = [full_name, base_name];
        let entry = [links.concat().as_bytes(), of_image.as_bytes(), names.as_bytes()].concat();
        fill(&section, &entry);
        fill(
            &object,
            DriverObject {
                // IO_TYPE_DRIVER
                kind: 4,
                size: i16::try_from(size_of::<DriverObject>()).unwrap_or(i16::MAX),
                // Until the driver has an AddDevice routine.
                flags: driver_flag::LEGACY,
                driver_start: image.base(),
                driver_size: u32::try_from(image.size()).unwrap_or(u32::MAX),
                driver_section: section.address(),
                driver_extension: extension.address(),
                driver_name,
                hardware_database: hardware_database.address(),
                driver_init: image.entry(),
                major_function: [dispatch; 28],
                ..Default::default()
            }
            .as_bytes(),
        );
        fill(
            &extension,
            DriverExtension {
                driver_object: object.address(),
                service_key_name,
                ..Default::default()
            }
            .as_bytes(),
        );
        Self {
            object,
            registry_path,
            service: service.to_owned(),
            _extension: extension,
            _others: [section, hardware_database],
            _texts: [path_text, name_text, key_text, hardware_text, full_text, base_text],
        }
    }
}

/// Returns a counted string, and the block that holds its characters.
fn unicode_string(text: &str) -> (Block, UnicodeString) {
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let block = Block::zeroed(bytes.len());
    memory::write_bytes(block.address(), &bytes)
        .expect("a block of the kernel's own memory is writable");
    let length = u16::try_from(bytes.len()).expect("a path is shorter than 32,767 characters");
    let string = UnicodeString {
        length,
        maximum_length: length,
        buffer: block.address(),
        ..Default::default()
    };
    (block, string)
}
