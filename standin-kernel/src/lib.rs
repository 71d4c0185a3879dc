//! A stand-in kernel for tests of drivers that use ETW.
//!
//! It loads a driver's real binary (a .sys file for x64 Windows) into this process, runs its machine
//! code natively, and provides what Windows would: the Kernel-Mode Driver Framework, the routines the
//! driver imports from ntoskrnl.exe, and an ETW runtime with sessions that write .etl files. It also
//! checks the driver: the IRQL of each call, its pool blocks, its registrations.
//!
//! ```no_run
//! use std::path::Path;
//! use standin_kernel::{EnableParameters, Identity, Kernel, SessionConfig, Target};
//!
//! # fn main() -> Result<(), standin_kernel::KernelError> {
//! let kernel = Kernel::new();
//! let session = kernel.start_session(SessionConfig::to_file("demo", "demo.etl"))?;
//! let provider = "b3864c38-4273-58c5-545b-8b3608343471".parse().expect("a GUID");
//! kernel.enable(session, Target::Provider(provider), EnableParameters::default())?;
//! let driver = kernel.load(Path::new("my_driver.sys"))?;
//! let device = driver.add_device()?;
//! let file = device.open(Identity { process: 4242, thread: 4243 })?;
//! file.write(b"hello")?;
//! file.close()?;
//! device.remove()?;
//! driver.unload()?; // an error if it leaked pool or left a provider registered
//! println!("{} events", kernel.stop_session(session)?.events);
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//!
//! The code is in five folders. Each depends only on the folders listed before it: `ground`
//! (memory, images, the ABI, IRQLs, the clock), `execution` (stacks, gateways, threads, schedules,
//! faults), `services` (the routines for drivers: pool, ntoskrnl.exe, KMDF, ETW), `harness` (the
//! API for tests) and `run` (the command lines, a feature). Modules inside a folder have no cyclic
//! dependencies.
//!
//! # What it does not do
//!
//! The crate is a test double that shows the behavior of Windows to a driver, a controller or a
//! consumer; it is not an operating system. Time passes only through [`Kernel::advance`], waits,
//! and readings of the clock. There are no USB devices and no file systems other than a folder of
//! the test, and interrupts occur only when the test raises them. A driver may import routines that
//! the crate does not provide, but the first call to one causes a bugcheck that names it.

#![cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
#![cfg_attr(
    any(not(feature = "run"), windows),
    expect(
        dead_code,
        reason = "only the command lines read what a lost process recorded, and only Linux confines files"
    )
)]
#![allow(
    clippy::significant_drop_tightening,
    reason = "the locks are held for whole steps, so that no thread sees a step half done"
)]

/// The guide, whose examples must compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/test-your-driver.md")]
pub struct Guide;

mod execution;
mod ground;
mod harness;
#[cfg(feature = "run")]
pub mod run;
mod services;

/// Access for the fuzz targets. Not part of the public API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::{
        ground::unwind::{End, MAX_FRAMES, Registers, Table, walk},
        services::etw::traits::{CheckedTraits, check_traits},
    };
}

pub use etl_file::{ClockType, Guid};

pub use crate::{
    execution::{identity::Identity, schedule::Schedule},
    ground::{
        NtStatus,
        bugcheck::{BugCheck, Violation, Violations},
        irql::Irql,
        loader::LoadError,
        nearest::nearest,
        rule::{Rule, Severity},
    },
    harness::{
        answers::AnswersError,
        concurrent_work::Work,
        config::KernelConfig,
        conformance,
        device::Device,
        device_config::DeviceConfig,
        driver::Driver,
        error::KernelError,
        file::File,
        image::{check_image, check_image_bytes},
        kernel::{Kernel, Statistics},
        process::Process,
        program::{Program, ProgramEvent},
        recording::{RecordedEvent, Recording},
        registry_file::{RegistryFile, RegistryFileError},
        request::Request,
        script,
        script::Script,
        session::Consumer,
        simulated_device::SimulatedDevice,
    },
    services::{
        composition::exports::ProvidedRoutine,
        etw::{
            controller::{EnableParameters, SessionHandle},
            error::ControlError,
            filters::{EventFilters, EventIdFilter, EventNameFilter, FilterData},
            recorder_logs::RecorderMessage,
            session::{
                config::{
                    Output, RealTime, Sequence, SessionConfig, SessionReport, SessionStatistics,
                },
                realtime::RT_LOST_EVENT,
            },
            state::Target,
            unspecified::{GroupDenial, ImplicitActivity, PagedSession, UnspecifiedBehaviour},
        },
        kmdf::{
            device::capabilities::DevicePowerState,
            resource_lists::Resource,
            state::{
                request::{Completion, RequestKind},
                simulated::{RequestAction, SimulatedRequest},
            },
        },
        managers::registry::value::RegistryValue,
        ntoskrnl::io::error_log::ErrorLogEntry,
        verifier::faults::Fault,
    },
};
