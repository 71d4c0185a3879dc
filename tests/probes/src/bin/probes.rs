//! Runs all probes in the stand-in kernel and writes its answers file, or compares a measured system's
//! answers file with the stand-in kernel's.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod command {
    use std::{
        env,
        error::Error,
        fs,
        path::{Path, PathBuf},
    };

    use etw_probes::{Answer, Answers, StandIn, ask, compare, proposed_settings};
    use standin_kernel::KernelConfig;

    pub fn run() -> Result<(), Box<dyn Error>> {
        let mut arguments = env::args_os().skip(1).map(PathBuf::from);
        let (Some(image), Some(out), None) = (arguments.next(), arguments.next(), arguments.next())
        else {
            return Err("usage: probes DRIVER.sys FILE.json, or probes --compare FILE.json".into());
        };
        if image.as_os_str() == "--compare" {
            return print_comparison(&out);
        }
        let mut host = StandIn::new(&image, KernelConfig::default())?;
        let answers = ask(&mut host, &mut |probe, answer| match answer {
            Answer::Found(_) => println!("{}", probe.id),
            Answer::NotAsked(why) => println!("{}: not asked: {why}", probe.id),
        })?;
        host.close()?;
        fs::write(&out, answers.write()?)
            .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
        println!("{}", out.display());
        Ok(())
    }

    /// Prints the comparison in Markdown.
    fn print_comparison(path: &Path) -> Result<(), Box<dyn Error>> {
        let stand_in = include_str!("../../../../standin-kernel/answers/stand-in.json");
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let measured =
            Answers::read(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        print!("{}{}", compare(&Answers::read(stand_in)?, &measured), proposed_settings(&text));
        Ok(())
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> std::process::ExitCode {
    match command::run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {
    eprintln!("error: the stand-in kernel runs on x86-64 Linux only");
}
