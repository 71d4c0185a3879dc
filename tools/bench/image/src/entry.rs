//! The entry point of the image with the loops.

/// Registers the providers that the loops write to.
#[unsafe(no_mangle)]
pub extern "system" fn DriverEntry(_driver: usize, _registry_path: usize) -> u32 {
    crate::ours::ours_register();
    crate::helpers::helpers_register();
    crate::peer::peer_register();
    0
}
