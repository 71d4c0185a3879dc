//! The driver of the root bus. It creates the physical devices that no driver in a test creates.

use zerocopy::{FromZeros, IntoBytes};

use crate::ground::{
    abi::{DriverObject, UnicodeString},
    arena::Block,
    memory,
};

/// The driver's `DRIVER_OBJECT`, and the string of its name.
pub struct BusDriver {
    object: Block,
    _name: Block,
}

impl BusDriver {
    /// Returns the address of the `DRIVER_OBJECT`.
    pub const fn address(&self) -> u64 {
        self.object.address()
    }
}

impl Default for BusDriver {
    fn default() -> Self {
        /// `IO_TYPE_DRIVER`.
        const DRIVER: i16 = 4;
        let name: Vec<u8> =
            r"\Driver\PnpManager".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let text = Block::zeroed(name.len());
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        let object = Block::zeroed(size_of::<DriverObject>());
        let mut filled = DriverObject::new_zeroed();
        filled.kind = DRIVER;
        filled.size = i16::try_from(size_of::<DriverObject>()).unwrap_or(i16::MAX);
        filled.driver_name = UnicodeString {
            length,
            maximum_length: length,
            buffer: text.address(),
            ..Default::default()
        };
        for (at, bytes) in [(text.address(), &name[..]), (object.address(), filled.as_bytes())] {
            let written = memory::write_bytes(at, bytes);
            debug_assert!(written.is_ok(), "the kernel's own memory is writable");
        }
        Self { object, _name: text }
    }
}
