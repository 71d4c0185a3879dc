//! The ETW runtime: registrations, sessions, and what lies between them.
//!
//! Ids in comments can be looked up in `docs/reference`: ETW-3.2.3, V04 and O8 in
//! `etw-runtime.md`, which describes how ETW behaves, lists the verifier's rules, and names
//! what is unspecified; R-E4 in `requirements.md`.

mod activities;
mod checks;
mod composite;
pub mod controller;
mod exports;
mod filters;
mod open_points;
mod routes;
mod runtime;
mod session;
mod write;

#[cfg(feature = "fuzzing")]
pub use self::runtime::{CheckedTraits, check_traits};
pub use self::{
    activities::Activities,
    controller::{ControlError, EnableParameters, FilterData, SessionHandle},
    exports::exports,
    filters::{EventFilters, EventIdFilter, EventNameFilter},
    open_points::{GroupDenial, ImplicitActivity, OpenPoints, PagedSession},
    routes::Routes,
    runtime::{Etw, Target, report_left_registered},
    session::{
        Session,
        config::{Output, RealTime, SessionConfig, SessionReport, SessionStatistics},
        realtime::{Mailbox, RT_LOST_EVENT},
    },
};
pub use etl_file::{ClockType, Guid};

/// `EVENT_CONTROL_CODE_DISABLE_PROVIDER`.
const DISABLE: u32 = 0;
/// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`.
const ENABLE: u32 = 1;
/// `EVENT_CONTROL_CODE_CAPTURE_STATE`.
const CAPTURE_STATE: u32 = 2;
