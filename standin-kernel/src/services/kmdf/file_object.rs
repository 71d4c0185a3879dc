//! The `FILE_OBJECT`s of open files, for drivers that access them below the framework.

use crate::{
    execution::routine::{At, Handle, routine},
    ground::{abi::FileObject, arena::Block},
    services::{
        kmdf::state::{
            device::DeviceData,
            device_object::own,
            file::FileData,
            framework::{Context, Entries},
        },
        managers::create_parameters::SYNCHRONOUS_IO,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfFileObjectGetFlags", get_flags),
    routine("WdfFileObjectWdmGetFileObject", get_wdm),
    routine("WdfFileObjectGetInitiatorProcessId", get_process),
    routine("WdfDeviceGetFileObject", find),
];

/// `FO_CLEANUP_COMPLETE` and `FO_HANDLE_CREATED`.
const CLEANUP_COMPLETE: u32 = 0x4000;
const HANDLE_CREATED: u32 = 0x4_0000;

/// Returns the flags of a file's `FILE_OBJECT`.
const fn flags_of(file: &FileData) -> u32 {
    let opened = if file.is_opened { HANDLE_CREATED } else { 0 };
    let synchronous = if file.create.is_synchronous() { SYNCHRONOUS_IO } else { 0 };
    opened | synchronous | if file.closing { CLEANUP_COMPLETE } else { 0 }
}

/// Returns the address of a file's `FILE_OBJECT`, which is created on the first call and lives as
/// long as the file.
pub fn of_file(context: &Context, file: u64) -> u64 {
    let device = context.with::<FileData, _>(file, |file| file.device);
    let device = own(context, device);
    let (address, is_new, flags, name) = context.with::<FileData, _>(file, |file| {
        let is_new = file.object.is_none();
        let block = file.object.get_or_insert_with(|| Block::zeroed(size_of::<FileObject>()));
        (block.address(), is_new, flags_of(file), file.name.counted())
    });
    let mut object: FileObject = context.read(address);
    if is_new {
        // IO_TYPE_FILE
        object.kind = 5;
        object.size = i16::try_from(size_of::<FileObject>()).unwrap_or(i16::MAX);
        object.device_object = device;
        object.file_name = name;
    }
    object.flags = flags;
    context.write(address, &object);
    address
}

fn get_flags(context: &Context, file: Handle<FileData>) -> u32 {
    file.with(context, |file| flags_of(file))
}

fn get_wdm(context: &Context, file: Handle<FileData>) -> At<FileObject> {
    At::new(of_file(context, file.0))
}

fn get_process(context: &Context, file: Handle<FileData>) -> u32 {
    file.with(context, |file| file.process)
}

/// Returns the framework's file for a `FILE_OBJECT` that is open on a device, or 0.
fn find(context: &Context, device: Handle<DeviceData>, object: At<FileObject>) -> Handle<FileData> {
    device.check(context);
    let mut framework = context.framework();
    let files = framework.all::<FileData>();
    let is_it = |file: &FileData| {
        let its = file.object.as_ref().map(Block::address);
        file.device == device.0 && its == Some(object.0)
    };
    Handle::new(
        files
            .into_iter()
            .find(|file| framework.get::<FileData>(*file).is_ok_and(|file| is_it(file)))
            .unwrap_or(0),
    )
}
