//! Runs the scenarios on the sample driver's binary in the stand-in kernel. Each scenario is a
//! separate test, which is reported by its name.

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod stand_in {
    use std::{path::PathBuf, process::ExitCode};

    use etw_sample_interface::{IOCTL_SIMULATE_READS, Reads};
    use etw_scenarios::{BufferSpace, Filter, Host, HostError, Source, StandIn, scenarios};
    use libtest_mimic::{Arguments, Failed, Trial};
    use zerocopy::IntoBytes;

    /// An event: its name, its level and its keywords.
    type Event = (String, u8, u64);

    /// Returns the events that the Windows stages expect for their requests. These stages also
    /// check the recipes with them.
    fn expected_of_traffic() -> Vec<Event> {
        let path = etw_test_support::root().join("tests/windows/traffic.json");
        let text = std::fs::read_to_string(path).unwrap();
        let data: serde_json::Value = serde_json::from_str(&text).unwrap();
        let sent = serde_json::json!(["send write hello", "send read 5", "send reads 2 1"]);
        assert_eq!(data["traffic"], sent, "`send_traffic` sends other requests");
        let events = data["events"].as_array().unwrap();
        events
            .iter()
            .map(|event| {
                let keyword = event["keyword"].as_str().unwrap().trim_start_matches("0x");
                (
                    event["name"].as_str().unwrap().to_owned(),
                    u8::try_from(event["level"].as_u64().unwrap()).unwrap(),
                    u64::from_str_radix(keyword, 16).unwrap(),
                )
            })
            .collect()
    }

    /// Sends the requests of `traffic.json` like the client, each through a separate file.
    fn send_traffic() -> Result<Vec<Event>, HostError> {
        let mut host = StandIn::new(&sample())?;
        host.load_driver()?;
        let session = host.start_session("Traffic", BufferSpace::Ample)?;
        let everything = Filter { level: 5, ..Filter::default() };
        let provider = Source::Provider(etw_scenarios::provider());
        host.enable(session, provider, &everything)?;
        let file = host.open()?;
        host.write(file, b"hello")?;
        host.close(file)?;
        let file = host.open()?;
        host.read(file, 5)?;
        host.close(file)?;
        let file = host.open()?;
        let reads = Reads { local: 2, remote: 1 };
        let (request, _) =
            host.start_traced_control(file, IOCTL_SIMULATE_READS, reads.as_bytes(), 0)?;
        host.finish(request)?;
        host.close(file)?;
        let recording = host.stop_session(session)?;
        host.clear()?;
        let events = recording.events.into_iter();
        Ok(events
            .map(|seen| {
                let descriptor = seen.event.descriptor;
                let name = seen.event.event_name.unwrap_or_default().to_string();
                (name, descriptor.level, descriptor.keyword)
            })
            .collect())
    }

    fn check_traffic() -> Result<(), Failed> {
        let found = send_traffic().map_err(|error| error.to_string())?;
        assert_eq!(found, expected_of_traffic());
        Ok(())
    }

    /// Returns the path of the release build of the sample driver.
    fn sample() -> PathBuf {
        etw_test_support::drivers("release").join("etw_sample_driver.sys")
    }

    pub fn main() -> ExitCode {
        // When time passes slowly, timers tick less often than scenarios wait, as on Windows.
        let trials = scenarios()
            .flat_map(|scenario| [(scenario, 1), (scenario, 4)])
            .map(|(scenario, slowness)| {
                let name = match slowness {
                    1 => scenario.name.to_owned(),
                    _ => format!("{}-in-slow-time", scenario.name),
                };
                Trial::test(name, move || {
                    let host = StandIn::new(&sample()).map_err(|error| error.to_string())?;
                    let mut host = host.slowed(slowness);
                    let outcome = scenario.run_on(&mut host);
                    if outcome.passed() { Ok(()) } else { Err(Failed::from(outcome.describe())) }
                })
            })
            .chain([Trial::test("traffic-of-the-stages-on-windows", check_traffic)])
            .collect();
        libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
    }
}

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
fn main() -> std::process::ExitCode {
    stand_in::main()
}

#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
fn main() {
    println!("no scenario was run: the stand-in kernel requires x86-64 Linux or Windows");
}
