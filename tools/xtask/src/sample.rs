//! The sample driver's values, which commands pass to the tools.

/// The driver's package and its image's name.
pub const DRIVER: (&str, &str) = ("etw-sample-driver", "etw_sample_driver");
/// The hardware ID of the driver's device, as in `etw-sample-interface`.
pub const HARDWARE_ID: &str = r"Root\EtwSampleDriver";
/// The name and the GUID of the driver's provider, as in `etw-sample-interface`.
pub const PROVIDER: (&str, &str) = ("WdkEtw.SampleDriver", "802b686a-519d-5416-5280-4c0ead585fbb");
/// The driver's description in signatures.
pub const DESCRIPTION: &str = "The sample driver of wdk-etw";
/// The sessions' name in the tracing instructions.
pub const SESSION: &str = "sample";
/// The title of the tracing instructions.
pub const TITLE: &str = "Trace the sample driver";
/// The link to the installation instructions.
pub const GUIDE: &str = "[the VM guide](vm-guide.md)";
/// The name of the client's package and program.
pub const CLIENT: &str = "etw-sample-client";
/// The scripts and notes in the driver's package, relative to the workspace's root.
pub const PACKAGE_FILES: &str = "tools/xtask/src/package";

#[cfg(test)]
mod tests {
    #[test]
    fn the_hardware_id_is_the_interfaces() {
        assert_eq!(super::HARDWARE_ID, etw_sample_interface::HARDWARE_ID);
        assert_eq!(super::PROVIDER.0, etw_sample_interface::PROVIDER_NAME);
        // The manifest, generated from the declaration, contains the GUID.
        let manifest = include_str!("../../../inf/etw_sample_driver.man");
        let (_, guid) = super::PROVIDER;
        assert!(manifest.contains(&format!("guid=\"{{{guid}}}\"")));
    }
}
