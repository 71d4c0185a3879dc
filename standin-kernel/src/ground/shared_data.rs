//! The page of data that Windows shares with all code (`KUSER_SHARED_DATA`).
//!
//! Inline functions of the WDK's headers read the time from it. Its address belongs to the Linux
//! kernel, so each access faults, and the stand-in kernel serves it from the fields here.

use std::ops::Range;

use super::clock::Clock;

/// The page's addresses.
pub const ADDRESSES: Range<u64> = 0xFFFF_F780_0000_0000..0xFFFF_F780_0000_1000;

/// The Windows version in the page, which `RtlGetVersion` and traces also report: major, minor, build.
fn version() -> (u32, u32, u32) {
    let header = etl_file::LogFileHeader::default();
    (header.os_major.into(), header.os_minor.into(), header.os_build)
}

/// The values that change over time.
#[derive(Clone, Copy, Debug)]
pub struct SharedData {
    /// The time since the kernel's start, in units of 100 ns.
    pub uptime: i64,
    /// The uptime at the last clock interrupt.
    pub last_interrupt: i64,
    /// The `FILETIME` of the kernel's start.
    pub boot_time: i64,
    /// The number of processors.
    pub processors: u16,
}

impl SharedData {
    /// Returns the number of clock ticks since the kernel's start.
    pub const fn ticks(&self) -> i64 {
        self.uptime.div_euclid(Clock::TICK)
    }

    /// Returns the `FILETIME` of the last clock interrupt.
    pub const fn system_time(&self) -> i64 {
        self.boot_time.saturating_add(self.last_interrupt)
    }

    /// Returns the bytes at this offset in the page, or `None` if the kernel does not provide one
    /// of them. The times advance with the clock's ticks, as the system routines' times do.
    pub fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64)?;
        let fields = self.fields();
        (offset..end)
            .map(|at| {
                fields.iter().find_map(|(start, bytes)| {
                    let inside = usize::try_from(at.checked_sub(*start)?).ok()?;
                    bytes.get(inside).copied()
                })
            })
            .collect()
    }

    /// Returns the offset and bytes of each field.
    fn fields(&self) -> Vec<(u64, Vec<u8>)> {
        let (major, minor, build) = version();
        let mut fields = vec![
            // TickCountMultiplier: the milliseconds per tick, with 24 fractional bits.
            (0x004, 0x0FA0_0000_u32.to_le_bytes().into()),
            (0x008, system_time_of(self.last_interrupt)),
            (0x014, system_time_of(self.system_time())),
            // TimeZoneBias: local time is UTC.
            (0x020, system_time_of(0)),
            // ImageNumberLow and ImageNumberHigh.
            (0x02C, 0x8664_8664_u32.to_le_bytes().into()),
            (0x030, system_root()),
            // LargePageMinimum.
            (0x244, 0x0020_0000_u32.to_le_bytes().into()),
            (0x260, build.to_le_bytes().into()),
            // NtProductType: NtProductWinNt, and ProductTypeIsValid.
            (0x264, 1_u32.to_le_bytes().into()),
            (0x268, vec![1, 0]),
            // NativeProcessorArchitecture: PROCESSOR_ARCHITECTURE_AMD64.
            (0x26A, 9_u16.to_le_bytes().into()),
            (0x26C, major.to_le_bytes().into()),
            (0x270, minor.to_le_bytes().into()),
            (0x274, (0..FEATURES).map(|feature| has_feature(feature).into()).collect()),
            // SuiteMask: VER_SUITE_SINGLEUSERTS.
            (0x2D0, 0x100_u32.to_le_bytes().into()),
            // KdDebuggerEnabled.
            (0x2D4, vec![0]),
            // ActiveConsoleId.
            (0x2D8, 1_u32.to_le_bytes().into()),
            // SafeBootMode.
            (0x2EC, vec![0]),
            (0x300, Clock::FREQUENCY.to_le_bytes().into()),
            // TickCount, whose low eight bytes are TickCountQuad.
            (0x320, system_time_of(self.ticks())),
            // InterruptTimeBias and QpcBias.
            (0x3B0, vec![0; 16]),
            (0x3C0, u32::from(self.processors).to_le_bytes().into()),
            // ActiveGroupCount.
            (0x3C4, vec![1]),
        ];
        fields.sort_unstable();
        fields
    }
}

/// The number of `ProcessorFeatures`.
const FEATURES: usize = 64;

/// Returns whether the host's processors, which run the drivers' code, have a feature (`PF_*`).
/// Every x64 processor has some of the features, and Windows requires others.
pub fn has_feature(feature: usize) -> bool {
    match feature {
        // Compare and exchange of 8 and 16 bytes, MMX, SSE, RDTSC, PAE, SSE2, NX, and fast fail.
        2 | 3 | 6 | 8 | 9 | 10 | 12 | 14 | 23 => true,
        13 => is_x86_feature_detected!("sse3"),
        17 => is_x86_feature_detected!("xsave"),
        28 => is_x86_feature_detected!("rdrand"),
        36 => is_x86_feature_detected!("ssse3"),
        37 => is_x86_feature_detected!("sse4.1"),
        38 => is_x86_feature_detected!("sse4.2"),
        39 => is_x86_feature_detected!("avx"),
        40 => is_x86_feature_detected!("avx2"),
        41 => is_x86_feature_detected!("avx512f"),
        _ => false,
    }
}

/// Returns a `KSYSTEM_TIME`, which stores the high half twice.
fn system_time_of(value: i64) -> Vec<u8> {
    let bytes = value.to_le_bytes();
    let (_, high) = bytes.split_at(4);
    [&bytes[..], high].concat()
}

/// Returns `NtSystemRoot`.
fn system_root() -> Vec<u8> {
    const BYTES: usize = 520;
    let mut bytes: Vec<u8> = "C:\\Windows".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.resize(BYTES, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const DATA: SharedData = SharedData {
        uptime: 0x1_2345_6789,
        last_interrupt: 0x1_2345_0000,
        boot_time: 0x01DC_0000_0000_0000,
        processors: 3,
    };

    fn number(offset: u64, length: usize) -> Option<u64> {
        let mut bytes = DATA.read(offset, length)?;
        bytes.resize(8, 0);
        Some(u64::from_le_bytes(bytes.try_into().unwrap()))
    }

    #[test]
    fn times_are_consistent() {
        let interrupt = number(0x08, 8).unwrap();
        assert_eq!(interrupt, 0x1_2345_0000);
        assert_eq!(number(0x0C, 4), number(0x10, 4), "High1Time and High2Time");
        assert_eq!(number(0x14, 8), Some(interrupt + 0x01DC_0000_0000_0000));
        assert_eq!(number(0x320, 8), Some(0x1_2345_6789 / 156_250));
        // The multiplier agrees with the clock increment.
        assert_eq!(number(0x04, 4), Some((156_250 << 24) / 10_000));
    }

    #[test]
    fn bytes_that_are_not_provided_are_refused() {
        for (offset, length) in [(0, 4), (2, 4), (0x330, 4), (0x324, 16), (0xFFF, 8), (0x2D4, 2)] {
            assert_eq!(DATA.read(offset, length), None, "{offset:X}");
        }
        assert_eq!(number(0x26C, 8), Some(10));
        assert_eq!(number(0x3C0, 4), Some(3));
    }

    #[test]
    fn fields_are_those_of_the_headers_and_do_not_overlap() {
        let types: Value =
            serde_json::from_str(&etw_test_support::read_headers("types.json")).unwrap();
        let layout = types["struct"]["_KUSER_SHARED_DATA"]["fields"].as_array().unwrap();
        let fields = DATA.fields();
        for (start, _) in &fields {
            let found = layout.iter().any(|field| field[2].as_u64() == Some(*start));
            assert!(found, "0x{start:X}");
        }
        for pair in fields.windows(2) {
            assert!(pair[0].0 + pair[0].1.len() as u64 <= pair[1].0, "{:X}", pair[1].0);
        }
    }
}
