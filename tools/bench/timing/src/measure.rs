//! The measurements.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::{
    image::Image,
    ntoskrnl::{counted_write, empty_write, take_writes},
    processors,
    threads::{Time, once, together},
};

/// The ways to write the reference event in a loop that only writes, as prefixes of the image's
/// functions. `bare` only calls `EtwWriteEx`. To time another declaration of the provider, add an
/// entry here and one in `cargo xtask bench`.
const WRITES: [&str; 6] = ["described", "manifest", "single", "unprotected", "peer", "bare"];

/// The ways to write the reference event in a loop over an array. `nothing` writes no event.
const ARRAYS: [&str; 5] = ["nothing", "described", "manifest", "unprotected", "peer"];

/// The loops over an array, as suffixes of the image's functions.
const LOOPS: [&str; 2] = ["sum", "checksum"];

/// The number of rounds. Each round measures everything once, so that a disturbance affects all
/// ways alike.
const ROUNDS: usize = 11;

/// The approximate duration of a loop on one thread.
const LONG: Duration = Duration::from_millis(60);

/// The number of elements in the array, which fits in a processor's first-level cache.
const ELEMENTS: usize = 2048;

fn array() -> Vec<u64> {
    (0..ELEMENTS as u64).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

/// Fails unless each loop writes one event in each step while a session wants events, and none
/// otherwise.
pub fn check(path: &Path) -> Result<()> {
    const STEPS: u64 = 10;
    let image = Image::load(path, counted_write)?;
    let expect = |what: &str, enabled: bool, expected: u64| {
        let written = take_writes();
        let state = if enabled { "enabled" } else { "disabled" };
        ensure!(
            written == expected,
            "{what}, {state}: {written} writes in {STEPS} steps, expected {expected}"
        );
        Ok(())
    };
    take_writes();
    for enabled in [false, true] {
        image.notify(enabled);
        for way in WRITES {
            image.writes(way)?(STEPS);
            let writes = enabled || way == "bare";
            expect(&format!("{way}_writes"), enabled, if writes { STEPS } else { 0 })?;
        }
        for name in LOOPS {
            let values: Vec<u64> = (1..=STEPS).collect();
            let expected = image.array("nothing", name)?(&values, 1);
            for way in ARRAYS {
                let what = format!("{way}_{name}");
                let result = image.array(way, name)?(&values, 1);
                ensure!(
                    result == expected,
                    "{what} returns {result:#x}; without the event it is {expected:#x}"
                );
                let writes = enabled && way != "nothing";
                expect(&what, enabled, if writes { STEPS } else { 0 })?;
            }
        }
    }
    Ok(())
}

/// Returns the number of steps in which a loop takes about [`LONG`] on one thread.
fn times(run: impl Fn(u64)) -> Result<u64> {
    let mut times = 1;
    loop {
        let took = once(|| run(times))?.on_processor;
        if took >= LONG / 8 {
            let factor = LONG.as_secs_f64() / took.as_secs_f64();
            return Ok(scaled(times, factor));
        }
        ensure!(times < 1 << 40, "a loop of the image ends at once, whatever its number of steps");
        times *= 2;
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers are positive and need few digits"
)]
fn scaled(times: u64, factor: f64) -> u64 {
    ((times as f64 * factor) as u64).max(1)
}

/// The figures of one loop, one for each round.
#[derive(Default)]
struct Figures {
    /// The nanoseconds of processor time per step, averaged over the threads.
    nanoseconds: Vec<f64>,
    /// The largest fraction of the time that a thread waited for its processor.
    waited: Vec<f64>,
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "the numbers need few digits")]
    fn add(&mut self, times: &[Time], steps: u64) {
        let took: Duration = times.iter().map(|time| time.on_processor).sum();
        let steps = steps as f64 * times.len() as f64;
        self.nanoseconds.push(took.as_secs_f64() * 1e9 / steps);
        let waited = times.iter().map(Time::waited);
        self.waited.push(waited.fold(0.0, f64::max));
    }

    fn json(&self) -> Value {
        json!({"ns": self.nanoseconds, "waited": self.waited})
    }
}

/// Returns the numbers of threads to measure with.
fn thread_counts(processors: usize) -> Vec<usize> {
    let mut counts = vec![1, 2, processors];
    counts.dedup();
    counts
}

/// Times an image's loops.
pub fn measure(path: &Path) -> Result<Value> {
    let processors = processors::usable()?;
    ensure!(
        processors.len() >= 2,
        "cannot compare two threads with one: this process may use only {} processor",
        processors.len()
    );
    let counts = thread_counts(processors.len());
    let image = Image::load(path, empty_write)?;
    let mut rng = Rng::with_seed(0);
    let mut found = json!({
        "processors": processors.len(),
        "threads": &counts,
        "rounds": ROUNDS,
    });
    found["writes"] = writes(&image, &processors, &counts, &mut rng)?;
    found["arrays"] = arrays(&image, &processors, &mut rng)?;
    Ok(found)
}

/// Times the loops that only write, with the providers enabled.
fn writes(image: &Image, processors: &[usize], counts: &[usize], rng: &mut Rng) -> Result<Value> {
    image.notify(true);
    let mut ways = Vec::new();
    for way in WRITES {
        let run = image.writes(way)?;
        let steps = times(&run)?;
        let figures: Vec<Figures> = counts.iter().map(|_| Figures::default()).collect();
        ways.push((way, run, steps, figures));
    }
    for round in 0..ROUNDS {
        for (_, run, steps, figures) in &mut ways {
            for (count, figures) in counts.iter().zip(figures) {
                // One thread alternates between the processors that two threads use.
                let skipped = if *count == 1 { round % 2 } else { 0 };
                let on: Vec<usize> =
                    processors.iter().copied().skip(skipped).take(*count).collect();
                figures.add(&together(&on, rng, || run(*steps))?, *steps);
            }
        }
    }
    let found = ways.into_iter().map(|(way, _, _, figures)| {
        let of_counts = counts.iter().map(ToString::to_string);
        let figures = figures.iter().map(Figures::json);
        (way.to_owned(), of_counts.zip(figures).collect())
    });
    Ok(Value::Object(found.collect::<Map<_, _>>()))
}

/// Times the loops over an array, with the providers disabled.
fn arrays(image: &Image, processors: &[usize], rng: &mut Rng) -> Result<Value> {
    image.notify(false);
    let values = &array();
    let mut loops = Vec::new();
    for name in LOOPS {
        for way in ARRAYS {
            let run = image.array(way, name)?;
            let run = move |times| {
                run(values, times);
            };
            let times = times(&run)?;
            loops.push((name, way, run, times, Figures::default()));
        }
    }
    for round in 0..ROUNDS {
        for (_, _, run, times, figures) in &mut loops {
            let on: Vec<usize> = processors.iter().copied().skip(round % 2).take(1).collect();
            let took = together(&on, rng, || run(*times))?;
            figures.add(&took, *times * ELEMENTS as u64);
        }
    }
    let mut found = json!({});
    for (name, way, _, _, figures) in &loops {
        found[*name][*way] = figures.json();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_does_not_exist_is_an_error_with_its_path() {
        let error = check(Path::new("missing.dll")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read missing.dll: "), "{error}");
    }

    #[test]
    fn a_machine_with_two_processors_has_no_third_row() {
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(64), [1, 2, 64]);
    }

    #[test]
    fn a_step_costs_the_mean_of_the_threads() {
        let time = |passed, on_processor| Time {
            passed: Duration::from_millis(passed),
            on_processor: Duration::from_millis(on_processor),
        };
        let mut figures = Figures::default();
        figures.add(&[time(40, 40), time(80, 60)], 1_000_000);
        assert_eq!(figures.json(), json!({"ns": [50.0], "waited": [0.25]}));
    }
}
