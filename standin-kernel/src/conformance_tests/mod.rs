//! Tests that compare the routines with the header data, and write the lists of routines.

mod abi_table;
mod abi_types;
mod coverage;
