//! The paths of well-known keys.

/// The control set that the system uses.
pub const CONTROL_SET: &str = r"\Registry\Machine\System\CurrentControlSet";

/// Returns the path of a service's key.
pub fn service_path(service: &str) -> String {
    format!(r"{CONTROL_SET}\Services\{service}")
}

/// Returns the path of a service's parameters key.
pub fn parameters_path(service: &str) -> String {
    format!(r"{CONTROL_SET}\Services\{service}\Parameters")
}

/// Returns the path of a device's hardware key, given its instance path.
pub fn hardware_path(instance: &str) -> String {
    format!(r"{CONTROL_SET}\Enum\{instance}\Device Parameters")
}

/// Returns the path of a device's software key, given the name of its driver key.
pub fn software_path(driver_key: &str) -> String {
    format!(r"{CONTROL_SET}\Control\Class\{driver_key}")
}

/// Returns the path of a device's key of a given type (`PLUGPLAY_REGKEY_*`), or `None` for an
/// unknown type.
pub fn device_path(instance: &str, driver_key: &str, kind: u32) -> Option<String> {
    /// `PLUGPLAY_REGKEY_DEVICE` and `PLUGPLAY_REGKEY_DRIVER`.
    const DEVICE: u32 = 1;
    const DRIVER: u32 = 2;
    /// `PLUGPLAY_REGKEY_CURRENT_HWPROFILE`.
    const HARDWARE_PROFILE: u32 = 4;
    let path = match kind & !HARDWARE_PROFILE {
        DEVICE => hardware_path(instance),
        DRIVER => software_path(driver_key),
        _ => return None,
    };
    Some(if kind & HARDWARE_PROFILE == 0 {
        path
    } else {
        path.replacen(
            CONTROL_SET,
            r"\Registry\Machine\System\CurrentControlSet\Hardware Profiles\Current\System\CurrentControlSet",
            1,
        )
    })
}
