//! The ETW runtime: registrations, sessions, and the delivery of events and notifications.
//!
//! Ids in comments refer to `docs/reference`. Ids such as ETW-3.2.3, V04 and O8 are in
//! `etw-runtime.md`, which describes the behavior of ETW, the verifier's rules and the unspecified
//! behavior. Ids such as R-E4 are in `requirements.md`.

pub mod activities;
mod activity_io;
pub mod activity_routines;
pub mod callback;
pub mod callback_memory;
pub mod checks;
pub mod classic;
pub mod controller;
pub mod enable_info;
pub mod error;
pub mod event;
pub mod exports;
pub mod filters;
pub mod limits;
pub mod message;
pub mod notify;
pub mod recorder;
pub mod recorder_logs;
pub mod registration;
pub mod routes;
pub mod service;
pub mod session;
pub mod state;
pub mod trace_information;
pub mod traits;
pub mod unspecified;
pub mod write;
