//! The ETW runtime: registrations, sessions, and what lies between them.
//!
//! Ids in comments can be looked up in `docs/reference`: ETW-3.2.3, V04 and O8 in
//! `etw-runtime.md`, which describes how ETW behaves, lists the verifier's rules, and names
//! what is unspecified; R-E4 in `requirements.md`.

pub mod activities;
pub mod activity_routines;
pub mod callback_memory;
pub mod checks;
pub mod composite;
pub mod controller;
pub mod error;
pub mod event;
pub mod exports;
pub mod filters;
pub mod limits;
pub mod notify;
pub mod registration;
pub mod routes;
pub mod service;
pub mod session;
pub mod state;
pub mod traits;
pub mod unspecified;
pub mod write;
