//! Profiles for <https://www.speedscope.app>, in its own format.

use std::io::{self, Write};

use serde::Serialize;

use super::by_thread::Stacks;

/// The schema of the format, which names its version.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    shared: Shared<'a>,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// The frames of each sample, outermost first.
    samples: Vec<&'a [u32]>,
    weights: Vec<u64>,
}

/// Writes a profile for each thread. A sample weighs the interval between samples or, if that is
/// unknown or other events are among them, 1. `name` is the name of the trace.
///
/// # Errors
/// Fails with the output's error.
pub fn write_speedscope(stacks: &Stacks, name: &str, out: &mut impl Write) -> io::Result<()> {
    let has_times = stacks.first_interval != 0 && !stacks.has_other_events;
    let profiles = stacks.threads.iter().map(|([process, thread], samples)| {
        let weights: Vec<u64> = samples
            .iter()
            .map(|sample| match (has_times, sample.interval) {
                (false, _) => 1,
                // The interval was stated after the sample.
                (true, 0) => u64::from(stacks.first_interval) * 100,
                (true, interval) => u64::from(interval) * 100,
            })
            .collect();
        let frames = samples.iter().map(|sample| stacks.different.get(sample.stack as usize));
        Profile {
            r#type: "sampled",
            name: format!("{process}, {thread}"),
            unit: if has_times { "nanoseconds" } else { "none" },
            start_value: 0,
            end_value: weights.iter().sum(),
            samples: frames.map(|stack| stack.map_or(&[][..], |stack| stack)).collect(),
            weights,
        }
    });
    let frames = stacks.frames.iter().map(|name| Frame { name }).collect();
    let (schema, shared, profiles) = (SCHEMA, Shared { frames }, profiles.collect());
    serde_json::to_writer(&mut *out, &File { schema, exporter: "etl", name, shared, profiles })?;
    writeln!(out)
}
