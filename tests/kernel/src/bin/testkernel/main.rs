//! `testkernel`: runs a driver's .sys in the stand-in kernel, and traces it.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod command;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> std::process::ExitCode {
    command::main()
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> std::process::ExitCode {
    eprintln!("error: cannot run a driver here: the stand-in kernel runs on x86-64 Linux only");
    std::process::ExitCode::FAILURE
}
