//! Events of Microsoft-Windows-NDIS-PacketCapture, with the layouts in its published manifests.

use etl_file::{EventDescriptor, EventRecord, Guid};

use crate::kernel_records::utf16;

/// Microsoft-Windows-NDIS-PacketCapture.
pub const PROVIDER: Guid = Guid::from_u128(0x2ed6_006e_4729_4609_b423_3ee7_bcd6_78ef);
/// The keyword of an Ethernet packet.
pub const ETHERNET: u64 = 0x1;
/// The keyword of a packet on a wireless WAN.
pub const WIRELESS_WAN: u64 = 0x200;
/// The keyword of a packet in a tunnel.
pub const TUNNEL: u64 = 0x8000;
/// The keyword of an 802.11 packet.
pub const WLAN: u64 = 0x1_0000;
/// The keyword of a first fragment.
pub const START: u64 = 0x4000_0000;
/// The keyword of a last fragment.
pub const END: u64 = 0x8000_0000;
/// The keywords of a packet that is contained in one event.
pub const WHOLE: u64 = START | END;
/// The keyword of a sent packet.
pub const SEND: u64 = 0x1_0000_0000;
/// The keyword of a received packet.
pub const RECEIVE: u64 = 0x2_0000_0000;
/// The keywords of every event that contains a packet: personal data, packet, and the channel.
const ALWAYS: u64 = 0x8000_0600_0000_0000;

/// Returns an event of an interface, written by the thread 68 of the process 85.
fn event(id: u16, at: i64, keywords: u64, lower: u32, rest: &[&[u8]]) -> EventRecord {
    let mut user_data = [8_u32, lower].map(u32::to_le_bytes).concat();
    user_data.extend(rest.concat());
    EventRecord {
        thread_id: 0x44,
        process_id: 0x55,
        timestamp: at,
        provider: PROVIDER,
        descriptor: EventDescriptor {
            id,
            channel: 16,
            level: 4,
            keyword: ALWAYS | keywords,
            ..EventDescriptor::default()
        },
        user_data,
        ..EventRecord::default()
    }
}

/// Returns bytes, preceded by their number.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).expect("few bytes");
    [&size.to_le_bytes(), bytes].concat()
}

/// Returns the event of a fragment on an adapter with the interface index 8, above the layer
/// `lower`.
pub fn fragment(at: i64, keywords: u64, lower: u32, bytes: &[u8]) -> EventRecord {
    // Fields of a later Windows version follow: two 64-bit numbers.
    event(1001, at, keywords, lower, &[&sized(bytes), &[0; 16]])
}

/// Returns the event that describes the reception of the next 802.11 packet: by the PHY 7, at 2,412
/// MHz, -60 dBm and 65 Mbit/s.
pub fn reception(at: i64, lower: u32) -> EventRecord {
    let mut context = vec![0x80, 1, 48, 0, 0, 0, 0, 0];
    context.extend([7_u32, 2412, 1].map(u32::to_le_bytes).concat());
    context.extend((-60_i32).to_le_bytes());
    context.push(130);
    context.resize(48, 0);
    event(1002, at, RECEIVE | WLAN, lower, &[&sized(&context)])
}

/// Returns the event of a packet that a port of a virtual switch sends in a VLAN to two other ports.
pub fn switched(at: i64, keywords: u64, port: u32, vlan: u32, bytes: &[u8]) -> EventRecord {
    let names = |of: u32| {
        let texts = [format!("Port-{of}"), format!("NIC-{of}"), "Synthetic".to_owned()];
        [&of.to_le_bytes()[..], &texts.map(|text| utf16(&text)).concat()].concat()
    };
    // The fifth pointer of the out-of-band data contains the VLAN above the priority.
    let mut oob = vec![0; 8 * 27];
    oob[32..36].copy_from_slice(&(vlan << 4 | 5).to_le_bytes());
    let destinations = [&2_u32.to_le_bytes()[..], &names(91), &names(92)].concat();
    let rest = [&names(port)[..], &destinations, &sized(bytes), &sized(&oob)];
    event(1003, at, keywords | 0x100_0000, 8, &rest)
}

/// Returns an IPv4 packet with a UDP datagram from port 5000 to port 53.
pub fn ipv4(payload: &[u8]) -> Vec<u8> {
    let length = |extra: usize| {
        let length = u16::try_from(payload.len() + extra).expect("a small packet");
        length.to_be_bytes()
    };
    let [high, low] = length(28);
    let mut header = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let words = header.as_chunks::<2>().0.iter();
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let sum = u16::try_from((sum & 0xFFFF) + (sum >> 16)).expect("no carry is left");
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
    // A checksum of 0 means that there is no checksum.
    [&header[..], &[0x13, 0x88, 0, 53], &length(8), &[0, 0], payload].concat()
}

/// Returns an IPv6 packet with a UDP datagram.
pub fn ipv6(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 8).expect("a small packet").to_be_bytes();
    let udp = [&[0x13, 0x88, 0, 53], &length[..], &[0x12, 0x34], payload].concat();
    [&[0x60, 0, 0, 0], &length[..], &[17, 64], &[0xFD; 16], &[0xFE; 16], &udp].concat()
}

/// Returns an Ethernet packet with this type and contents.
pub fn ethernet(kind: u16, contents: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    [&addresses[..], &kind.to_be_bytes(), contents].concat()
}

/// Returns an 802.11 packet that contains IPv4, with these flags in the second byte of its header.
pub fn wlan(flags: u8, ip: &[u8]) -> Vec<u8> {
    let header = [&[0x08, flags, 0, 0], &[2; 18][..], &[0x10, 0]].concat();
    [&header[..], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0], ip].concat()
}
