//! Tests `wdk-etw-build` as build scripts and `cargo etw` use it.

mod any;
mod build_script;
mod compare;
mod corners;
mod declared;
mod goldens;
mod helpers;
mod imported;
mod samples;
mod several;
