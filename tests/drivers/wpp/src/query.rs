//! Queries about sessions.

use core::ptr;

use etw_driver_support::{nt, utf16};
use wdk_sys::{GUID, NT_SUCCESS, NTSTATUS, PVOID, ULONG, UNICODE_STRING};

/// `TRACE_INFORMATION_CLASS`.
const ID: i32 = 0;
const HANDLE: i32 = 1;
pub const ENABLE_FLAGS: i32 = 2;
pub const ENABLE_LEVEL: i32 = 3;
const GLOBAL_LOGGER: i32 = 4;
const ALL_HANDLES: i32 = 6;
const HANDLE_BY_NAME: i32 = 7;

/// `WNODE_HEADER`.
#[repr(C)]
pub struct Wnode {
    pub size: u32,
    pub provider: u32,
    pub historical_context: u64,
    pub timestamp: i64,
    pub guid: GUID,
    pub client_context: u32,
    pub flags: u32,
}

fn ask<T>(class: i32, answer: &mut T, input: PVOID) -> (NTSTATUS, ULONG) {
    let mut required = 0;
    let status = nt!(
        WmiQueryTraceInformation,
        class,
        ptr::from_mut(answer).cast(),
        size_of::<T>() as ULONG,
        &raw mut required,
        input,
    );
    (status, required)
}

/// Returns a number that describes a trace handle's session.
pub fn number(class: i32, wnode: &Wnode) -> Option<u32> {
    let mut answer = 0_u32;
    let input = ptr::from_ref(wnode).cast_mut().cast();
    let (status, _) = ask(class, &mut answer, input);
    NT_SUCCESS(status).then_some(answer)
}

/// Makes all queries about a trace handle's session, and prints the answers.
pub fn all(handle: u64) {
    let say = |what: &str, (status, required): (NTSTATUS, ULONG), answer: u64| {
        wdk::println!("{what}: {answer:#x}, {status:#x}, {required} bytes");
    };
    // SAFETY: zeros are a header without a session.
    let mut wnode: Wnode = unsafe { core::mem::zeroed() };
    wnode.historical_context = handle;
    let input: PVOID = (&raw mut wnode).cast();
    for (what, class) in [("id", ID), ("flags", ENABLE_FLAGS), ("level", ENABLE_LEVEL)] {
        let mut answer = 0_u32;
        let status = ask(class, &mut answer, input);
        say(what, status, answer.into());
    }
    let mut answer = 0_u64;
    let mut id = (handle & 0xFFFF) as u32;
    let status = ask(HANDLE, &mut answer, (&raw mut id).cast());
    say("handle", status, answer);
    let mut name = utf16(b"WPP");
    let mut text = UNICODE_STRING { Length: 6, MaximumLength: 6, Buffer: name.as_mut_ptr() };
    let mut answer = 0_u64;
    let status = ask(HANDLE_BY_NAME, &mut answer, (&raw mut text).cast());
    say("handle by name", status, answer);
    text.Length = 4;
    let mut answer = 0_u64;
    let status = ask(HANDLE_BY_NAME, &mut answer, (&raw mut text).cast());
    say("no such name", status, answer);
    let status = ask(GLOBAL_LOGGER, &mut answer, ptr::null_mut());
    say("global logger", status, 0);
    let mut handles = [0_u64; 2];
    let status = ask(ALL_HANDLES, &mut handles, ptr::null_mut());
    say("all handles", status, handles[0]);
    let status = ask(ENABLE_FLAGS, &mut answer, ptr::null_mut());
    say("no input", status, 0);
    let mut short = 0_u16;
    let status = ask(ENABLE_FLAGS, &mut short, input);
    say("too short", status, 0);
    let status = ask(99, &mut answer, input);
    say("no such class", status, 0);
    wnode.historical_context = 77;
    let mut answer = 0_u32;
    let input = (&raw mut wnode).cast();
    let status = ask(ENABLE_FLAGS, &mut answer, input);
    say("no such session", status, 0);
}
