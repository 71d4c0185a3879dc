//! Exercises every path of the sample driver in the stand-in kernel while two sessions trace it, lets
//! `etl` print the recorded events, and checks them. `cargo xtask demo` runs this program.

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod tour {
    use std::{
        env,
        error::Error,
        fs,
        path::{Path, PathBuf},
        process::{Command, ExitCode},
        time::Instant,
    };

    use etl_file::{Catalog, Decoded, Trace, decode};
    use etw_scenarios::{Tour, check, drive, expected_everything, expected_requests};
    use standin_kernel::SessionReport;

    type Result<T> = std::result::Result<T, Box<dyn Error>>;

    pub fn main() -> ExitCode {
        let mut arguments = env::args_os().skip(1).map(PathBuf::from);
        let mut next = || arguments.next();
        let (Some(sys), Some(out), Some(etl), None) = (next(), next(), next(), next()) else {
            eprintln!("usage: tour <etw_sample_driver.sys> <folder for the traces> <etl>");
            return ExitCode::FAILURE;
        };
        match run(&sys, &out, &etl) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// Runs the tour. The sessions' files are written to the folder `out`, and the program `etl` prints
    /// them.
    fn run(sys: &PathBuf, out: &Path, etl: &Path) -> Result<()> {
        fs::create_dir_all(out)
            .map_err(|error| format!("cannot create {}: {error}", out.display()))?;
        let start = Instant::now();
        let tour = drive(sys, out, &mut |what| eprintln!("       {what}"));
        let mark = if tour.is_ok() { "done  " } else { "FAILED" };
        eprintln!(
            "{mark} Loading that file in the stand-in kernel and tracing it ({:.1} s)",
            start.elapsed().as_secs_f32()
        );
        let tour = tour?;
        // The driver's own resources contain the names and messages of its events.
        let mut catalog = Catalog::new();
        let skipped = catalog
            .load_image(sys)
            .map_err(|error| format!("cannot decode the driver's events: {error}"))?;
        if let Some(error) = skipped.first() {
            return Err(format!("the resources of {} are damaged: {error}", sys.display()).into());
        }
        show(&tour.everything, sys, etl)?;
        show(&tour.requests, sys, etl)?;
        verify(&tour, &catalog)?;
        let file = tour.everything.file.display();
        println!("The driver:     {}", sys.display());
        println!("The traces:     {file}");
        println!("                {}", tour.requests.file.display());
        let dump = format!("cargo run -q -p etl -- dump {file} --image {}", sys.display());
        println!("To print again: {dump}");
        println!(
            "A timeline:     {dump} --format perfetto --out {}",
            tour.everything.file.with_extension("pftrace").display()
        );
        println!("                opens at https://ui.perfetto.dev");
        Ok(())
    }

    /// Returns a trace's decoded events, ordered by time.
    fn events(report: &SessionReport, catalog: &Catalog) -> Result<Vec<Decoded>> {
        let trace = Trace::open(&report.file)?;
        Ok(trace.events_by_time().into_iter().map(|event| decode(event, catalog)).collect())
    }

    /// Prints a session's events as a table.
    fn show(report: &SessionReport, sys: &Path, etl: &Path) -> Result<()> {
        println!(
            "\nSession \"{}\": {} events, {} lost, {} buffers\n",
            report.name, report.events, report.events_lost, report.buffers_written
        );
        let mut dump = Command::new(etl);
        dump.arg("dump").arg(&report.file).arg("--image").arg(sys);
        let status =
            dump.status().map_err(|error| format!("cannot run {}: {error}", etl.display()))?;
        if !status.success() {
            return Err(format!("{} cannot print the events: {status}", etl.display()).into());
        }
        Ok(())
    }

    /// Compares the recorded events with the expected events, and prints the result.
    fn verify(tour: &Tour, catalog: &Catalog) -> Result<()> {
        for (report, expected) in
            [(&tour.everything, expected_everything()), (&tour.requests, expected_requests())]
        {
            check(&events(report, catalog)?, &expected)
                .map_err(|error| format!("session \"{}\": {error}", report.name))?;
        }
        println!("\nVerified:");
        for sentence in &tour.verified {
            println!("  - {sentence}");
        }
        println!(
            "  - each session recorded the events that it enabled, in order, with the right fields, and no others\n"
        );
        Ok(())
    }
}

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
fn main() -> std::process::ExitCode {
    tour::main()
}

#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "error: cannot run the tour on this system: the stand-in kernel requires x86-64 Linux or Windows"
    );
    std::process::ExitCode::FAILURE
}
