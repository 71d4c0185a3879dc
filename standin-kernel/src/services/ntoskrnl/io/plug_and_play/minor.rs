//! The minor functions of Plug and Play and power requests.

/// `IRP_MJ_POWER`.
pub const POWER: u8 = 22;
/// `IRP_MJ_SYSTEM_CONTROL`.
pub const SYSTEM_CONTROL: u8 = 23;
/// `IRP_MJ_PNP`.
pub const PNP: u8 = 27;

/// The minor functions of `IRP_MJ_PNP` (`IRP_MN_*`).
pub mod pnp {
    pub const START: u8 = 0x00;
    pub const QUERY_REMOVE: u8 = 0x01;
    pub const REMOVE: u8 = 0x02;
    pub const CANCEL_REMOVE: u8 = 0x03;
    pub const STOP: u8 = 0x04;
    pub const QUERY_STOP: u8 = 0x05;
    pub const CANCEL_STOP: u8 = 0x06;
    pub const QUERY_RELATIONS: u8 = 0x07;
    pub const QUERY_CAPABILITIES: u8 = 0x09;
    pub const QUERY_DEVICE_TEXT: u8 = 0x0C;
    pub const QUERY_ID: u8 = 0x13;
    pub const QUERY_STATE: u8 = 0x14;
    pub const QUERY_BUS_INFORMATION: u8 = 0x15;
    pub const USAGE_NOTIFICATION: u8 = 0x16;
    pub const SURPRISE_REMOVAL: u8 = 0x17;

    /// The requests to which a driver responds with a memory block that the sender frees: queries
    /// for relations, resources, resource requirements, texts, ids and bus information.
    pub const ANSWERS: [u8; 7] =
        [QUERY_RELATIONS, 0x0A, 0x0B, QUERY_DEVICE_TEXT, 0x0D, QUERY_ID, QUERY_BUS_INFORMATION];
}

/// The minor functions of `IRP_MJ_POWER` (`IRP_MN_*`).
pub mod power {
    pub const WAIT_WAKE: u8 = 0x00;
    pub const SET: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
}

/// Returns the name of a request.
pub fn name(major: u8, minor: u8) -> String {
    const PNP_NAMES: [&str; 24] = [
        "IRP_MN_START_DEVICE", "IRP_MN_QUERY_REMOVE_DEVICE", "IRP_MN_REMOVE_DEVICE",
        "IRP_MN_CANCEL_REMOVE_DEVICE", "IRP_MN_STOP_DEVICE", "IRP_MN_QUERY_STOP_DEVICE",
        "IRP_MN_CANCEL_STOP_DEVICE", "IRP_MN_QUERY_DEVICE_RELATIONS", "IRP_MN_QUERY_INTERFACE",
        "IRP_MN_QUERY_CAPABILITIES", "IRP_MN_QUERY_RESOURCES",
        "IRP_MN_QUERY_RESOURCE_REQUIREMENTS", "IRP_MN_QUERY_DEVICE_TEXT",
        "IRP_MN_FILTER_RESOURCE_REQUIREMENTS", "", "IRP_MN_READ_CONFIG", "IRP_MN_WRITE_CONFIG",
        "IRP_MN_EJECT", "IRP_MN_SET_LOCK", "IRP_MN_QUERY_ID", "IRP_MN_QUERY_PNP_DEVICE_STATE",
        "IRP_MN_QUERY_BUS_INFORMATION", "IRP_MN_DEVICE_USAGE_NOTIFICATION",
        "IRP_MN_SURPRISE_REMOVAL",
    ];
    const POWER_NAMES: [&str; 4] =
        ["IRP_MN_WAIT_WAKE", "IRP_MN_POWER_SEQUENCE", "IRP_MN_SET_POWER", "IRP_MN_QUERY_POWER"];
    let (major_name, names): (&str, &[&str]) = match major {
        PNP => ("IRP_MJ_PNP", &PNP_NAMES),
        POWER => ("IRP_MJ_POWER", &POWER_NAMES),
        _ => ("IRP_MJ_SYSTEM_CONTROL", &[]),
    };
    match names.get(usize::from(minor)) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("{major_name} with the minor function 0x{minor:02X}"),
    }
}

/// Returns whether drivers must not fail a request.
pub const fn must_succeed(major: u8, minor: u8) -> bool {
    match major {
        PNP => matches!(
            minor,
            pnp::REMOVE | pnp::CANCEL_REMOVE | pnp::STOP | pnp::CANCEL_STOP | pnp::SURPRISE_REMOVAL
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{PNP, POWER, SYSTEM_CONTROL, name, pnp, power};

    #[test]
    fn requests_have_the_names_of_their_minor_functions() {
        assert_eq!(name(PNP, pnp::START), "IRP_MN_START_DEVICE");
        assert_eq!(name(PNP, pnp::SURPRISE_REMOVAL), "IRP_MN_SURPRISE_REMOVAL");
        assert_eq!(name(PNP, pnp::QUERY_ID), "IRP_MN_QUERY_ID");
        assert_eq!(name(POWER, power::QUERY), "IRP_MN_QUERY_POWER");
        assert_eq!(name(PNP, 0x0E), "IRP_MJ_PNP with the minor function 0x0E");
        assert_eq!(name(SYSTEM_CONTROL, 8), "IRP_MJ_SYSTEM_CONTROL with the minor function 0x08");
    }
}
