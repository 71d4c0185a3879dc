//! Measures the number of events per second that the stand-in kernel writes from a driver to a
//! session's file.
//!
//! The driver runs on one thread and on two threads, with a separate thread that writes the file.
//! Without that thread, the program also measures the additional cost of an event in a file that is
//! ten times as large, and compares two threads with one thread, and eight sessions with one
//! session. The argument is the sample driver's image. The output is JSON.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod measure;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() {
    measure::main();
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {
    eprintln!("cannot measure on this system: the stand-in kernel requires x86-64 Linux");
}
