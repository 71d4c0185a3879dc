//! Open files.

use super::{device::Below, framework::Framework, text::TextData};
use crate::{ground::arena::Block, services::managers::create_parameters::CreateParameters};

/// An open file.
pub struct FileData {
    pub device: u64,
    pub name: TextData,
    /// The `UNICODE_STRING` that `WdfFileObjectGetFileName` returns, created on the first call.
    pub name_structure: Option<Block>,
    /// Set once the last handle is closed. The file is deleted when its last request ends.
    pub closing: bool,
    /// The lower device's file or the simulated device to which the open was passed, or
    /// [`Below::Bus`] if it was not passed down.
    pub below: Below,
    /// The `FILE_OBJECT`, once the driver has requested it.
    pub object: Option<Block>,
    /// The process that opened the file.
    pub process: u32,
    /// The parameters of the open.
    pub create: CreateParameters,
    /// Set once the open has succeeded.
    pub is_opened: bool,
    /// Set if the test dropped its handle without closing the file.
    pub abandoned: bool,
}

impl FileData {
    /// Returns the device on which the file is open.
    pub const fn device(&self) -> u64 {
        self.device
    }
}

/// Returns whether a device has an open file.
pub fn is_open(framework: &mut Framework, device: u64) -> bool {
    framework
        .all::<FileData>()
        .into_iter()
        .any(|file| framework.get::<FileData>(file).is_ok_and(|file| file.device == device))
}

/// Returns whether a device has an open file that its owner can still close.
pub fn is_in_use(framework: &mut Framework, device: u64) -> bool {
    framework.all::<FileData>().into_iter().any(|file| {
        framework
            .get::<FileData>(file)
            .is_ok_and(|file| file.device == device && !file.closing && !file.abandoned)
    })
}

/// Returns a device's open files that their owners can no longer close.
pub fn abandoned(framework: &mut Framework, device: u64) -> Vec<u64> {
    let mut files = framework.all::<FileData>();
    files.retain(|file| {
        framework
            .get::<FileData>(*file)
            .is_ok_and(|file| file.device == device && !file.closing && file.abandoned)
    });
    files
}
