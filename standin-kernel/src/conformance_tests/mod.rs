//! Tests that compare the routines with the headers' data, and write the lists of them.

mod abi_table;
mod abi_types;
mod coverage;
