//! Windows' setup classes for vendors' drivers.
//!
//! Sources: "System-Defined Device Setup Classes Available to Vendors" and "File System Filter Driver
//! Classes and Class GUIDs" in Microsoft's driver documentation.

/// The GUID of the "System" class.
pub const SYSTEM: &str = "{4d36e97d-e325-11ce-bfc1-08002be10318}";

/// The names and GUIDs of the classes.
const CLASSES: [(&str, &str); 55] = [
    ("Battery", "{72631e54-78a4-11d0-bcf7-00aa00b7b32a}"),
    ("Biometric", "{53d29ef7-377c-4d14-864b-eb3a85769359}"),
    ("Bluetooth", "{e0cbf06c-cd8b-4647-bb8a-263b43f0f974}"),
    ("Camera", "{ca3e7ab9-b4c3-4ae6-8251-579ef933890f}"),
    ("CDROM", "{4d36e965-e325-11ce-bfc1-08002be10318}"),
    ("DiskDrive", "{4d36e967-e325-11ce-bfc1-08002be10318}"),
    ("Display", "{4d36e968-e325-11ce-bfc1-08002be10318}"),
    ("Extension", "{e2f84ce7-8efa-411c-aa69-97454ca4cb57}"),
    ("Firmware", "{f2e7dd72-6468-4e36-b6f1-6488f42c1b52}"),
    ("HDC", "{4d36e96a-e325-11ce-bfc1-08002be10318}"),
    ("HIDClass", "{745a17a0-74d3-11d0-b6fe-00a0c90f57da}"),
    ("Image", "{6bdd1fc6-810f-11d0-bec7-08002be2092f}"),
    ("Infrared", "{6bdd1fc5-810f-11d0-bec7-08002be2092f}"),
    ("Keyboard", "{4d36e96b-e325-11ce-bfc1-08002be10318}"),
    ("MEDIA", "{4d36e96c-e325-11ce-bfc1-08002be10318}"),
    ("Modem", "{4d36e96d-e325-11ce-bfc1-08002be10318}"),
    ("Monitor", "{4d36e96e-e325-11ce-bfc1-08002be10318}"),
    ("Mouse", "{4d36e96f-e325-11ce-bfc1-08002be10318}"),
    ("MTD", "{4d36e970-e325-11ce-bfc1-08002be10318}"),
    ("Multifunction", "{4d36e971-e325-11ce-bfc1-08002be10318}"),
    ("Net", "{4d36e972-e325-11ce-bfc1-08002be10318}"),
    ("PCMCIA", "{4d36e977-e325-11ce-bfc1-08002be10318}"),
    ("Ports", "{4d36e978-e325-11ce-bfc1-08002be10318}"),
    ("Printer", "{4d36e979-e325-11ce-bfc1-08002be10318}"),
    ("Proximity", "{5630831c-06c9-4856-b327-f5d32586e060}"),
    ("Sample", "{78a1c341-4539-11d3-b88d-00c04fad5171}"),
    ("SCSIAdapter", "{4d36e97b-e325-11ce-bfc1-08002be10318}"),
    ("SecurityDevices", "{d94ee5d8-d189-4994-83d2-f68d7d41b0e6}"),
    ("Sensor", "{5175d334-c371-4806-b3ba-71fd53c9258d}"),
    ("SmartCardReader", "{50dd5230-ba8a-11d1-bf5d-0000f805f530}"),
    ("SoftwareComponent", "{5c4c3332-344d-483c-8739-259e934c9cc8}"),
    ("System", SYSTEM),
    ("USB", "{36fc9e60-c465-11cf-8056-444553540000}"),
    ("USBDevice", "{88bae032-5a81-49f0-bc3d-a4ff138216d6}"),
    ("Volume", "{71a27cdd-812a-11d0-bec7-08002be2092f}"),
    ("WPD", "{eec5ad98-8080-425f-922a-dabf3de3f69a}"),
    // Filters of file systems, by load order.
    ("ActivityMonitor", "{b86dff51-a31e-4bac-b3cf-e8cfe75c9fc2}"),
    ("Undelete", "{fe8f1572-c67a-48c0-bbac-0b5c6d66cafb}"),
    ("AntiVirus", "{b1d1a169-c54f-4379-81db-bee7d88d7454}"),
    ("Replication", "{48d3ebc4-4cf8-48ff-b869-9c68ad42eb9f}"),
    ("ContinuousBackup", "{71aa14f8-6fad-4622-ad77-92bb9d7e6947}"),
    ("ContentScreener", "{3e3f0674-c83c-4558-bb26-9820e1eba5c5}"),
    ("QuotaManagement", "{8503c911-a6c7-4919-8f79-5028f5866b0c}"),
    ("SystemRecovery", "{2db15374-706e-4131-a0c7-d7c78eb0289a}"),
    ("CFSMetaDataServer", "{cdcf0939-b75b-4630-bf76-80f7ba655884}"),
    ("HSM", "{d546500a-2aeb-45f6-9482-f4b1799c3177}"),
    ("Compression", "{f3586baf-b5aa-49b5-8d6c-0569284c639f}"),
    ("Encryption", "{a0a701c0-a511-42ff-aa6c-06dc0395576f}"),
    ("Virtualization", "{f75a86c0-10d8-4c3a-b233-ed60e4cdfaac}"),
    ("PhysicalQuotaManagement", "{6a0a8e78-bba6-4fc4-a709-1e33cd09d67e}"),
    ("OpenFileBackup", "{f8ecafa6-66d1-41a5-899b-66585d7216b7}"),
    ("SecurityEnhancer", "{d02bc3da-0c8e-4945-9bd5-f1883c226c8c}"),
    ("CopyProtection", "{89786ff1-9c12-402f-9c9e-17753c7f4375}"),
    ("FSFilterSystem", "{5d1b9aaa-01e2-46af-849f-272b3f324c46}"),
    ("Infrastructure", "{e55fa6f9-128c-4d04-abab-630c74b1453a}"),
];

/// Returns the name of the class with this GUID.
pub fn name(guid: &str) -> Option<&'static str> {
    let found = CLASSES.iter().find(|(_, known)| known.eq_ignore_ascii_case(guid));
    found.map(|(name, _)| *name)
}

/// Returns the GUID of the class with this name.
#[must_use]
pub fn guid(name: &str) -> Option<&'static str> {
    let found = CLASSES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, guid)| *guid)
}
