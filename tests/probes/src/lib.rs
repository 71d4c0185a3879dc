//! Probes of undocumented ETW behavior, and the stages that run them on any host.
//!
//! A [`Probe`] contains its question, the documented answer, and the stand-in kernel's assumption.
//! Its stage asks a [`Host`], which runs the driver `etw-probes-driver` and controls sessions. A
//! host is the stand-in kernel (`StandIn`, on x86-64 Linux) or a Windows machine (the sample
//! client's command `probes`). [`ask`] runs all probes, and returns the [`Answers`], one JSON file
//! for each system.

mod answers;
mod compare;
mod document;
mod file;
mod host;
mod list;
mod probe;
mod run;
mod stage;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod stand_in;

pub use crate::{
    answers::{Answer, Answers, System, Value, Values},
    compare::compare,
    document::document,
    file::AnswersError,
    host::{Completed, Enabling, Host, Recorded, SessionPlan, Thread},
    list::probes,
    probe::Probe,
    run::{ask, ask_saving, ask_some},
};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use crate::{compare::proposed_settings, stand_in::StandIn};
