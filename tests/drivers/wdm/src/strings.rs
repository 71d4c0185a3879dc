//! The names of the device.

use etw_driver_support::utf16;

/// The name of the device.
pub static NAME: [u16; 15] = utf16(br"\Device\WdmTest");
/// Its symbolic link.
pub static LINK: [u16; 19] = utf16(br"\DosDevices\WdmTest");
