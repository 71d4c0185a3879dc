//! A run in this process.

use anyhow::{Context, Result};
use etl_file::Catalog;
use etl_file::ImageError;
use etl_file::internals::show::Escaped;
use etl_file::symbols::formats_of;

use super::{
    config::RunConfig,
    diagnostic::{self, Diagnostic, Kind},
    hints::{self, Undecoded},
    progress::Progress,
    report::{Report, Summary},
};
use crate::{
    ground::{flight, nearest::nearest, symbols},
    harness::{
        config::KernelConfig,
        driver::Driver,
        error::KernelError,
        kernel::Kernel,
        recording::{RecordedEvent, Recording},
        script::{Done, Observer, Script, Setting},
    },
    services::{
        etw::{
            controller::EnableParameters,
            session::config::{SessionConfig, SessionReport},
            state::Target,
        },
        managers::registry::paths::parameters_path,
    },
};

impl RunConfig {
    /// Runs the driver in this process, and reports the course of the run to `report`. The driver can
    /// corrupt or end the process; [`run_in_child`](Self::run_in_child) survives that.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver cannot be run at all: if the trace file cannot be created, or
    /// a provider cannot be enabled. Faults of the driver are diagnostics.
    pub fn run_in_process(&self, report: &mut dyn Report) -> Result<Summary> {
        let mut diagnostics = Vec::new();
        let catalog = self.catalog(&mut diagnostics);
        let kernel = Kernel::with_config(KernelConfig {
            special_pool: self.special_pool,
            notes: self.notes,
            time_limit: self.time_limit,
            ..KernelConfig::default()
        });
        // Drivers and devices that remain after an error are reported as diagnostics.
        kernel.leave_behind();
        self.prepare(&kernel)?;
        let recording =
            Recording::start(&kernel, SessionConfig::to_file(&self.session, &self.etl), catalog)?;
        self.enable(&kernel, &recording)?;
        let mut course = Course {
            report,
            kernel: &kernel,
            printed: 0,
            printed_bytes: 0,
            unfinished: String::new(),
            progress: Progress::new(),
            undecoded: Undecoded::default(),
        };
        diagnostics.extend(self.drive(&kernel, &recording, &mut course));
        let described: Vec<(String, etl_file::Guid)> = recording
            .catalog()
            .providers()
            .map(|provider| {
                let guid = provider.control_guid.unwrap_or(provider.guid);
                (provider.name.clone(), guid)
            })
            .collect();
        let known = recording.catalog().providers();
        let known: Vec<etl_file::Guid> =
            known.flat_map(|one| [Some(one.guid), one.control_guid]).flatten().collect();
        // The trace is finished and reported even after a failure.
        let (events, traced) = recording.stop()?;
        for event in &events {
            course.event(event);
        }
        course.flush_output();
        diagnostics.extend(std::mem::take(&mut course.undecoded).notes(&known));
        diagnostics.extend(kernel.warnings().into_iter().map(Diagnostic::of_violation));
        diagnostics.extend(kernel.notes().into_iter().map(Diagnostic::of_violation));
        diagnostics.extend(self.missing_providers(&kernel, &described));
        diagnostics.extend(Diagnostic::of_refused(&flight::refused()));
        let of_symbols = kernel.notes_on_symbols().into_iter();
        diagnostics.extend(of_symbols.map(|note| Diagnostic::sentence(Kind::Note, note)));
        let deepest = kernel.stack_use().into_iter().max_by_key(|(_, bytes)| *bytes);
        diagnostics
            .extend(deepest.and_then(|(routine, bytes)| Diagnostic::of_stack(&routine, bytes)));
        diagnostic::sort(&mut diagnostics);
        for diagnostic in &diagnostics {
            report.diagnostic(diagnostic);
        }
        let summary = Summary {
            describes_events: !described.is_empty(),
            ..self.summary(&kernel, &traced, &diagnostics)
        };
        report.summary(&summary);
        Ok(summary)
    }

    /// Loads the schemas of events that the image contains.
    pub(super) fn catalog(&self, diagnostics: &mut Vec<Diagnostic>) -> Catalog {
        let mut catalog = Catalog::new();
        match catalog.load_image(&self.image) {
            Ok(skipped) => diagnostics.extend(skipped.into_iter().map(|skipped| {
                let image = self.image.display();
                let message = format!("{image}: skipping part of the resources: {skipped}");
                Diagnostic::sentence(Kind::Warning, message)
            })),
            // TraceLogging events need no resources. Loading fails if the file is not an image.
            Err(
                ImageError::Missing { .. } | ImageError::Io { .. } | ImageError::Malformed { .. },
            ) => {}
            Err(error) => {
                diagnostics.push(Diagnostic::sentence(Kind::Warning, error.to_string()));
            }
        }
        for path in &self.formats {
            match catalog.load_formats(path) {
                Ok(skipped) => diagnostics.extend(skipped.into_iter().map(|skipped| {
                    let message = format!("skipping part of the formats: {skipped}");
                    Diagnostic::sentence(Kind::Warning, message)
                })),
                Err(error) => {
                    diagnostics.push(Diagnostic::sentence(Kind::Warning, error.to_string()));
                }
            }
        }
        // The kernel reports an image with a missing or damaged PDB.
        let pdb = self.image.with_extension("pdb");
        if let Some(Ok((formats, skipped))) = symbols::reading(&pdb, || formats_of(&pdb)) {
            catalog.add_formats(&formats);
            diagnostics.extend(skipped.into_iter().map(|skipped| {
                let message = format!("skipping part of the formats: {skipped}");
                Diagnostic::sentence(Kind::Warning, message)
            }));
        }
        catalog
    }

    /// Sets the driver's folder and its registry values.
    fn prepare(&self, kernel: &Kernel) -> Result<()> {
        if let Some(folder) = &self.folder {
            kernel.set_folder(folder);
        }
        for file in &self.registry {
            kernel.import_registry(file)?;
        }
        let path = parameters_path(&self.service);
        for (name, value) in &self.parameters {
            kernel
                .set_registry_value(&path, name, value.clone())
                .with_context(|| format!("cannot set the parameter {name}"))?;
        }
        Ok(())
    }

    /// Enables the providers for the session.
    fn enable(&self, kernel: &Kernel, recording: &Recording) -> Result<()> {
        for one in &self.enabled {
            kernel
                .enable(recording.session(), one.target, one.parameters.clone())
                .with_context(|| format!("cannot enable {}", one.name))?;
        }
        if self.every_provider {
            // A classic provider takes the values literally (ETW-3.6.6).
            let everything = EnableParameters {
                level: u8::MAX,
                match_any: u64::MAX,
                ..EnableParameters::default()
            };
            kernel.enable_every_provider(recording.session(), everything)?;
        }
        Ok(())
    }

    /// Loads the driver, runs the script and unloads the driver. Returns the diagnostics.
    fn drive(
        &self,
        kernel: &Kernel,
        recording: &Recording,
        course: &mut Course<'_>,
    ) -> Vec<Diagnostic> {
        let setting = Setting { kernel, service: &self.service, recording, clients: self.clients };
        if let Some(script) = &self.script
            && let Err(error) = script.prepare(setting, course)
        {
            return Diagnostic::of_step(error);
        }
        let load = format!("load {} as {}", self.image.display(), self.service);
        course.starts(0, &load);
        let driver = match kernel.load_as(&self.image, &self.service) {
            Ok(driver) => driver,
            Err(error) => {
                let has_allocated = kernel.statistics().allocations > 0;
                let notes =
                    hints::of_failed_entry(&self.image, &error, self.special_pool, has_allocated);
                return Diagnostic::of_error(error).into_iter().chain(notes).collect();
            }
        };
        course.done(&Done::sentence(&load));
        let mut diagnostics = Vec::new();
        diagnostics.extend(hints::of_unprovided(driver.unprovided_imports()));
        let result = match self.script(&driver, &mut diagnostics) {
            Ok(script) => match script.run(setting, &driver, course) {
                // A device that cannot be opened is not a fault of its driver.
                Err(error) if self.script.is_none() && error.is_unsupported_open() => {
                    diagnostics.push(Diagnostic::sentence(Kind::Note, error.to_string()));
                    Script::life_without_a_device().run(setting, &driver, course)
                }
                result => result,
            }
            .map_err(Diagnostic::of_step),
            Err(error) => Err(Diagnostic::of_error(error)),
        };
        diagnostics.extend(result.err().into_iter().flatten());
        // The kernel does not unload drivers after a bugcheck.
        let has_crashed = diagnostics.iter().any(|one| one.kind == Kind::BugCheck);
        course.starts(0, "unload");
        match driver.unload() {
            // The error is the bugcheck that was already reported.
            Err(KernelError::BugCheck(_)) if has_crashed => {}
            Ok(()) => {
                if let Err(error) = course.step("unload", recording) {
                    diagnostics.extend(Diagnostic::of_error(error));
                }
            }
            // Windows also loads such a driver, and keeps it loaded until shutdown.
            Err(error @ KernelError::NotUnloadable(_)) if self.script.is_none() => {
                diagnostics.push(Diagnostic::sentence(Kind::Note, error.to_string()));
            }
            Err(error) => {
                diagnostics.extend(Diagnostic::of_error(error));
            }
        }
        diagnostics
    }

    /// Returns the script to run.
    fn script(
        &self,
        driver: &Driver,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<Script, KernelError> {
        if let Some(script) = &self.script {
            return Ok(script.clone());
        }
        if driver.adds_devices()? {
            return Ok(Script::life_of_a_device());
        }
        if driver.has_own_device()? {
            return Ok(Script::life_of_an_own_device());
        }
        diagnostics.push(Diagnostic::sentence(
            Kind::Note,
            "the driver has no EvtDriverDeviceAdd, so no device is added".to_owned(),
        ));
        Ok(Script::life_without_a_device())
    }

    /// Reports the enabled or described providers that did not register, and names the registered
    /// providers.
    fn missing_providers(
        &self,
        kernel: &Kernel,
        described: &[(String, etl_file::Guid)],
    ) -> Vec<Diagnostic> {
        let registered = kernel.providers();
        let names: Vec<String> = registered
            .iter()
            .map(|(guid, name)| {
                let described = described.iter().find(|(_, described)| described == guid);
                let described = described.map(|(name, _)| name.clone());
                let name = name.clone().or(described);
                name.unwrap_or_else(|| format!("{{{guid}}}"))
            })
            .collect();
        let is_missing = |wanted| registered.iter().all(|(guid, _)| *guid != wanted);
        let sentence = |what: String, name: &str| {
            if names.is_empty() {
                return format!("{what} was not registered; the driver registered no provider");
            }
            let near = nearest(name, names.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; the nearest name is {near}"));
            format!("{what} was not registered; registered: {}{near}", names.join(", "))
        };
        let enabled = self.enabled.iter().filter_map(|one| match one.target {
            Target::Provider(guid) if is_missing(guid) => {
                let what = format!("provider {}", one.name);
                Some(Diagnostic::sentence(Kind::Warning, sentence(what, &one.name)))
            }
            _ => None,
        });
        let described = described.iter().filter(|(_, guid)| is_missing(*guid)).map(|(name, _)| {
            let what = format!("provider {}, which the image describes,", Escaped(name));
            Diagnostic::sentence(Kind::Note, sentence(what, name))
        });
        enabled.chain(described).collect()
    }

    fn summary(
        &self,
        kernel: &Kernel,
        traced: &SessionReport,
        diagnostics: &[Diagnostic],
    ) -> Summary {
        Summary {
            image: self.image.clone(),
            describes_events: false,
            file: traced.file.clone(),
            events: traced.events,
            events_lost: traced.events_lost,
            calls: kernel.statistics().calls,
            statistics: Some(kernel.statistics()),
            peak_stack: kernel.stack_use().into_iter().max_by_key(|(_, bytes)| *bytes),
            errors: diagnostic::count(diagnostics, Kind::Failure),
            warnings: diagnostic::count(diagnostics, Kind::Warning),
            notes: diagnostic::count(diagnostics, Kind::Note),
        }
    }
}

/// Reports a script's steps, events and driver output, and shows progress.
struct Course<'a> {
    report: &'a mut dyn Report,
    kernel: &'a Kernel,
    /// The number of chunks of the driver's output that were reported.
    printed: usize,
    /// The total length of those chunks.
    printed_bytes: u64,
    /// The last chunk, if it has no line end yet.
    unfinished: String,
    progress: Progress,
    undecoded: Undecoded,
}

impl Course<'_> {
    /// Reports a step outside the script, and its events.
    fn step(&mut self, step: &str, recording: &Recording) -> Result<(), KernelError> {
        self.done(&Done::sentence(step));
        for event in recording.take()? {
            self.event(&event);
        }
        Ok(())
    }

    /// Reports the complete lines that the driver has printed.
    fn output(&mut self) {
        let printed = self.kernel.debug_output();
        let new = printed.get(self.printed..).unwrap_or_default();
        let text = std::mem::take(&mut self.unfinished) + &new.concat();
        self.printed = printed.len();
        self.printed_bytes =
            self.printed_bytes.saturating_add(new.iter().map(|piece| piece.len() as u64).sum());
        for line in text.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(line) => self.report.output(line.trim_end_matches('\r')),
                None => line.clone_into(&mut self.unfinished),
            }
        }
        self.note_shown();
    }

    fn note_shown(&self) {
        let unfinished = self.unfinished.len() as u64;
        flight::note_shown(self.printed_bytes.saturating_sub(unfinished));
    }

    /// Reports everything that the driver has printed.
    fn flush_output(&mut self) {
        self.output();
        if !self.unfinished.is_empty() {
            self.report.output(&std::mem::take(&mut self.unfinished));
            self.note_shown();
        }
    }
}

impl Observer for Course<'_> {
    fn starts(&mut self, line: usize, step: &str) {
        let step = match line {
            0 => step.to_owned(),
            _ => format!("line {line}: {step}"),
        };
        flight::note_step(&step);
        self.progress.starts(&step);
        self.report.starts(line, &step);
    }

    fn done(&mut self, done: &Done) {
        self.report.done(done);
        self.output();
    }

    fn event(&mut self, event: &RecordedEvent) {
        self.undecoded.count(event);
        self.report.event(event);
        flight::note_shown_event();
    }
}
