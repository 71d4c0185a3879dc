//! Notes that explain what a run shows: imports that are not provided, a `DriverEntry` that failed, and
//! events that are shown as bytes.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use etl_file::{Guid, decode::Kind as Record, internals::show::Escaped};
use object::{
    pe,
    read::pe::{ImageNtHeaders as _, ImageOptionalHeader as _, PeFile64},
};

use super::diagnostic::{Diagnostic, Kind};
use crate::{
    ground::{NtStatus, unprovided},
    harness::{error::KernelError, recording::RecordedEvent},
};

/// Returns notes about imports that the kernel does not provide, each as `module!name`.
pub(super) fn of_unprovided(imports: &[String]) -> Vec<Diagnostic> {
    let mut modules: BTreeMap<Option<(&str, &str)>, Vec<&str>> = BTreeMap::new();
    for import in imports {
        let (module, name) = import.split_once('!').unwrap_or(("", import));
        match unprovided::framework(module) {
            Some(what) => modules.entry(Some((what, module))).or_default().push(name),
            None => modules.entry(None).or_default().push(import),
        }
    }
    let note = |(framework, names): (Option<(&str, &str)>, Vec<&str>)| {
        let names = names.join(", ");
        let names = Escaped(&names);
        let message = match framework {
            Some((what, module)) => format!(
                "the stand-in kernel does not run {what}: it does not provide {names} of {module}; \
                 calling one causes a bugcheck"
            ),
            None => {
                format!(
                    "the stand-in kernel does not provide {names}; calling one causes a bugcheck"
                )
            }
        };
        Diagnostic::sentence(Kind::Note, message)
    };
    modules.into_iter().map(note).collect()
}

/// Returns notes that help to find why `DriverEntry` failed.
pub(super) fn of_failed_entry(
    image: &Path,
    error: &KernelError,
    has_special_pool: bool,
    has_allocated: bool,
) -> Vec<Diagnostic> {
    let (KernelError::Status { status, .. } | KernelError::FailedEntry { status, .. }) = error
    else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    if *status == NtStatus::ACCESS_DENIED
        && let Some(routine) = denied_without_integrity_check(image)
    {
        notes.push(format!(
            "{routine} returns STATUS_ACCESS_DENIED to a driver that is not linked with /INTEGRITYCHECK, \
             as this image; wdk-build sets the option"
        ));
    }
    if has_allocated && !has_special_pool {
        notes.push(
            "if nothing in the driver explains the status, run with `--special-pool`, which stops a \
             driver where it accesses pool that it does not own"
                .to_owned(),
        );
    }
    notes.into_iter().map(|note| Diagnostic::sentence(Kind::Note, note)).collect()
}

/// Returns the routine that an image imports and that an image without `/INTEGRITYCHECK` may not call.
fn denied_without_integrity_check(image: &Path) -> Option<&'static str> {
    let data = fs::read(image).ok()?;
    let file = PeFile64::parse(&*data).ok()?;
    let flags = file.nt_headers().optional_header().dll_characteristics();
    let is_checked = flags.contains(pe::IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY);
    let routines = ["PsSetCreateProcessNotifyRoutineEx", "ObRegisterCallbacks"];
    let is_imported = |name: &&str| data.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    if is_checked { None } else { routines.into_iter().find(is_imported) }
}

/// The numbers of manifest-based events that no schema describes, by provider, with its name.
#[derive(Default)]
pub(super) struct Undecoded(BTreeMap<Guid, (Option<Arc<str>>, u64)>);

impl Undecoded {
    /// Counts an event if no schema describes it.
    pub fn count(&mut self, event: &RecordedEvent) {
        /// `EVENT_HEADER_FLAG_STRING_ONLY`.
        const STRING_ONLY: u16 = 4;
        let RecordedEvent { event, decoded } = event;
        let is_described = decoded.event_name.is_some() || decoded.message.is_some();
        if decoded.kind == Record::Event && event.flags & STRING_ONLY == 0 && !is_described {
            let (_, count) = self
                .0
                .entry(decoded.provider)
                .or_insert_with(|| (decoded.provider_name.clone(), 0));
            *count += 1;
        }
    }

    /// Returns a note for each provider that is not among the described ones.
    pub fn notes(self, described: &[Guid]) -> impl Iterator<Item = Diagnostic> {
        let unknown = self.0.into_iter().filter(|(guid, _)| !described.contains(guid));
        unknown.map(|(guid, (name, count))| {
            let name = name.map_or_else(|| format!("{{{guid}}}"), |name| name.to_string());
            let message = format!(
                "the image does not describe the provider {}, so its events with ids ({count} in all) are \
                 shown as bytes, here and on Windows; call `wdk_etw_build::compile(…)` in the driver's \
                 build.rs or, for a manifest, add the resources that mc.exe writes to the image",
                Escaped(&name)
            );
            Diagnostic::sentence(Kind::Note, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framework_that_does_not_run_is_named_once() {
        let imports = ["FLTMGR.SYS!FltRegisterFilter", "FLTMGR.SYS!FltStartFiltering", "x.sys!Y"];
        let notes = of_unprovided(&imports.map(str::to_owned));
        let said: Vec<&str> = notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(
            said,
            [
                "the stand-in kernel does not provide x.sys!Y; calling one causes a bugcheck",
                "the stand-in kernel does not run file system minifilters: it does not provide \
                 FltRegisterFilter, FltStartFiltering of FLTMGR.SYS; calling one causes a bugcheck",
            ]
        );
    }
}
