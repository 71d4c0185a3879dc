//! Processes, as seen by drivers. They are found by id or by request, and threads attach to them.
//!
//! A process is known once a driver has run in it or has read its id, or once a test has started
//! it. All processes share this program's address space, so a thread that attaches to a process
//! sees the same memory.

use zerocopy::FromZeros;

use crate::{
    execution::{
        identity::Identity,
        kinds::NtObject,
        routine::{At, Handle, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{ApcState, Irp, UnicodeString},
        opaque::{KernelProcess, KernelThread},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        crt::code_page,
        ke::{
            apcs,
            dispatcher::set_state,
            thread_objects::{
                FILE_NAME, FILE_NAME_SIZE, attach, current_process, identity_of, image_of,
                is_attached, is_running, process_end, process_object, process_of, thread_by_id,
            },
        },
        mm::virtual_memory,
        ob::handles,
        rtl::strings,
    },
};

pub const ENTRIES: Entries = &[
    routine("PsLookupProcessByProcessId", lookup_process),
    routine("PsLookupThreadByThreadId", lookup_thread),
    routine("PsGetProcessCreateTimeQuadPart", create_time),
    routine("PsGetProcessExitStatus", exit_status),
    routine("IoThreadToProcess", thread_to_process),
    routine("IoGetRequestorProcess", requestor),
    routine("IoGetRequestorProcessId", requestor_id),
    routine("IoGetRequestorSessionId", requestor_session),
    routine("PsGetThreadProcess", thread_to_process),
    routine("PsGetProcessExitTime", exit_time),
    routine("SeLocateProcessImageName", locate_image),
    routine("PsGetProcessImageFileName", image_file_name),
    routine("KeAttachProcess", attach_once),
    routine("KeDetachProcess", detach_once),
    routine("IoIs32bitProcess", is_32_bit),
    routine("KeStackAttachProcess", stack_attach),
    routine("KeUnstackDetachProcess", unstack_detach),
];

/// Finds a process by its id, and adds a reference to it.
fn lookup_process(context: &Context, id: Handle<NtObject>, process: At<u64>) -> NtResult {
    let running = u32::try_from(id.0).ok().filter(|id| is_running(context, *id));
    let id = running.ok_or(NtStatus::INVALID_PARAMETER)?;
    let object = process_object(context.ntoskrnl(), id);
    handles::reference(context, At::new(object));
    process.write(context, object);
    Ok(())
}

/// `STATUS_INVALID_CID`.
const INVALID_CID: NtStatus = NtStatus::from_bits(0xC000_000B);

/// Finds a thread by its id, and adds a reference to it.
fn lookup_thread(context: &Context, id: Handle<NtObject>, thread: At<u64>) -> NtResult {
    let found = u32::try_from(id.0).ok().and_then(|id| thread_by_id(context, id));
    // The documentation's status for this case is from Windows XP.
    let object = found.ok_or(INVALID_CID)?;
    handles::reference(context, At::new(object));
    thread.write(context, object);
    Ok(())
}

/// Returns the id and start time of a process. Bugchecks if no process object is at the address.
pub fn known(context: &Context, object: u64) -> (u32, i64) {
    process_of(context, object)
        .unwrap_or_else(|| context.stop_for_wrong(object, "a process object"))
}

fn create_time(context: &Context, process: At<KernelProcess>) -> i64 {
    let (_, created) = known(context, process.0);
    context.clock().file_time(created)
}

fn exit_status(context: &Context, process: At<KernelProcess>) -> NtStatus {
    let (id, _) = known(context, process.0);
    process_end(context, id, None).unwrap_or(NtStatus::PENDING)
}

/// Returns the exit time of the current process. It is 0, because a thread of the process is
/// running.
const fn exit_time(_context: &Context) -> u64 {
    0
}

fn thread_to_process(context: &Context, thread: At<KernelThread>) -> At<KernelProcess> {
    let Some(identity) = identity_of(context, thread.0) else {
        context.stop_for_wrong(thread.0, "a thread object");
    };
    At::new(process_object(context.ntoskrnl(), identity.process))
}

/// Returns the process of the thread that sent a request, if the request has a thread.
fn of_request(context: &Context, irp: u64) -> Option<u32> {
    /// The index of the thread in a request's tail.
    const THREAD: usize = 4;
    let value: Irp = context.read(irp);
    let thread = value.tail.get(THREAD).copied()?;
    identity_of(context, thread).map(|identity| identity.process)
}

fn requestor(context: &Context, irp: At<Irp>) -> At<KernelProcess> {
    let process = of_request(context, irp.0);
    process.map_or(At::NULL, |id| At::new(process_object(context.ntoskrnl(), id)))
}

fn requestor_id(context: &Context, irp: At<Irp>) -> u32 {
    let process = of_request(context, irp.0);
    if let Some(id) = process {
        // From now on, the driver can look up the process.
        process_object(context.ntoskrnl(), id);
    }
    process.unwrap_or(0)
}

/// Returns the session of a process: the services session for the system process, and the console
/// session for other processes.
pub const fn session_of(process: u32) -> u32 {
    const CONSOLE: u32 = 1;
    if process == Identity::SYSTEM.process { 0 } else { CONSOLE }
}

/// Returns the session of a request's process.
fn requestor_session(context: &Context, irp: At<Irp>, session_id: At<u32>) -> NtResult {
    let session = of_request(context, irp.0).map(session_of);
    session_id.write(context, session.unwrap_or(u32::MAX));
    session.map(drop).ok_or(NtStatus::UNSUCCESSFUL)
}

/// Returns whether a request is from a 32-bit process. The stand-in kernel has no such processes.
const fn is_32_bit(_context: &Context, _irp: At<Irp>) -> bool {
    false
}

fn stack_attach(context: &Context, process: At<KernelProcess>, state: At<ApcState>) {
    known(context, process.0);
    let value = ApcState { process: current_process(context).0, ..ApcState::new_zeroed() };
    state.write(context, value);
    attach(context, Some(process.0));
}

fn unstack_detach(context: &Context, state: At<ApcState>) {
    state.read(context);
    if !attach(context, None) {
        context.stop_for_misuse("by a thread that is not attached to a process");
    }
    apcs::deliver(context);
}

/// Returns the path of a process's image, in the form that file systems use. System processes have
/// no path, and the image of a process that a test started without a path is `client.exe`.
pub fn image_path(context: &Context, process: u32) -> String {
    const VOLUME: &str = r"\Device\HarddiskVolume1";
    if [Identity::IDLE.process, Identity::SYSTEM.process].contains(&process) {
        return String::new();
    }
    let path = image_of(context, process).unwrap_or_else(|| r"\??\C:\client.exe".to_owned());
    let letter = path.get(..6).unwrap_or_default();
    if letter.eq_ignore_ascii_case(r"\??\c:") {
        return VOLUME.to_owned() + path.get(6..).unwrap_or_default();
    }
    path
}

/// Allocates a string with the path of a process's image, which the caller frees.
fn locate_image(
    context: &Context,
    process: At<KernelProcess>,
    image_file_name: At<u64>,
) -> NtResult {
    const HEADER: usize = size_of::<UnicodeString>();
    let (id, _) = known(context, process.0);
    let units: Vec<u16> = image_path(context, id).encode_utf16().collect();
    let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let length = u16::try_from(bytes.len()).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    // The buffer is zeroed, which terminates the string.
    let string = strings::new_buffer(context, HEADER + bytes.len() + 2);
    if string == 0 {
        return Err(NtStatus::NO_MEMORY);
    }
    let value = UnicodeString {
        length,
        maximum_length: length.saturating_add(2),
        buffer: string.wrapping_add(HEADER as u64),
        ..Default::default()
    };
    context.write_bytes(value.buffer, &bytes);
    context.write(string, &value);
    image_file_name.write(context, string);
    Ok(())
}

/// Returns the address of a process's image file name, which is truncated to 14 characters.
fn image_file_name(context: &Context, process: At<KernelProcess>) -> At<i8> {
    let (id, _) = known(context, process.0);
    let path = image_path(context, id);
    let name = match path.rsplit('\\').next() {
        Some("") | None if id == Identity::IDLE.process => "Idle",
        Some("") | None => "System",
        Some(name) => name,
    };
    let mut bytes: Vec<u8> = name.encode_utf16().map(code_page::to_byte).collect();
    bytes.truncate(FILE_NAME_SIZE - 1);
    bytes.resize(FILE_NAME_SIZE, 0);
    let at = process.0.wrapping_add(FILE_NAME);
    context.write_bytes(at, &bytes);
    At::new(at)
}

/// Attaches the thread to a process, unless the thread is already in that process. The thread must
/// not be attached to another process.
fn attach_once(context: &Context, process: At<KernelProcess>) {
    known(context, process.0);
    if current_process(context).0 == process.0 {
        return;
    }
    if is_attached(context) {
        context.stop_for_misuse(
            "by a thread that is attached to another process; KeStackAttachProcess can be nested",
        );
    }
    attach(context, Some(process.0));
}

/// Detaches the thread from the process to which it is attached, if any.
fn detach_once(context: &Context) {
    if is_attached(context) {
        attach(context, None);
        apcs::deliver(context);
    }
}

/// The exit status of a process that a test ends.
pub const EXIT_STATUS: NtStatus = NtStatus::SUCCESS;

/// Records that a process has ended. Waits for the process then end.
pub fn end(context: &Context, process: u32) {
    let object = process_object(context.ntoskrnl(), process);
    process_end(context, process, Some(EXIT_STATUS));
    handles::close_all_of(context, process);
    virtual_memory::free_all_of(context, object);
    set_state(context, object, 1);
}
