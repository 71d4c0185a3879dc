//! Recognizes files of other formats that users open by mistake.

use std::fmt;

/// The format of a file that is not a trace, and advice for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFormat {
    name: &'static str,
    advice: &'static str,
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.name, self.advice)
    }
}

const EXTRACT: &str = "extract the file first";
const WIRESHARK: &str = "open it with Wireshark";
const EVENT_LOG: &str = "open it with Event Viewer or evtx_dump";
const DEBUGGER: &str = "open it with a debugger";
const TEXT: &str = "if a decoder wrote it, name the .etl file that the decoder read";

/// Offset and magic bytes, the format's name, and advice. Traces cannot be mistaken for these
/// formats, because they start with a buffer size.
#[rustfmt::skip]
const FORMATS: &[(usize, &[u8], &str, &str)] = &[
    (0, b"version https://git-lfs", "a Git LFS pointer", "fetch the file that it stands for with `git lfs pull`"),
    (0, &[0; 72], "a blank file", "its space was reserved, but no session wrote to it, or a copy failed"),
    (0, b"ElfFile\0", "an event log (.evtx)", EVENT_LOG),
    (4, b"LfLe", "an event log from Windows Server 2003 or earlier (.evt)", EVENT_LOG),
    (0, b"Nettrace", "a .NET EventPipe trace (.nettrace)", "open it with PerfView or dotnet-trace"),
    (0, b"\x14\0\0\0!FastSerialization", "a trace that PerfView converted (.etlx)", "name the .etl file that it came from"),
    (0, b"PK\x03\x04", "a zip archive", EXTRACT),
    (0, b"\x1F\x8B\x08", "a gzip archive", EXTRACT),
    (0, b"MSCF", "a cabinet (.cab)", EXTRACT),
    (0, b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive", EXTRACT),
    (0, b"Rar!\x1A\x07", "a RAR archive", EXTRACT),
    (0, b"\xFD7zXZ\0", "an xz archive", EXTRACT),
    (0, b"\x28\xB5\x2F\xFD", "a Zstandard archive", EXTRACT),
    (0, b"BZh", "a bzip2 archive", EXTRACT),
    (257, b"ustar", "a tar archive", EXTRACT),
    (0, b"\x0A\x0D\x0D\x0A", "a packet capture (.pcapng)", WIRESHARK),
    (0, b"\xD4\xC3\xB2\xA1", "a packet capture (.pcap)", WIRESHARK),
    (0, b"\xA1\xB2\xC3\xD4", "a packet capture (.pcap)", WIRESHARK),
    (0, b"\x4D\x3C\xB2\xA1", "a packet capture (.pcap)", WIRESHARK),
    (0, b"GMBU", "a capture of Network Monitor (.cap)", WIRESHARK),
    (0, b"\xC1\x1F\xFC\xC1", "a stream of a CTF trace", "open the trace's folder with Babeltrace"),
    (0, b"\xC1\xFC\x1F\xC1", "a stream of a CTF trace", "open the trace's folder with Babeltrace"),
    (0, b"/* CTF", "the metadata of a CTF trace", "open the trace's folder with Babeltrace"),
    (0, b"\x57\x1D\xD1\x75", "the metadata of a CTF trace", "open the trace's folder with Babeltrace"),
    (0, b"PERFILE2", "a recording by Linux perf", "open it with `perf report`"),
    (0, b"PML_", "a Process Monitor log (.pml)", "open it with Process Monitor"),
    (0, b"MDMP", "a minidump", DEBUGGER),
    (0, b"PAGEDU64", "a crash dump", DEBUGGER),
    (0, b"PAGEDUMP", "a crash dump", DEBUGGER),
    (0, b"Microsoft C/C++ MSF 7.00", "a PDB", "name it with --pdb beside the trace"),
    (0, b"MZ", "a Windows program, driver or library", "name it with --image beside the trace"),
    (0, b"\x7FELF", "a Linux program or library", "no tool of this project reads it"),
    (0, b"regf", "a registry hive", "open it with a registry editor"),
    (0, b"SQLite format 3\0", "an SQLite database", "open it with sqlite3"),
    (0, b"\xFF\xFE<\0", "XML or HTML text", TEXT),
    (0, b"<\0?\0x\0", "XML or HTML text", TEXT),
    (0, b"\xEF\xBB\xBF<", "XML or HTML text", TEXT),
    (0, b"<?xml", "XML or HTML text", TEXT),
    (0, b"<instrumentationManifest", "a manifest", "name it with --man beside the trace"),
    (0, b"<!DOCTYPE", "XML or HTML text", TEXT),
    (0, b"<!doctype", "XML or HTML text", TEXT),
    (0, b"<html", "XML or HTML text", TEXT),
    (0, b"<Event", "XML or HTML text", TEXT),
    (0, b"{\"", "JSON text", TEXT),
    (0, b"[{\"", "JSON text", TEXT),
];

/// The end of the marker of a trace's header event: its offset and possible values.
const TRACE: (usize, [&[u8]; 2]) = (0x4A, [&[1, 0xC0], &[2, 0xC0]]);

impl OtherFormat {
    /// The description of a trace that was given instead of a file of another format.
    pub const TRACE: Self = Self { name: "a trace (.etl)", advice: "name it without an option" };
    /// The number of bytes at the start of a file that [`recognize`](Self::recognize) needs.
    pub const PROBE: usize = 512;

    /// Recognizes the format of a file by its first [`PROBE`](Self::PROBE) bytes, or by all bytes
    /// of a shorter file. Returns `None` for unknown formats.
    #[must_use]
    pub fn recognize(start: &[u8]) -> Option<Self> {
        if start.is_empty() {
            return Some(Self { name: "an empty file", advice: "nothing was written to it" });
        }
        let is_at = |at: usize, magic: &[u8]| {
            // Short magic bytes in a very short file can be a coincidence.
            let is_long = magic.len() > 3 || start.len() >= 0x40;
            is_long && start.get(at..).is_some_and(|rest| rest.starts_with(magic))
        };
        let found = FORMATS.iter().find(|(at, magic, ..)| is_at(*at, magic));
        let trace = || TRACE.1.iter().any(|marker| is_at(TRACE.0, marker)).then_some(Self::TRACE);
        found.map(|&(.., name, advice)| Self { name, advice }).or_else(trace)
    }
}
