//! Values that are hidden from the optimizer, so that it generates shorter code.

/// Returns the value. `reg` is its register class.
macro_rules! hide {
    ($value:ident) => {
        #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
        #[allow(
            clippy::pointers_in_nomem_asm_block,
            reason = "there are no instructions, so none uses the pointer"
        )]
        // SAFETY: there are no instructions, so the register keeps its value.
        unsafe {
            core::arch::asm!(
                "/* {0} */", inout(reg) $value, options(pure, nomem, nostack, preserves_flags),
            );
        }
    };
}

/// Returns the number.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
#[cfg_attr(
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
    expect(unused_mut, reason = "the value is not hidden")
)]
pub fn number(mut number: u64) -> u64 {
    hide!(number);
    number
}

/// Returns the reference.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
#[cfg_attr(
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
    expect(unused_mut, reason = "the pointer is not hidden")
)]
pub fn reference<T>(reference: &T) -> &T {
    let mut pointer = core::ptr::from_ref(reference);
    hide!(pointer);
    // SAFETY: the pointer is the reference's.
    unsafe { core::hint::assert_unchecked(!pointer.is_null()) };
    // SAFETY: the pointer is the reference's.
    unsafe { &*pointer }
}

/// Returns the slice. The compiler still knows its length.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
#[cfg_attr(
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
    expect(unused_mut, reason = "the pointer is not hidden")
)]
pub fn slice<T>(reference: &[T]) -> &[T] {
    let mut pointer = reference.as_ptr();
    hide!(pointer);
    // SAFETY: the pointer is the reference's.
    unsafe { core::hint::assert_unchecked(!pointer.is_null()) };
    // SAFETY: the pointer and the length are the reference's.
    unsafe { core::slice::from_raw_parts(pointer, reference.len()) }
}
