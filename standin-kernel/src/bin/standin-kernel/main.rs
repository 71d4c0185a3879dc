//! `standin-kernel`: runs a driver's .sys in the stand-in kernel and traces it.

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod command;

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
fn main() -> std::process::ExitCode {
    command::main()
}

#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "error: cannot run a driver on this system: the stand-in kernel requires x86-64 Linux or Windows"
    );
    std::process::ExitCode::FAILURE
}
