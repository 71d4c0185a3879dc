//! Tests of the wdk-sys stand-in: they compare its sources with data on the WDK's headers, and run
//! its entry code with a simulated loader.
//!
//! The comparison does not share code with wdk-sys-generator, which wrote the sources.
