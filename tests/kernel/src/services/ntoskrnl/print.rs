//! The routines that print for a debugger.

use super::context::Context;
use crate::{execution::routine::low_half, ground::memory};

pub fn dbg_print(context: &Context, format: u64, a: u64, b: u64, c: u64) -> u64 {
    print(context, format, [a, b, c])
}

pub fn dbg_print_ex(context: &Context, _component: u64, _level: u64, format: u64, a: u64) -> u64 {
    print(context, format, [a, 0, 0])
}

/// Formats a driver's message with the arguments that are in registers. Other conversions stay
/// unformatted.
fn print(context: &Context, format: u64, arguments: [u64; 3]) -> u64 {
    const LIMIT: usize = 512;
    let text = |address: u64| match memory::read_c_string(address, LIMIT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => context.stop_for_address(error),
    };
    let format = text(format);
    let mut arguments = arguments.into_iter();
    let mut out = String::new();
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        let (before, directive) = rest.split_at(at);
        out.push_str(before);
        let mut taken = 2;
        let value = match directive.as_bytes().get(1) {
            Some(b's') => arguments.next().map(text),
            Some(b'd' | b'i') => arguments
                .next()
                .map(|value| low_half(value).cast_signed().to_string()),
            Some(b'u') => arguments.next().map(|value| low_half(value).to_string()),
            Some(b'x' | b'X') => arguments
                .next()
                .map(|value| format!("{:x}", low_half(value))),
            Some(b'p') => arguments.next().map(|value| format!("{value:016X}")),
            Some(b'%') => Some("%".to_owned()),
            _ => None,
        };
        out.push_str(&value.unwrap_or_else(|| {
            taken = 1;
            "%".to_owned()
        }));
        rest = directive.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    context.print(out);
    0
}
