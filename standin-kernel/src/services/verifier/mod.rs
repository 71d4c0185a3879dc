//! The verifier's warnings, and the checks that the services share: addresses, borrowed data, fault
//! injection.

pub mod addresses;
pub mod borrowed;
pub mod faults;
pub mod warnings;
