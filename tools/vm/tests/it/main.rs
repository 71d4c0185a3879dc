//! Tests of what a virtual machine's Windows runs.

#![cfg(unix)]

mod answer;
mod batch_files;
mod iso;
