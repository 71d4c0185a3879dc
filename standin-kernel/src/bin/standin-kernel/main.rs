//! `standin-kernel`: runs a driver's .sys in the stand-in kernel and traces it.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod command;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> std::process::ExitCode {
    command::main()
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "error: cannot run a driver on this system: the stand-in kernel requires x86-64 Linux"
    );
    std::process::ExitCode::FAILURE
}
