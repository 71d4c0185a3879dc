//! Functions of user-mode libraries that published crates refer to in code that a driver does not use.
//!
//! `tracelogging` has a function that makes a random GUID by rpcrt4.dll, in kernel mode too. The
//! function has to be resolved in builds without optimization, and is then dropped with the code that
//! calls it.

#[link(name = "rpcrt4.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// Makes a random GUID, in a process.
    #[expect(dead_code, reason = "only the linker needs it")]
    fn UuidCreate(id: *mut [u8; 16]) -> i32;
}
