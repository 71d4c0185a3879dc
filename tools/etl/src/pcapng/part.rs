//! The events of Microsoft-Windows-NDIS-PacketCapture.

use etw_wire::Guid;
use pcap_file::DataLink;

use etl_file::EventRef;
use etl_file::internals::show::Escaped;

/// Microsoft-Windows-NDIS-PacketCapture.
pub const PROVIDER: Guid = Guid::from_u128(0x2ed6_006e_4729_4609_b423_3ee7_bcd6_78ef);

/// The ids of the events with fragments of packets, with metadata, and with fragments in a virtual switch.
const FRAGMENT: u16 = 1001;
const METADATA: u16 = 1002;
const SWITCH_FRAGMENT: u16 = 1003;

/// Keywords of the provider's events (ETL-16.2).
pub mod keyword {
    /// The bits for the medium.
    pub const MEDIA: u64 = 0xFF_FFFF;
    /// The first fragment of a packet.
    pub const START: u64 = 0x4000_0000;
    /// The last fragment of a packet.
    pub const END: u64 = 0x8000_0000;
    /// The packet is sent.
    pub const SEND: u64 = 0x1_0000_0000;
    /// The packet is received.
    pub const RECEIVE: u64 = 0x2_0000_0000;
    /// The packet is longer than the event's data.
    pub const TRUNCATED: u64 = 0x200_0000;
}

/// The form of the packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Medium {
    Ethernet,
    WirelessWan,
    Tunnel,
    Wlan,
}

/// The media with their keywords.
const MEDIA: [(u64, Medium); 4] = [
    (0x1_0000, Medium::Wlan),
    (0x8000, Medium::Tunnel),
    (0x200, Medium::WirelessWan),
    (0x1, Medium::Ethernet),
];

impl Medium {
    /// Returns the medium of an event, if pcapng defines a form for the medium's packets.
    pub fn from_event(event: &EventRef<'_>, packet: &[u8]) -> Option<Self> {
        let bits = event.descriptor.keyword & keyword::MEDIA;
        let named = MEDIA.iter().find(|(bit, _)| bits & bit != 0).map(|(_, medium)| *medium);
        match named {
            // No source describes the packets of tunnels.
            Some(Self::Tunnel) => ip_version(packet).is_some().then_some(Self::Tunnel),
            // A virtual switch accepts only Ethernet packets.
            None if bits == 0 && event.descriptor.id == SWITCH_FRAGMENT => Some(Self::Ethernet),
            named => named,
        }
    }

    pub const fn link(self) -> DataLink {
        match self {
            Self::Ethernet => DataLink::ETHERNET,
            Self::WirelessWan | Self::Tunnel => DataLink::RAW,
            Self::Wlan => DataLink::IEEE802_11,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::WirelessWan => "wireless WAN",
            Self::Tunnel => "tunnel",
            Self::Wlan => "802.11",
        }
    }

    /// Returns the length of a packet as its IP header states it, or 0.
    pub fn stated_length(self, packet: &[u8]) -> usize {
        const ADDRESSES: usize = 12;
        const TAG: usize = 4;
        let mut start = 0;
        if self == Self::Ethernet {
            start = ADDRESSES;
            // Tags of VLANs: 802.1Q, 802.1ad, and an older form of the latter.
            while let Some([0x81 | 0x91, 0x00] | [0x88, 0xA8]) = packet.get(start..start + 2) {
                start += TAG;
            }
            let Some([0x08, 0x00] | [0x86, 0xDD]) = packet.get(start..start + 2) else {
                return 0;
            };
            start += 2;
        } else if self == Self::Wlan {
            return 0;
        }
        let ip = packet.get(start..).unwrap_or_default();
        let at = |at: usize| {
            let bytes = ip.get(at..)?.first_chunk()?;
            Some(usize::from(u16::from_be_bytes(*bytes)))
        };
        let length = match ip_version(ip) {
            Some(4) => at(2),
            Some(6) => at(4).map(|payload| payload + 40),
            _ => None,
        };
        length.map_or(0, |length| start + length)
    }
}

/// Returns the version of an IP packet, 4 or 6.
fn ip_version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|byte| byte >> 4).filter(|version| matches!(version, 4 | 6))
}

/// A port of a virtual switch.
#[derive(Clone, Debug)]
pub struct Port {
    pub id: u32,
    pub name: String,
    pub nic: String,
    pub nic_type: String,
    /// The VLAN of the packet, if it has one.
    pub vlan: u16,
}

/// The contents of an event.
pub enum Content<'a> {
    Fragment { bytes: &'a [u8], port: Option<Port> },
    Metadata { radio: Option<String> },
}

/// An event of the provider that belongs to a packet.
pub struct Part<'a> {
    /// The interface index of the adapter.
    pub miniport: u32,
    /// The interface index of the layer below the capturing filter.
    pub lower: u32,
    pub content: Content<'a>,
}

/// Returns true for an event with a part of a packet.
pub fn is_part(event: &EventRef<'_>) -> bool {
    event.provider == PROVIDER
        && matches!(event.descriptor.id, FRAGMENT | METADATA | SWITCH_FRAGMENT)
}

impl<'a> Part<'a> {
    /// Reads a payload. Returns `None` if it ends within a field.
    pub fn read(event: &EventRef<'a>) -> Option<Self> {
        let mut data = event.user_data;
        let c = &mut data;
        let (miniport, lower) = (u32(c)?, u32(c)?);
        let content = match event.descriptor.id {
            METADATA => Content::Metadata { radio: radio(sized(c)?) },
            SWITCH_FRAGMENT => {
                let id = u32(c)?;
                let mut text = || utf16(c);
                let (name, nic, nic_type) = (text()?, text()?, text()?);
                for _ in 0..u32(c)? {
                    // A destination: its port, and three names.
                    u32(c)?;
                    for _ in 0..3 {
                        utf16(c)?;
                    }
                }
                let bytes = sized(c)?;
                let vlan = vlan(sized(c)?, event.pointer_size.bytes());
                let port = Port { id, name, nic, nic_type, vlan: vlan.unwrap_or(0) };
                Content::Fragment { bytes, port: Some(port) }
            }
            _ => Content::Fragment { bytes: sized(c)?, port: None },
        };
        Some(Self { miniport, lower, content })
    }
}

/// Consumes the next bytes; if fewer remain, consumes none.
fn array<const N: usize>(c: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = c.split_first_chunk()?;
    *c = rest;
    Some(*taken)
}

fn u32(c: &mut &[u8]) -> Option<u32> {
    array(c).map(u32::from_le_bytes)
}

/// Reads bytes that follow their number.
fn sized<'a>(c: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = u32(c)?;
    c.split_off(..size.try_into().ok()?)
}

/// Reads a string with its terminator.
fn utf16(c: &mut &[u8]) -> Option<String> {
    let units = c.as_chunks::<2>().0.iter();
    let units = units.map(|unit| u16::from_le_bytes(*unit)).take_while(|unit| *unit != 0);
    let units: Vec<u16> = units.collect();
    c.split_off(..2 * units.len())?;
    array::<2>(c)?;
    Some(printable(&String::from_utf16_lossy(&units)))
}

/// The maximum number of characters of a string; a pcapng option can be at most 65,535 bytes long.
const MAX_TEXT: usize = 256;

/// Returns text in the form in which it is written: on one line, without control characters, and
/// cut if it is too long.
pub fn printable(text: &str) -> String {
    let short: String = text.chars().take(MAX_TEXT).collect();
    Escaped(&short).to_string()
}

/// Returns the VLAN in the out-of-band data of a packet, an array of pointers: `Ieee8021QNetBufferListInfo`
/// is the fifth.
fn vlan(oob: &[u8], pointer_size: usize) -> Option<u16> {
    let info = u32(&mut oob.get(4 * pointer_size..)?)?;
    u16::try_from((info >> 4) & 0xFFF).ok()
}

/// Describes the reception of an 802.11 packet: `DOT11_EXTSTA_RECV_CONTEXT`.
fn radio(bytes: &[u8]) -> Option<String> {
    let c = &mut &*bytes;
    array::<8>(c)?; // header, flags
    let (phy, frequency) = (u32(c)?, u32(c)?);
    u32(c)?; // number of MPDUs
    let (rssi, [rate]) = (array(c).map(i32::from_le_bytes)?, array(c)?);
    let rate = f64::from(rate) / 2.0;
    Some(format!("PHY {phy}, {frequency} MHz, {rssi} dBm, {rate} Mbit/s"))
}
