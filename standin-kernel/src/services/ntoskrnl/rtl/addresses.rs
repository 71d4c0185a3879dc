//! Text forms of IPv4, IPv6 and Ethernet addresses (`ip2string.h`).
//!
//! Addresses and ports are in network byte order.

use std::{fmt::Write as _, net::Ipv6Addr};

use super::strings::terminated;
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtResult, NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlEthernetAddressToStringA", ethernet_text::<u8>),
    routine("RtlEthernetAddressToStringW", ethernet_text::<u16>),
    routine("RtlEthernetStringToAddressA", ethernet_address::<u8>),
    routine("RtlEthernetStringToAddressW", ethernet_address::<u16>),
    routine("RtlIpv4AddressToStringA", v4_text::<u8>),
    routine("RtlIpv4AddressToStringW", v4_text::<u16>),
    routine("RtlIpv4AddressToStringExA", v4_text_with_port::<u8>),
    routine("RtlIpv4AddressToStringExW", v4_text_with_port::<u16>),
    routine("RtlIpv4StringToAddressA", v4_address::<u8>),
    routine("RtlIpv4StringToAddressW", v4_address::<u16>),
    routine("RtlIpv4StringToAddressExA", v4_address_with_port::<u8>),
    routine("RtlIpv4StringToAddressExW", v4_address_with_port::<u16>),
    routine("RtlIpv6AddressToStringA", v6_text::<u8>),
    routine("RtlIpv6AddressToStringW", v6_text::<u16>),
    routine("RtlIpv6AddressToStringExA", v6_text_with_port::<u8>),
    routine("RtlIpv6AddressToStringExW", v6_text_with_port::<u16>),
    routine("RtlIpv6StringToAddressA", v6_address::<u8>),
    routine("RtlIpv6StringToAddressW", v6_address::<u16>),
    routine("RtlIpv6StringToAddressExA", v6_address_with_port::<u8>),
    routine("RtlIpv6StringToAddressExW", v6_address_with_port::<u16>),
];

/// A character of a text: a byte or a UTF-16 unit.
pub trait Unit: Sized {
    const SIZE: u64;
    fn read(context: &Context, at: u64) -> String;
    fn bytes(text: &str) -> Vec<u8>;
}

impl Unit for u8 {
    const SIZE: u64 = 1;

    fn read(context: &Context, at: u64) -> String {
        String::from_utf16_lossy(&terminated::<false>(context, at))
    }

    fn bytes(text: &str) -> Vec<u8> {
        text.bytes().chain([0]).collect()
    }
}

impl Unit for u16 {
    const SIZE: u64 = 2;

    fn read(context: &Context, at: u64) -> String {
        String::from_utf16_lossy(&terminated::<true>(context, at))
    }

    fn bytes(text: &str) -> Vec<u8> {
        text.bytes().chain([0]).flat_map(|byte| Self::from(byte).to_le_bytes()).collect()
    }
}

/// Stores a terminated text, and returns the address of the terminator.
fn store<U: Unit>(context: &Context, to: At<U>, text: &str) -> At<U> {
    context.write_bytes(to.0, &U::bytes(text));
    At::new(to.0 + text.len() as u64 * U::SIZE)
}

/// Stores a text whose length with the terminator is at `length`, or fails and stores the needed length.
fn store_within<U: Unit>(context: &Context, to: At<U>, length: At<u32>, text: &str) -> NtResult {
    let needed = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
    let room = length.read(context);
    length.write(context, needed);
    if to.is_null() || room < needed {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    store(context, to, text);
    Ok(())
}

/// Stores the result of a parser: the address and, in each case, where the text's rest begins.
fn give<U: Unit>(
    context: &Context,
    text: At<U>,
    terminator: At<u64>,
    to: u64,
    (address, consumed): (Option<Vec<u8>>, usize),
) -> NtResult {
    terminator.write(context, text.0 + consumed as u64 * U::SIZE);
    context.write_bytes(to, &address.ok_or(NtStatus::INVALID_PARAMETER)?);
    Ok(())
}

fn format_v4([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
}

/// Formats an IPv6 address. Addresses that contain an IPv4 address end with its form: mapped, compatible,
/// translated and ISATAP addresses.
fn format_v6(bytes: [u8; 16]) -> String {
    let words = Ipv6Addr::from(bytes).segments();
    let is_embedded = match words {
        [0, 0, 0, 0, 0, 0 | 0xFFFF, high, _] | [0, 0, 0, 0, 0xFFFF, 0, high, _] => high != 0,
        [.., 0 | 0x200, 0x5EFE, _, _] => true,
        _ => false,
    };
    let count = if is_embedded { 6 } else { 8 };
    let shown = words.get(..count).unwrap_or_default();
    // The first of the longest runs of at least two zeros is left out.
    let run = |start: usize| shown.iter().skip(start).take_while(|word| **word == 0).count();
    let longest = (0..count).map(|start| (run(start), start));
    let (length, start) =
        longest.max_by_key(|(length, start)| (*length, count - start)).unwrap_or((0, 0));
    let (length, start) = if length < 2 { (0, count) } else { (length, start) };
    let mut text = String::new();
    for (index, word) in shown.iter().enumerate() {
        if index == start {
            text.push_str("::");
        }
        if (start..start + length).contains(&index) {
            continue;
        }
        if !text.is_empty() && !text.ends_with(':') {
            text.push(':');
        }
        let _ = write!(text, "{word:x}");
    }
    if is_embedded {
        if !text.ends_with(':') {
            text.push(':');
        }
        let [.., a, b, c, d] = bytes;
        text.push_str(&format_v4([a, b, c, d]));
    }
    text
}

/// Parses the number at the start of a text: decimal or, unless `is_strict`, octal after a zero and
/// hexadecimal after `0x`. Returns it modulo 2^32, or `None` if it is no number, and where it ends.
fn number(text: &str, is_strict: bool) -> (Option<u32>, usize) {
    let (radix, skipped) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, 2),
        [b'0', b'0'..=b'9', ..] => (8, 1),
        _ => (10, 0),
    };
    if is_strict && skipped != 0 {
        return (None, skipped);
    }
    let digits = text.get(skipped..).unwrap_or_default();
    let length =
        digits.find(|one: char| !one.is_ascii_hexdigit() || radix < 16 && !one.is_ascii_digit());
    let digits = digits.get(..length.unwrap_or(digits.len())).unwrap_or_default();
    let values: Option<Vec<u32>> = digits.chars().map(|one| one.to_digit(radix)).collect();
    let value = values.filter(|values| !values.is_empty()).map(|values| {
        values.iter().fold(0_u32, |sum, digit| sum.wrapping_mul(radix).wrapping_add(*digit))
    });
    (value, skipped + digits.len())
}

/// Parses an IPv4 address at the start of a text. In the strict form, it has four decimal parts; in the
/// other, the last of fewer parts stands for the rest.
fn parse_v4(text: &str, is_strict: bool) -> (Option<Vec<u8>>, usize) {
    let (mut parts, mut at) = (Vec::new(), 0);
    loop {
        let (value, length) = number(text.get(at..).unwrap_or_default(), is_strict);
        at += length;
        let Some(value) = value else {
            return (None, at);
        };
        parts.push(value);
        let has_more = text.get(at..).is_some_and(|rest| rest.starts_with('.'));
        if !has_more {
            break;
        }
        if parts.len() == 4 {
            return (None, at);
        }
        at += 1;
    }
    let Some((last, first)) = parts.split_last() else {
        return (None, at);
    };
    let room = 8 * (4 - first.len());
    let fits = u64::from(*last) < 1 << room && first.iter().all(|part| *part <= 0xFF);
    if !fits || is_strict && parts.len() != 4 {
        return (None, at);
    }
    let high = first.iter().fold(0_u64, |value, part| value << 8 | u64::from(*part));
    let value = high << room | u64::from(*last);
    (u32::try_from(value).ok().map(|value| value.to_be_bytes().to_vec()), at)
}

/// Parses an IPv6 address, which is all characters at the start of a text that can be of one.
fn parse_v6(text: &str) -> (Option<Vec<u8>>, usize) {
    let is_part = |one: char| one.is_ascii_hexdigit() || one == ':' || one == '.';
    let end = text.find(|one| !is_part(one)).unwrap_or(text.len());
    let address = text.get(..end).and_then(|part| part.parse::<Ipv6Addr>().ok());
    (address.map(|address| address.octets().to_vec()), end)
}

/// Parses an Ethernet address: six pairs of digits between hyphens.
fn parse_ethernet(text: &str) -> (Option<Vec<u8>>, usize) {
    let mut bytes = Vec::new();
    let mut at = 0;
    while bytes.len() < 6 {
        if !bytes.is_empty() {
            if !text.get(at..).is_some_and(|rest| rest.starts_with('-')) {
                return (None, at);
            }
            at += 1;
        }
        let pair =
            text.get(at..at + 2).filter(|pair| pair.bytes().all(|one| one.is_ascii_hexdigit()));
        let Some(byte) = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) else {
            return (None, at);
        };
        bytes.push(byte);
        at += 2;
    }
    (Some(bytes), at)
}

/// Parses a port that is the rest of a text, after a colon. No rest stands for the port 0, which cannot be
/// written.
fn parse_port(rest: &str) -> Option<u16> {
    let Some(digits) = rest.strip_prefix(':') else {
        return rest.is_empty().then_some(0);
    };
    let (port, length) = number(digits, false);
    let port = port.filter(|port| *port != 0 && length == digits.len())?;
    u16::try_from(port).ok()
}

fn ethernet_text<U: Unit>(context: &Context, address: Memory, to: At<U>) -> At<U> {
    let bytes: [u8; 6] = context.read(address.0);
    let text = bytes.map(|byte| format!("{byte:02X}")).join("-");
    store(context, to, &text)
}

fn ethernet_address<U: Unit>(
    context: &Context,
    text: At<U>,
    terminator: At<u64>,
    address: Memory,
) -> NtResult {
    let parsed = parse_ethernet(&U::read(context, text.0));
    give(context, text, terminator, address.0, parsed)
}

fn v4_text<U: Unit>(context: &Context, address: Memory, to: At<U>) -> At<U> {
    store(context, to, &format_v4(context.read(address.0)))
}

fn v4_text_with_port<U: Unit>(
    context: &Context,
    address: Memory,
    port: u16,
    to: At<U>,
    length: At<u32>,
) -> NtResult {
    let mut text = format_v4(context.read(address.0));
    if port != 0 {
        let _ = write!(text, ":{}", port.swap_bytes());
    }
    store_within(context, to, length, &text)
}

fn v4_address<U: Unit>(
    context: &Context,
    text: At<U>,
    is_strict: bool,
    terminator: At<u64>,
    address: Memory,
) -> NtResult {
    let parsed = parse_v4(&U::read(context, text.0), is_strict);
    give(context, text, terminator, address.0, parsed)
}

fn v4_address_with_port<U: Unit>(
    context: &Context,
    text: At<U>,
    is_strict: bool,
    address: Memory,
    port: At<u16>,
) -> NtResult {
    if text.is_null() || address.is_null() || port.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let text = U::read(context, text.0);
    let (found, end) = parse_v4(&text, is_strict);
    let rest = text.get(end..).and_then(parse_port);
    let (found, rest) = found.zip(rest).ok_or(NtStatus::INVALID_PARAMETER)?;
    context.write_bytes(address.0, &found);
    port.write(context, rest.swap_bytes());
    Ok(())
}

fn v6_text<U: Unit>(context: &Context, address: Memory, to: At<U>) -> At<U> {
    store(context, to, &format_v6(context.read(address.0)))
}

fn v6_text_with_port<U: Unit>(
    context: &Context,
    address: Memory,
    scope: u32,
    port: u16,
    to: At<U>,
    length: At<u32>,
) -> NtResult {
    let mut text = format_v6(context.read(address.0));
    if scope != 0 {
        let _ = write!(text, "%{scope}");
    }
    if port != 0 {
        text = format!("[{text}]:{}", port.swap_bytes());
    }
    store_within(context, to, length, &text)
}

fn v6_address<U: Unit>(
    context: &Context,
    text: At<U>,
    terminator: At<u64>,
    address: Memory,
) -> NtResult {
    give(context, text, terminator, address.0, parse_v6(&U::read(context, text.0)))
}

/// Parses an address that brackets can enclose, with a scope and, after the brackets, a port.
fn parse_v6_with_port(text: &str) -> Option<(Vec<u8>, u32, u16)> {
    let inner = text.strip_prefix('[');
    let (found, end) = parse_v6(inner.unwrap_or(text));
    let mut rest = inner.unwrap_or(text).get(end..)?;
    let mut scope = 0;
    if let Some(digits) = rest.strip_prefix('%') {
        let length = digits.find(|one: char| !one.is_ascii_digit()).unwrap_or(digits.len());
        scope = digits.get(..length)?.parse().ok()?;
        rest = digits.get(length..)?;
    }
    let port = match inner {
        Some(_) => parse_port(rest.strip_prefix(']')?)?,
        None => rest.is_empty().then_some(0)?,
    };
    Some((found?, scope, port))
}

fn v6_address_with_port<U: Unit>(
    context: &Context,
    text: At<U>,
    address: Memory,
    scope: At<u32>,
    port: At<u16>,
) -> NtResult {
    if text.is_null() || address.is_null() || scope.is_null() || port.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let parsed = parse_v6_with_port(&U::read(context, text.0));
    let (found, of, rest) = parsed.ok_or(NtStatus::INVALID_PARAMETER)?;
    context.write_bytes(address.0, &found);
    scope.write(context, of);
    port.write(context, rest.swap_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v6_addresses_are_shortened_and_embed_v4_addresses() {
        for text in [
            "::", "::1", "2001:db8::1", "1:0:0:2::3", "1::2:0:0:3", "0:1:2:3:4:5:6:7",
            "1:0:2:3:4:5:6:7", "::13.1.68.3", "::ffff:13.1.68.3", "::ffff:0:13.1.68.3",
            "fe80::5efe:1.2.3.4", "fe80::200:5efe:1.2.3.4", "::fffe:d01:4403", "1::", "::ffff:0:0",
        ] {
            let address: Ipv6Addr = text.parse().unwrap();
            assert_eq!(format_v6(address.octets()), text);
            assert_eq!(parse_v6(text), (Some(address.octets().to_vec()), text.len()));
        }
        assert_eq!(parse_v6("::1%4").1, 3);
        assert_eq!(parse_v6("fe80").0, None);
        let parsed = parse_v6_with_port("[::1%7]:80").unwrap();
        assert_eq!((parsed.1, parsed.2), (7, 80));
        assert_eq!(parse_v6_with_port("[::1]").map(|(.., port)| port), Some(0));
        for text in ["::12345678", "::01234", "1::1.2.3", "1111::5555:", "1111:2222:3333::fffff"] {
            assert_eq!(parse_v6(text).0, None, "{text}");
        }
        for wrong in ["::1]", "[::1", "::1:80x", "[::1]80", "[::1]:65536", "[::1]:080", "[::1]:0"] {
            assert_eq!(parse_v6_with_port(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn v4_addresses_have_one_to_four_parts() {
        for (text, strict, loose, end) in [
            ("1.2.3.4", Some([1, 2, 3, 4]), Some([1, 2, 3, 4]), 7),
            ("1.2.3.4x", Some([1, 2, 3, 4]), Some([1, 2, 3, 4]), 7),
            ("1.2.772", None, Some([1, 2, 3, 4]), 7),
            ("4294967295", None, Some([255; 4]), 10),
            ("1.2.3.256", None, None, 9),
            ("256.1", None, None, 5),
            ("1.2.3.", None, None, 6),
            ("3.4.5.6.7", None, None, 7),
            ("0.1.2.3.", None, None, 7),
            ("", None, None, 0),
        ] {
            let expected = |address: Option<[u8; 4]>| (address.map(|one| one.to_vec()), end);
            assert_eq!(parse_v4(text, true), expected(strict), "{text}");
            assert_eq!(parse_v4(text, false), expected(loose), "{text}");
        }
        // Octal and hexadecimal numbers are not strict. Numbers are modulo 2^32.
        for (text, expected) in [
            ("0x7f.1", Some(vec![127, 0, 0, 1])),
            ("010.0.0.1", Some(vec![8, 0, 0, 1])),
            ("1.1.1.08", None),
            ("0x", None),
            ("0x123456789", Some(vec![0x23, 0x45, 0x67, 0x89])),
        ] {
            assert_eq!(parse_v4(text, false).0, expected, "{text}");
            assert_eq!(parse_v4(text, true).0, None, "{text}");
        }
        for (text, end) in [("1.1.1.010", 7), ("1.1.1.0xff", 8)] {
            assert_eq!(parse_v4(text, true), (None, end), "{text}");
        }
        assert_eq!(
            [":80", "", ":", "80", ":80x"].map(parse_port),
            [Some(80), Some(0), None, None, None]
        );
    }

    #[test]
    fn ethernet_addresses_have_six_pairs_of_digits() {
        assert_eq!(
            parse_ethernet("12-34-56-78-9a-BC"),
            (Some(vec![0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC]), 17)
        );
        assert_eq!(parse_ethernet("12-34-5"), (None, 6));
    }
}
