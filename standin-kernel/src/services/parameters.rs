//! The types of the parameters of all routines that a driver can call, from the WDK's headers.
//!
//! A test writes the table: `WDK_ETW_RENEW=1 cargo test --package standin-kernel --lib
//! provided_routines`.

use std::collections::HashMap;

use crate::execution::routine::{MAX_ARGUMENTS, Parameter};

/// The table: a routine in each line, and the types of its parameters.
pub const TEXT: &str = include_str!("parameters.txt");

/// Returns the types of the parameters of each routine. A routine's first types are those of its
/// parameters, the others are not used.
pub fn table() -> HashMap<&'static str, [Parameter; MAX_ARGUMENTS]> {
    TEXT.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let mut types = [Parameter::Word; MAX_ARGUMENTS];
            for (slot, word) in types.iter_mut().zip(words) {
                *slot = Parameter::from_name(word)?;
            }
            Some((name, types))
        })
        .collect()
}
