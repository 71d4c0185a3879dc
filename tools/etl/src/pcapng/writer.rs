//! Writes the packets of a trace.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::Endianness;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::{CommonOption, UnknownOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};

use super::assembly::{Added, Assembly, MAX_OPEN, MAX_PACKET, Place};
use super::capture::Capture;
use super::part::{Content, Medium, Part, Port, is_part, keyword, printable};
use super::pktmon::{self, Packet};
use super::summary::Summary;
use etl_file::{EventRef, FileTime, TraceHeader};

/// The maximum number of interfaces in a file.
const MAX_INTERFACES: usize = 4096;
/// `epb_processid_threadid`, for which the crate has no name.
const PROCESS_AND_THREAD: u16 = 8;
/// The values of `epb_flags` for a direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// `Protected` in the second byte of an 802.11 header.
const PROTECTED: u8 = 0x40;

/// `epb_packetid`, for which the crate has no name.
const PACKET_ID: u16 = 5;

/// The properties that distinguish interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Interface {
    /// Both interface indexes, the medium, and the port of a virtual switch.
    Adapter(u32, u32, Medium, Option<u32>),
    /// A component of the network stack, and the medium.
    Component(u32, Medium),
}

/// Writes packets as a pcapng file, from events in the order of time.
pub struct Writer<W: Write> {
    out: PcapNgWriter<W>,
    capture: Capture,
    interfaces: HashMap<Interface, u32>,
    assembly: Assembly,
    /// The descriptions of receptions whose packets must follow.
    radio: HashMap<Place, String>,
    summary: Summary,
}

impl<W: Write> Writer<W> {
    /// Writes the start of a file: the session's name and the trace's losses.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn new(out: W, header: &TraceHeader, capture: Capture) -> io::Result<Self> {
        let comment = format!(
            "Packets of the ETW session {}, which lost {} events and {} buffers",
            printable(&header.session.session_name),
            header.events_lost,
            header.buffers_lost
        );
        let program = concat!("etl-file ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::UserApplication(program.into()),
                SectionHeaderOption::Common(CommonOption::Comment(comment.into())),
            ],
            ..SectionHeaderBlock::default()
        };
        let out = PcapNgWriter::with_section_header(out, section).map_err(failed)?;
        Ok(Self {
            out,
            capture,
            interfaces: HashMap::new(),
            assembly: Assembly::default(),
            radio: HashMap::new(),
            summary: Summary::default(),
        })
    }

    /// Takes an event, and writes the packet that it completes. Ignores events that do not belong to
    /// packets. `decoded` is what the event contains as a packet of Microsoft-Windows-PktMon.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn event(&mut self, event: &EventRef<'_>, decoded: Option<&Packet>) -> io::Result<()> {
        if pktmon::is_packet(event) {
            return self.packet(event, decoded);
        }
        if !is_part(event) {
            return Ok(());
        }
        self.summary.events += 1;
        let Some(Part { miniport, lower, content }) = Part::read(event) else {
            self.summary.malformed += 1;
            return Ok(());
        };
        let place = Place::new(event, lower);
        let (bytes, port) = match content {
            Content::Fragment { bytes, port } => (bytes, port),
            Content::Metadata { radio } => {
                // A lost packet's description stays until the next description replaces it.
                let is_new = self.radio.len() < MAX_OPEN || self.radio.contains_key(&place);
                let unused = radio
                    .filter(|_| is_new)
                    .is_none_or(|radio| self.radio.insert(place, radio).is_some());
                self.summary.unused_metadata += u64::from(unused);
                return Ok(());
            }
        };
        let packet = match self.assembly.add(place, event.descriptor.keyword, bytes) {
            Added::Packet(packet) => packet,
            Added::Waiting => return Ok(()),
            Added::NoStart => {
                self.summary.without_start += 1;
                return Ok(());
            }
            Added::TooLarge => {
                self.summary.too_large += 1;
                return Ok(());
            }
        };
        let radio = self.radio.remove(&place);
        let Some(medium) = Medium::from_event(event, &packet) else {
            self.summary.unknown_medium += 1;
            self.summary.unknown_media |= event.descriptor.keyword & keyword::MEDIA;
            return Ok(());
        };
        let interface =
            Interface::Adapter(miniport, lower, medium, port.as_ref().map(|port| port.id));
        let Some(interface) = self.interface(interface, port.as_ref())? else {
            self.summary.without_interface += 1;
            return Ok(());
        };
        self.fragments(event, interface, medium, packet, comment(event, port.as_ref(), radio))
    }

    /// Writes a packet of Microsoft-Windows-PktMon.
    fn packet(&mut self, event: &EventRef<'_>, packet: Option<&Packet>) -> io::Result<()> {
        self.summary.events += 1;
        let Some(packet) = packet else {
            self.summary.malformed += 1;
            return Ok(());
        };
        let Some(medium) = packet.medium() else {
            self.summary.unknown_medium += 1;
            return Ok(());
        };
        if packet.bytes.len() > MAX_PACKET {
            self.summary.too_large += 1;
            return Ok(());
        }
        let interface = Interface::Component(packet.component, medium);
        let Some(interface) = self.interface(interface, None)? else {
            self.summary.without_interface += 1;
            return Ok(());
        };
        let group = packet.group.to_le_bytes();
        let id = CommonOption::Unknown(UnknownOption::new(PACKET_ID, &group));
        let options = vec![
            EnhancedPacketOption::Common(CommonOption::Comment(packet.comment(event).into())),
            EnhancedPacketOption::Flags(packet.direction()),
            EnhancedPacketOption::Common(id),
        ];
        let data = Cow::Borrowed(packet.bytes.as_slice());
        self.block(event, interface, packet.original(), data, options)
    }

    /// Returns the number of an interface, and describes it before its first packet. Returns `None` if
    /// there are too many.
    fn interface(&mut self, key: Interface, port: Option<&Port>) -> io::Result<Option<u32>> {
        if let Some(known) = self.interfaces.get(&key) {
            return Ok(Some(*known));
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Ok(None);
        }
        let (medium, options) = match key {
            Interface::Adapter(miniport, lower, medium, _) => {
                (medium, self.adapter(miniport, lower, medium, port))
            }
            Interface::Component(id, medium) => {
                let name = self.capture.components.get(&id).cloned();
                let name = name.unwrap_or_else(|| format!("component {id}"));
                let description = format!("{}, pktmon component {id}", medium.name());
                (medium, interface_options(name, description))
            }
        };
        let snaplen = u32::try_from(MAX_PACKET).unwrap_or(0);
        let block = InterfaceDescriptionBlock { linktype: medium.link(), snaplen, options };
        self.out.write_pcapng_block(block).map_err(failed)?;
        let number = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces.insert(key, number);
        self.summary.interfaces += 1;
        Ok(Some(number))
    }

    /// Describes an adapter, or a filter above it.
    fn adapter(
        &self,
        miniport: u32,
        lower: u32,
        medium: Medium,
        port: Option<&Port>,
    ) -> Vec<InterfaceDescriptionOption<'static>> {
        // A trace may describe the adapter only, and not the filter above it.
        let adapters = &self.capture.adapters;
        let adapter = adapters.get(&lower).or_else(|| adapters.get(&miniport));
        let (alias, adapter) = adapter.cloned().unwrap_or_default();
        let mut description = vec![format!("{}, interface index {lower}", medium.name())];
        if lower != miniport {
            description.push(format!("filter above interface index {miniport}"));
        }
        if let Some(Port { id, name, nic, nic_type, .. }) = port {
            description.push(format!("virtual switch port {id} {name}, {nic_type} {nic}"));
        }
        let name = match (alias.as_str(), port) {
            (_, Some(port)) if !port.name.is_empty() => format!("{lower}:{}", port.name),
            ("", _) => format!("{}:{lower}", medium.name()),
            _ => alias,
        };
        let mut options = interface_options(name, description.join(", "));
        if !adapter.is_empty() {
            options.push(InterfaceDescriptionOption::IfHardware(adapter.into()));
        }
        options
    }

    fn fragments(
        &mut self,
        event: &EventRef<'_>,
        interface_id: u32,
        medium: Medium,
        mut data: Cow<'_, [u8]>,
        comment: String,
    ) -> io::Result<()> {
        // The provider shows packets after their decryption, with the bit still set.
        if medium == Medium::Wlan
            && data.get(1).is_some_and(|flags| flags & PROTECTED != 0)
            && let Some(flags) = data.to_mut().get_mut(1)
        {
            *flags &= !PROTECTED;
        }
        let original = medium.stated_length(&data).max(data.len());
        let is = |keyword| event.descriptor.keyword & keyword != 0;
        let direction = match (is(keyword::SEND), is(keyword::RECEIVE)) {
            (true, false) => OUTBOUND,
            (false, true) => INBOUND,
            _ => 0,
        };
        let mut options = vec![
            EnhancedPacketOption::Common(CommonOption::Comment(comment.into())),
            EnhancedPacketOption::Flags(direction),
        ];
        let ids = [event.process_id, event.thread_id].map(u32::to_le_bytes).concat();
        if direction == OUTBOUND {
            // The process that runs when a packet is received is unrelated to it.
            let option = UnknownOption::new(PROCESS_AND_THREAD, &ids);
            options.push(EnhancedPacketOption::Common(CommonOption::Unknown(option)));
        }
        self.block(event, interface_id, original, data, options)
    }

    fn block(
        &mut self,
        event: &EventRef<'_>,
        interface_id: u32,
        original: usize,
        data: Cow<'_, [u8]>,
        options: Vec<EnhancedPacketOption<'_>>,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: self.timestamp(event.time),
            original_len: u32::try_from(original).unwrap_or(u32::MAX),
            data,
            options,
        };
        self.out.write_pcapng_block(block).map_err(failed)?;
        self.summary.packets += 1;
        Ok(())
    }

    fn timestamp(&mut self, time: FileTime) -> Duration {
        let nanos = time.unix_nanos();
        let clamped = nanos.clamp(0, u64::MAX.into());
        self.summary.clamped += u64::from(nanos != clamped);
        Duration::from_nanos(u64::try_from(clamped).unwrap_or(0))
    }

    /// Returns the complete output and the counts.
    #[must_use]
    pub fn finish(self) -> (W, Summary) {
        let mut summary = self.summary;
        summary.incomplete = self.assembly.incomplete();
        summary.unused_metadata += self.radio.len() as u64;
        (self.out.into_inner(), summary)
    }
}

fn interface_options(
    name: String,
    description: String,
) -> Vec<InterfaceDescriptionOption<'static>> {
    vec![
        InterfaceDescriptionOption::IfName(name.into()),
        InterfaceDescriptionOption::IfDescription(description.into()),
        InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
    ]
}

/// Returns a comment with the properties of a packet that have no pcapng option.
fn comment(event: &EventRef<'_>, port: Option<&Port>, radio: Option<String>) -> String {
    let mut comment = vec![format!("process {}, thread {}", event.process_id, event.thread_id)];
    if let Some(port) = port.filter(|port| port.vlan != 0) {
        comment.push(format!("VLAN {}", port.vlan));
    }
    if event.descriptor.keyword & keyword::TRUNCATED != 0 {
        comment.push("truncated".to_owned());
    }
    comment.extend(radio);
    comment.join(", ")
}

/// Returns the error of the output.
fn failed(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}
