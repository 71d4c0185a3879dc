//! The memory routines that compilers call implicitly. They do not count as kernel calls: they have
//! no gateway, no IRQL limit, and no entry in a thread's call history.

/// Returns the routines, each with its address.
pub fn routines() -> [(&'static str, u64); 5] {
    [
        ("memcpy", memcpy as *const () as u64),
        ("memmove", memmove as *const () as u64),
        ("memset", memset as *const () as u64),
        ("memcmp", memcmp as *const () as u64),
        ("strlen", strlen as *const () as u64),
    ]
}

const extern "win64" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the driver's compiler generated the call; a wrong address faults here as it would in
    // the driver.
    unsafe { core::ptr::copy_nonoverlapping(from, to, count) };
    to
}

const extern "win64" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: as for `memcpy`.
    unsafe { core::ptr::copy(from, to, count) };
    to
}

const extern "win64" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    let [byte, ..] = byte.to_le_bytes();
    // SAFETY: as for `memcpy`.
    unsafe { core::ptr::write_bytes(to, byte, count) };
    to
}

const extern "win64" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: as for `memcpy`.
    while unsafe { text.wrapping_add(length).read() } != 0 {
        length += 1;
    }
    length
}

extern "win64" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: as for `memcpy`.
        let a = unsafe { one.wrapping_add(at).read() };
        // SAFETY: as for `memcpy`.
        let b = unsafe { other.wrapping_add(at).read() };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}
