//! The scenarios on the sample driver's binary, in the stand-in kernel: one test each, so
//! that each is reported by its name.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod play {
    use std::{path::PathBuf, process::ExitCode};

    use etw_scenarios::{StandIn, scenarios};
    use libtest_mimic::{Arguments, Failed, Trial};

    /// The sample driver, as it would be shipped.
    fn sample() -> PathBuf {
        etw_test_support::drivers("release").join("etw_sample_driver.sys")
    }

    pub fn main() -> ExitCode {
        let trials = scenarios()
            .map(|scenario| {
                Trial::test(scenario.name, move || {
                    let mut world = StandIn::new(&sample()).map_err(|error| error.to_string())?;
                    let outcome = scenario.play(&mut world);
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
    println!("no scenario is played here: the stand-in kernel runs on x86-64 Linux only");
}
