//! The workspace's own driver: what the commands that are about it pass to the tools.

/// The driver's package and the name of its image.
pub const DRIVER: (&str, &str) = ("etw-sample-driver", "etw_sample_driver");
/// The hardware id of the driver's device, as in `etw-sample-interface`.
pub const HARDWARE_ID: &str = r"Root\EtwSampleDriver";
/// The name and the GUID of the driver's provider, as in `etw-sample-interface`.
pub const PROVIDER: (&str, &str) = ("WdkEtw.SampleDriver", "802b686a-519d-5416-5280-4c0ead585fbb");
/// The driver's description in signatures.
pub const DESCRIPTION: &str = "The sample driver of wdk-etw";
/// The name of sessions in the tracing instructions.
pub const SESSION: &str = "sample";
/// The title of the tracing instructions.
pub const TITLE: &str = "Trace the sample driver";
/// The link to the installation instructions.
pub const GUIDE: &str = "[the VM guide](vm-guide.md)";
/// The package of the client, and its program.
pub const CLIENT: &str = "etw-sample-client";
/// The scripts and notes of the driver's package, from the workspace's root.
pub const PACKAGE_FILES: &str = "tools/xtask/src/package";

#[cfg(test)]
mod tests {
    #[test]
    fn the_hardware_id_is_the_interfaces() {
        assert_eq!(super::HARDWARE_ID, etw_sample_interface::HARDWARE_ID);
        assert_eq!(super::PROVIDER.0, etw_sample_interface::PROVIDER_NAME);
        // The manifest, which is made from the declaration, has the GUID.
        let manifest = include_str!("../../../inf/etw_sample_driver.man");
        let (_, guid) = super::PROVIDER;
        assert!(manifest.contains(&format!("guid=\"{{{guid}}}\"")));
    }
}
