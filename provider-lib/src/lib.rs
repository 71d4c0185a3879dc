//! ETW (Event Tracing for Windows) for kernel-mode Rust drivers: providers, traits, enable state, events.
