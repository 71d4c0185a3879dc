//! The mode that the crate is compiled for, checked where a provider is declared.

/// True if the crate is compiled for user mode.
pub const USER_MODE: bool = cfg!(feature = "user-mode");

/// Fails, at compile time, in a kernel-mode driver if the crate is compiled for user mode.
///
/// # Panics
///
/// Panics if `user_mode`, which is [`USER_MODE`].
pub const fn assert_kernel_mode(user_mode: bool) {
    assert!(
        !user_mode,
        "this package is a kernel-mode driver, but `wdk-etw` is compiled with its feature \
         `user-mode`, for programs: the driver would call advapi32.dll. If another package of the \
         same build needs the feature, build the driver alone: `cargo build --package <driver>`"
    );
}

/// Fails, at compile time, in a program or a UMDF driver if the crate is compiled for kernel mode.
///
/// # Panics
///
/// Panics unless `user_mode`, which is [`USER_MODE`].
pub const fn assert_user_mode(user_mode: bool) {
    assert!(
        user_mode,
        "this package runs in user mode, but `wdk-etw` is compiled for kernel-mode drivers: it \
         would call ntoskrnl.exe. Enable the feature `user-mode` of `wdk-etw` in this package's \
         Cargo.toml"
    );
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_crate_for_the_packages_mode_is_accepted() {
        assert_kernel_mode(false);
        assert_user_mode(true);
    }

    #[test]
    #[should_panic(expected = "this package is a kernel-mode driver")]
    fn a_driver_needs_the_crate_for_kernel_mode() {
        assert_kernel_mode(true);
    }

    #[test]
    #[should_panic(expected = "this package runs in user mode")]
    fn a_program_needs_the_crate_for_user_mode() {
        assert_user_mode(false);
    }
}
