//! How many events a second the stand-in kernel takes from a driver into a session's file.
//!
//! From one thread and from two, with a thread that writes the file; and, without that
//! thread, how much more an event costs in a file that is ten times as large. Prints JSON.
//! Its argument is the sample driver's image.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod measure;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() {
    measure::main();
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {
    eprintln!("nothing is measured here: the stand-in kernel runs on x86-64 Linux only");
}
