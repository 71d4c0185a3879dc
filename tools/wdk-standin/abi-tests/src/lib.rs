//! Tests of the wdk-sys stand-in: its sources are compared with data on the WDK's headers, and its
//! entry code runs with a simulated loader.
//!
//! The comparison does not share code with wdk-sys-generator, which wrote the sources.
