//! User-mode functions that published crates refer to in code that drivers do not use.
//!
//! `tracelogging` has a function that creates a random GUID with rpcrt4.dll, even in kernel mode.
//! In unoptimized builds, the symbol must be resolved, although it is then dropped with the code
//! that calls it.

#[link(name = "rpcrt4.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// Creates a random GUID, in user mode.
    #[expect(dead_code, reason = "only the linker needs it")]
    fn UuidCreate(id: *mut [u8; 16]) -> i32;
}
