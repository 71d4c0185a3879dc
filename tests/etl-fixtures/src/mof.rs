//! A class of classic events in MOF, and its events.

use etl_file::Guid;
use etl_file::write::ClassicRecord;

/// The class.
pub const CLASS: Guid = Guid::from_u128(0x3f2a_11c0_0dbe_11d2_895b_00c0_4f79_ab01);

/// Classes as a Windows 2000 provider publishes them, and as the WMI repository exports them.
pub const MOF: &str = r#"
#pragma autorecover
#pragma namespace("\\\\.\\root\\wmi")
// The provider.
[Dynamic, Description("Contoso" " trace") : amended,
 guid("{3f2a11c0-0dbe-11d2-895b-00c04f79ab01}") : ToSubclass, locale("MS\\0x409")]
class Contoso : EventTrace { };

[Dynamic: ToInstance, EventVersion(2): DisableOverride] class Contoso_V2 : Contoso { };

/* Two events with
   the same fields. */
[Dynamic, EventType{1, 0x2}, EventTypeName{"Start", "End"}]
class Contoso_Type : Contoso_V2
{
    [WmiDataId(2), read] uint32 Kind;
    [WmiDataId(1), StringTermination("NullTerminated"), format("w"), read] string Client;
    [WmiDataId(3), format("x"), read] uint32 Flags = 5;
    [WmiDataId(4), extension("IPAddr"), read] object Address;
    [WmiDataId(5), pointer, read] uint32 Object;
    [WmiDataId(6), read] boolean IsOn;
    [WmiDataId(7), read] real32 Ratio;
    [WmiDataId(8), StringTermination("Counted"), read] string Tag;
    [WmiDataId(9), read] uint8 Bytes[2];
    [WmiDataId(10), extension("Variant"), read] object More;
    [WmiDataId(11), read] uint32 Never;
    [Implemented] uint32 Method([in] uint32 a);
};
[EventType(3)] class Contoso_Old : Contoso { [WmiDataId(1)] string Name; };
instance of __Win32Provider { Name = "x"; };
"#;

/// Returns the data of an event of version 2.
pub fn payload() -> Vec<u8> {
    let mut data: Vec<u8> = "pc\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    data.extend([6, 0, 0, 0, 0xff, 0xff, 0x2f, 0x21, 10, 0, 0, 1]);
    data.extend([0x10, 0, 0, 0, 0, 0x80, 0xFF, 0xFF, 1, 0, 0, 0]);
    data.extend(0.5_f32.to_le_bytes());
    data.extend([3, 0, b't', b'a', b'g', 0xAA, 0xBB, 9, 9, 9, 9]);
    data
}

/// Returns an event.
pub fn record(opcode: u8, version: u16) -> ClassicRecord {
    ClassicRecord { class: CLASS, opcode, version, payload: payload(), ..ClassicRecord::default() }
}
