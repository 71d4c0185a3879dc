//! Compares the output of `etl` with the output of Windows' decoders for the same trace, copied
//! from a virtual machine.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use driver_build::files;
use etl::compare::{Comparison, Other, Ours};
use etl_file::ImageError;
use etl_file::{Catalog, Selection, TraceFile};
use etw_vm::{
    kit::{Contents, PLAIN, VERIFIER},
    report::{Outcome, Report},
};

/// The stage that decodes a trace with tracerpt, Get-WinEvent and TDH.
const STAGE: &str = "decode";

/// The stage's trace.
const TRACE: &str = "decode.etl";

/// The decoders' output files.
const FILES: [&str; 3] = ["tracerpt.xml", "winevent.json", "tdh.jsonl"];

/// The maximum number of differences per file in the note.
const NAMED: usize = 3;

/// The maximum number of characters of a value in the note.
const SHOWN: usize = 80;

/// The information needed to decode the events of the driver under test.
#[derive(Clone, Debug)]
pub struct Traces {
    image: PathBuf,
    provider: Option<String>,
}

impl Traces {
    /// Returns the information needed to decode the events of a kit's driver.
    pub fn from_contents(contents: &Contents) -> Self {
        Self {
            image: contents.driver.folder.join(&contents.driver.sys),
            provider: contents.provider.as_ref().map(|(_, guid)| guid.clone()),
        }
    }

    /// Compares the files in the results of a run, and adds a note to the report. Marks the stage
    /// as failed if anything differs or the trace cannot be read. A run without the trace or the
    /// decoders' files gets no note.
    pub fn examine(&self, out: &Path, report: &mut Report) {
        for leg in [PLAIN, VERIFIER] {
            self.examine_leg(leg, out, report);
        }
    }

    fn examine_leg(&self, leg: &str, out: &Path, report: &mut Report) {
        let folder = out.join(leg).join(STAGE);
        let trace = folder.join(TRACE);
        let files: Vec<PathBuf> =
            FILES.into_iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
        if !trace.is_file() || files.is_empty() {
            return;
        }
        let compared = self.catalog().and_then(|catalog| self.compare(&catalog, &trace, &files));
        match compared {
            Ok((note, agrees)) => {
                let differs = "Windows and etl decode its trace differently";
                put(leg, &note, (!agrees).then_some(differs), report);
            }
            Err(error) => {
                let note = format!("{} was not compared: {error:#}", trace.display());
                let reason = "its trace could not be compared; see the note";
                put(leg, &note, Some(reason), report);
            }
        }
    }

    /// Returns the schemas of the driver's events: from the image's resources or, if it has none,
    /// from the manifests in its folder. `TraceLogging` events need neither.
    fn catalog(&self) -> Result<Catalog> {
        let mut catalog = Catalog::new();
        match catalog.load_image(&self.image) {
            Ok(_) => {}
            Err(ImageError::Missing { .. }) => {
                let folder = self.image.parent().unwrap_or(&self.image);
                for manifest in files::with_extension(folder, "man")? {
                    catalog.load(&manifest)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(catalog)
    }

    /// Returns the note, and true if there are no differences.
    fn compare(
        &self,
        catalog: &Catalog,
        trace: &Path,
        files: &[PathBuf],
    ) -> Result<(String, bool)> {
        let selection = Selection {
            providers: self.provider.iter().cloned().collect(),
            ..Selection::default()
        };
        let cannot_read = || format!("cannot read {}", trace.display());
        let mut file = TraceFile::open(trace).with_context(cannot_read)?;
        let ours = Ours::read(&mut file, catalog, &selection).with_context(cannot_read)?;
        let mut words = Vec::new();
        let mut agrees = true;
        for path in files {
            let mut other = Other::open(path)?;
            other.select(&selection.providers, &ours);
            let result = Comparison::new(&ours, &other, NAMED);
            agrees &= result.agrees();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            words.push(format!("{name}: {}", said(&result)));
        }
        let note = format!("Windows' decoders and etl, {TRACE}: {}", words.join("; "));
        Ok((note, agrees))
    }
}

/// Adds a note about a leg to the report, and marks its stage as failed if `failure` gives a
/// reason.
fn put(leg: &str, note: &str, failure: Option<&str>, report: &mut Report) {
    report.notes.push(format!("{leg}: {note}"));
    for row in &mut report.rows {
        let is_it = row.id.leg == leg && row.id.stage == STAGE;
        if let Some(reason) = failure.filter(|_| is_it && row.outcome == Outcome::Passed) {
            row.outcome = Outcome::Failed;
            row.reason = Some(reason.to_owned());
        }
    }
}

/// Returns a note that describes a comparison.
fn said(result: &Comparison) -> String {
    let mut counts = format!(
        "{} events, {} properties and {} fields compared",
        result.compared, result.properties, result.fields
    );
    if result.undecoded > 0 {
        let _ = write!(counts, " (the fields of {} are not given)", result.undecoded);
    }
    if result.agrees() {
        return format!("{counts}, equal");
    }
    if result.differences == 0 {
        return "no events to compare".to_owned();
    }
    let named: Vec<String> = result
        .listed
        .iter()
        .map(|one| {
            let text = |value: Option<&str>| -> String {
                let shown = value.unwrap_or("missing");
                shown.escape_debug().take(SHOWN).collect()
            };
            format!(
                "{} of {} is {}, but {} in Windows",
                one.field,
                one.event.escape_debug(),
                text(one.ours.as_deref()),
                text(one.theirs.as_deref())
            )
        })
        .collect();
    format!(
        "{counts}, {} differences: {}{}",
        result.differences,
        named.join(", "),
        if result.differences > NAMED as u64 { ", …" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use etl_fixtures::trace;
    use etw_vm::{protocol::StageId, report::Row};

    use super::*;

    fn report() -> Report {
        let row = |leg: &str| Row {
            id: StageId { leg: leg.to_owned(), stage: STAGE.to_owned() },
            outcome: Outcome::Passed,
            time: None,
            reason: None,
        };
        Report { rows: vec![row(PLAIN), row(VERIFIER)], ended_early: None, notes: Vec::new() }
    }

    #[test]
    fn a_run_without_a_trace_gets_no_note_and_one_that_cannot_be_read_fails() {
        let out = tempfile::tempdir().unwrap();
        let traces = Traces { image: out.path().join("driver.sys"), provider: None };
        let mut report = report();
        traces.examine(out.path(), &mut report);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        let folder = out.path().join(PLAIN).join(STAGE);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(TRACE), "").unwrap();
        traces.examine(out.path(), &mut report);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        // An unreadable trace fails the stage, even if it passed on Windows.
        fs::write(folder.join("tdh.jsonl"), "").unwrap();
        traces.examine(out.path(), &mut report);
        assert!(report.notes[0].contains("was not compared: cannot read"), "{:?}", report.notes);
        assert_eq!(report.rows[0].outcome, Outcome::Failed);
        let reason = report.rows[0].reason.as_deref().unwrap();
        assert!(reason.contains("could not be compared"), "{reason}");
        assert_eq!(report.rows[1].outcome, Outcome::Passed);
    }

    #[test]
    fn a_stage_fails_if_windows_decodes_differently() {
        use etl_file::{ClockType, write::Losses};

        let out = tempfile::tempdir().unwrap();
        let folder = out.path().join(PLAIN).join(STAGE);
        fs::create_dir_all(&folder).unwrap();
        let header = trace::header(ClockType::Qpc, 0x1000, 1);
        let (trace, _) = trace::file(header, 4, Losses::default());
        fs::write(folder.join(TRACE), trace).unwrap();
        fs::write(folder.join("tracerpt.xml"), "<Events/>").unwrap();
        let traces =
            Traces { image: PathBuf::new(), provider: Some(trace::MANIFEST_PROVIDER.to_string()) };
        let files = [folder.join("tracerpt.xml")];
        let (note, agrees) = traces.compare(&Catalog::new(), &folder.join(TRACE), &files).unwrap();
        assert!(!agrees, "{note}");
        assert!(note.contains("0 events, 0 properties and 0 fields compared, 2 differences: event of 2026-01-02T03:04:05.0020000Z"), "{note}");
        for (at, leg) in [PLAIN, VERIFIER].into_iter().enumerate() {
            let mut report = report();
            put(leg, &note, Some("they differ"), &mut report);
            assert_eq!(report.rows[at].outcome, Outcome::Failed);
            assert_eq!(report.rows[1 - at].outcome, Outcome::Passed);
            assert_eq!(report.notes.len(), 1);
            assert!(report.notes[0].starts_with(leg), "{:?}", report.notes);
            assert_eq!(report.exit_code(), 1);
        }
    }

    #[test]
    fn both_legs_are_examined() {
        let out = tempfile::tempdir().unwrap();
        for leg in [PLAIN, VERIFIER] {
            let folder = out.path().join(leg).join(STAGE);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(TRACE), "").unwrap();
            fs::write(folder.join("tdh.jsonl"), "").unwrap();
        }
        let traces = Traces { image: out.path().join("driver.sys"), provider: None };
        let mut report = report();
        traces.examine(out.path(), &mut report);
        assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    }
}
