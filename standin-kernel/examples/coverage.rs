//! Prints which routines Microsoft's driver samples use and which of them the stand-in kernel provides, as
//! Markdown: `cargo run -p standin-kernel --example coverage`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::Value;
use standin_kernel::ProvidedRoutine;

/// Routines that check their arguments but have no effect that a driver without hardware can
/// observe, because they set properties of things that do not exist in the stand-in kernel.
const WITHOUT_EFFECT: &[&str] = &[
    "ExSetTimerResolution",
    "IoRegisterBootDriverCallback",
    "IoRegisterPlugPlayNotification",
    "IoReportTargetDeviceChange",
    "IoReportTargetDeviceChangeAsynchronous",
    "IoTransferActivityId",
    "KeFlushIoBuffers",
    "KeRegisterBugCheckCallback",
    "KeRegisterBugCheckReasonCallback",
    "KeRegisterNmiCallback",
    "PoFxSetComponentWake",
    "PoFxSetDeviceIdleTimeout",
    "WdfControlDeviceInitSetShutdownNotification",
    "WdfDeviceAddRemovalRelationsPhysicalDevice",
    "WdfDeviceAssignMofResourceName",
    "WdfDeviceAssignS0IdleSettings",
    "WdfDeviceAssignSxWakeSettings",
    "WdfDeviceInitSetDeviceClass",
    "WdfDeviceInitSetPowerInrush",
    "WdfDeviceInitSetPowerNotPageable",
    "WdfDeviceInitSetPowerPageable",
    "WdfDeviceInitSetPowerPolicyEventCallbacks",
    "WdfDeviceSetPnpCapabilities",
    "WdfDeviceSetPowerCapabilities",
    "WdfDeviceWdmAssignPowerFrameworkSettings",
    "WdfDeviceInitSetReleaseHardwareOrderOnFailure",
    "WdfDeviceInitSetRemoveLockOptions",
    "WdfDeviceSetSpecialFileSupport",
    "WdfFdoInitSetEventCallbacks",
    "WdfGetTriageInfo",
    "WdfInterruptSetExtendedPolicy",
    "WdfInterruptSetPolicy",
    "WdfPdoAddEjectionRelationsPhysicalDevice",
    "WdfPdoInitRemovePowerDependencyOnParent",
    "WdfRequestAllocateTimer",
    "WdfVerifierDbgBreakPoint",
];

/// The stand-in kernel's support for a routine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Simulated,
    Accepted,
    Refused,
}

impl State {
    const fn text(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Accepted => "accepted without effect",
            Self::Refused => "refused",
        }
    }

    const fn is_served(self) -> bool {
        !matches!(self, Self::Refused)
    }
}

/// The provided routines, and the routines that samples use.
struct Coverage {
    provided: BTreeSet<&'static str>,
    /// The framework's functions.
    framework: BTreeSet<String>,
    samples: Vec<Sample>,
    /// The number of samples that use each framework function.
    by_kmdf: BTreeMap<String, usize>,
    /// The number of samples that use each kernel routine.
    by_nt: BTreeMap<String, usize>,
}

struct Sample {
    path: String,
    has_hardware: bool,
    extensions: Vec<String>,
    kmdf: Vec<String>,
    nt: Vec<String>,
}

/// A predicate that selects samples.
type Filter = fn(&Sample) -> bool;

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|one| Some(one.as_str()?.to_owned())).collect()
}

impl Coverage {
    fn read() -> Self {
        let text = etw_test_support::read_headers("samples.json");
        let data: Value = serde_json::from_str(&text).expect("samples.json is JSON");
        let samples: Vec<Sample> = data["samples"]
            .as_object()
            .expect("samples.json has samples")
            .iter()
            .map(|(path, sample)| Sample {
                path: path.clone(),
                has_hardware: sample["hardware"] == true,
                extensions: strings(&sample["cx"]),
                kmdf: strings(&sample["kmdf"]),
                nt: strings(&sample["nt"]),
            })
            .collect();
        let count = |of: fn(&Sample) -> &Vec<String>| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for sample in &samples {
                let names: BTreeSet<&String> = of(sample).iter().collect();
                for name in names {
                    *counts.entry(name.clone()).or_default() += 1;
                }
            }
            counts
        };
        let (by_kmdf, by_nt) = (count(|one| &one.kmdf), count(|one| &one.nt));
        let routines = ProvidedRoutine::all();
        let mut provided: BTreeSet<&str> = routines.iter().map(|one| one.name).collect();
        provided.extend(ProvidedRoutine::implicit());
        let text = etw_test_support::read_headers("functions.json");
        let functions: Value = serde_json::from_str(&text).expect("functions.json is JSON");
        let table = functions["kmdf"].as_object().expect("the data have the framework's functions");
        let framework = table.keys().cloned().collect();
        Self { provided, framework, samples, by_kmdf, by_nt }
    }

    fn state(&self, name: &str) -> State {
        if WITHOUT_EFFECT.contains(&name) {
            State::Accepted
        } else if self.provided.contains(name) {
            State::Simulated
        } else {
            State::Refused
        }
    }

    /// Returns the total sample counts of the supported functions, and of all functions.
    fn weight(&self, counts: &BTreeMap<String, usize>) -> (usize, usize) {
        let served = counts
            .iter()
            .filter(|(name, _)| self.state(name).is_served())
            .map(|(_, count)| count)
            .sum();
        (served, counts.values().sum())
    }

    /// Returns the number of routines that are supported, and the names of the unsupported
    /// routines.
    fn served<'a>(&self, names: &'a [String]) -> (usize, Vec<&'a str>) {
        let unique: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let (served, refused): (Vec<&str>, Vec<&str>) =
            unique.into_iter().partition(|name| self.state(name).is_served());
        (served.len(), refused)
    }

    fn text(&self) -> String {
        let share = |(served, all): (usize, usize)| {
            format!("{served} of {all} ({}.{} %)", served * 100 / all, served * 1000 / all % 10)
        };
        let mut text = format!(
            "# What published drivers use, and the stand-in kernel implements\n\n\
             A routine is *simulated* if it does what Windows' does, as far as a driver and its test can \
             observe it;\n*accepted without effect* if its arguments are checked and what it sets does \
             not exist here; and\n*refused* if calling it causes a bugcheck that names it.\n\n\
             | by the number of samples that use each | served |\n| --- | --- |\n\
             | framework functions | {} |\n| kernel routines | {} |\n",
            share(self.weight(&self.by_kmdf)),
            share(self.weight(&self.by_nt)),
        );
        let groups: [(&str, Filter); 3] = [
            ("Samples without hardware", |one| !one.has_hardware && one.extensions.is_empty()),
            ("Samples without hardware that use other drivers' frameworks", |one| {
                !one.has_hardware && !one.extensions.is_empty()
            }),
            ("Samples with hardware", |one| one.has_hardware),
        ];
        for (title, is_in) in groups {
            let _ = write!(
                text,
                "\n## {title}\n\n| sample | framework functions | kernel routines | refused |\n\
                 | --- | --- | --- | --- |\n"
            );
            for sample in self.samples.iter().filter(|one| is_in(one)) {
                let (kmdf, mut refused) = self.served(&sample.kmdf);
                let (nt, more) = self.served(&sample.nt);
                let (all_kmdf, all_nt) = (kmdf + refused.len(), nt + more.len());
                refused.extend(more);
                let mut path = sample.path.trim_end_matches(".vcxproj").to_owned();
                if !sample.extensions.is_empty() {
                    let _ = write!(path, " ({})", sample.extensions.join(", "));
                }
                let _ = writeln!(
                    text,
                    "| {path} | {kmdf} of {all_kmdf} | {nt} of {all_nt} | {} |",
                    refused.join(", ")
                );
            }
        }
        text.push_str(
            "\n## Framework functions\n\n| function | samples | |\n| --- | --- | --- |\n",
        );
        for name in &self.framework {
            let samples = self.by_kmdf.get(name).copied().unwrap_or_default();
            let _ = writeln!(text, "| {name} | {samples} | {} |", self.state(name).text());
        }
        text.push_str(
            "\n## Kernel routines\n\nThose that a sample uses, and those that are provided.\n\n\
             | routine | samples | |\n| --- | --- | --- |\n",
        );
        let framework: BTreeSet<&str> = self.framework.iter().map(String::as_str).collect();
        let routines: BTreeSet<&str> = self
            .by_nt
            .keys()
            .map(String::as_str)
            .chain(self.provided.iter().copied())
            .filter(|name| !framework.contains(name))
            .collect();
        for name in routines {
            let samples = self.by_nt.get(name).copied().unwrap_or_default();
            let _ = writeln!(text, "| {name} | {samples} | {} |", self.state(name).text());
        }
        text
    }
}

fn main() {
    print!("{}", Coverage::read().text());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_without_effect_is_provided() {
        let coverage = Coverage::read();
        for name in WITHOUT_EFFECT {
            assert!(coverage.provided.contains(name), "{name}");
        }
    }
}
