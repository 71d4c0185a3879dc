//! Runs the scenarios on the sample driver's binary in the stand-in kernel. Each scenario is a test
//! of its own and is reported by its name.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod play {
    use std::{path::PathBuf, process::ExitCode};

    use etw_scenarios::{StandIn, scenarios};
    use libtest_mimic::{Arguments, Failed, Trial};

    /// Returns the path of the release build of the sample driver.
    fn sample() -> PathBuf {
        etw_test_support::drivers("release").join("etw_sample_driver.sys")
    }

    pub fn main() -> ExitCode {
        let trials = scenarios()
            .map(|scenario| {
                Trial::test(scenario.name, move || {
                    let mut host = StandIn::new(&sample()).map_err(|error| error.to_string())?;
                    let outcome = scenario.play(&mut host);
                    if outcome.passed() {
                        Ok(())
                    } else {
                        Err(Failed::from(outcome.describe()))
                    }
                })
            })
            .collect();
        libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> std::process::ExitCode {
    play::main()
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {
    println!("no scenario was run: the stand-in kernel runs on x86-64 Linux only");
}
