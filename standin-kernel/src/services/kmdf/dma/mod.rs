//! DMA: enablers, common buffers and transactions, with a bus on which a test simulates the device.

pub mod bus;
pub mod common_buffer;
pub mod enabler;
pub mod routines;
pub mod transaction;
