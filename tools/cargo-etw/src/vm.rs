//! `cargo etw vm`: installs Windows unattended in QEMU, and runs a driver's stages there.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command as Process, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{
    ArgMatches, Args, Command, FromArgMatches as _,
    builder::{PossibleValuesParser, RangedI64ValueParser},
    value_parser,
};
use driver_build::files;
use driver_package::inf::{Inf, Section};
use etw_vm::{
    accelerator,
    answer::Windows,
    install::{self, Installation},
    kit::{self, Contents, Package, Stage},
    qemu::{self, Accelerator, Settings},
    report::Report,
    run::{self, Run},
};

use crate::{
    decoded::Traces,
    inf::source::{hardware_ids, read_source, services},
    selected_driver, tracer,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Install Windows in QEMU unattended, and run a driver's test stages there.
///
/// The first run with an installation image installs it, and keeps the disk as a base image. Each run uses an
/// overlay of that image, and copies all results of the stages to the host. The exit code is 0 if every stage
/// passed or was skipped, 1 if a stage did not pass, and 3 if the machine hung, was stopped, or ended before
/// its plan was complete.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
struct Options {
    /// The installation image: Windows 10 22H2, Windows 11 24H2, Windows Server 2022 or 2025, x64, including
    /// evaluation images.
    #[arg(long, value_name = "FILE")]
    iso: PathBuf,
    /// The version of Windows in the image [default: derived from the file name].
    #[arg(long, value_name = "NAME", value_parser = Windows::ALL.map(Windows::name))]
    windows: Option<String>,
    /// The edition's index in the image [default: 1; for consumer images 6, Pro; for servers 2, Standard with
    /// Desktop Experience].
    #[arg(long, value_name = "INDEX", value_parser = number())]
    image: Option<u32>,
    /// The image's language.
    #[arg(long, value_name = "NAME", default_value = "en-US")]
    language: String,
    /// The product key, or `none` [default: none for evaluation and volume images; for others, the setup key
    /// that Microsoft publishes for the edition, which does not activate Windows].
    #[arg(long, value_name = "KEY")]
    product_key: Option<String>,
    /// The driver's package: a folder or a .zip file with .sys, .inf, .cat and .cer [default: made as with
    /// `cargo etw package`].
    #[arg(long, value_name = "PACKAGE")]
    driver: Option<PathBuf>,
    /// The same driver, packaged by the WDK.
    #[arg(long, value_name = "FOLDER")]
    package_wdk: Option<PathBuf>,
    /// The same driver with a version 2 catalog, a folder or a .zip file: the install stage tries both.
    #[arg(long, value_name = "PACKAGE")]
    package_catalog_2: Option<PathBuf>,
    /// The package of a driver that probes Windows.
    #[arg(long, value_name = "PACKAGE")]
    probe: Option<PathBuf>,
    /// A program that uses the driver's device, with the commands `install INF`, `uninstall INF`, `status` and
    /// `scenarios`; docs/vm-guide.md lists everything that the stages call [default: scripts install the
    /// package, the driver's device is restarted so that it writes events, and the stages `scenarios` and
    /// `probe` are skipped].
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,
    /// cargo-etw.exe, built for Windows, which the stages use to trace and decode events without a client, or
    /// `none` [default: built from the source of this program, unless a client is named].
    #[arg(long, value_name = "FILE")]
    tracer: Option<PathBuf>,
    /// The recipes of a guide, as data [default: from the driver's declaration or image].
    #[arg(long, value_name = "FILE")]
    recipes: Option<PathBuf>,
    /// A folder with other scripts for the stages, such as install.ps1 for the install stage.
    #[arg(long, value_name = "FOLDER")]
    stages: Option<PathBuf>,
    /// Fail only if the machine, the installation, the trace or the removal fails; the other stages report what
    /// differs, for `cargo xtask answers` and for people.
    #[arg(long)]
    evidence: bool,
    /// Run only this stage, with `install` before it if it needs the driver; can be repeated.
    #[arg(long, value_name = "STAGE", value_parser = PossibleValuesParser::new(kit::stage_names()))]
    only: Vec<String>,
    /// Run only the stages without Driver Verifier, or only those with it [default: both].
    #[arg(long, value_parser = [kit::PLAIN, kit::VERIFIER])]
    leg: Option<String>,
    /// The folder for the results; the results of a previous run are replaced.
    #[arg(long, value_name = "FOLDER", default_value = "vm-results")]
    out: PathBuf,
    /// Keep the disks of the run.
    #[arg(long)]
    keep: bool,
    /// Show the virtual machine for manual work, without running stages.
    #[arg(long)]
    connect: bool,
    /// Create the base image, without running stages.
    #[arg(long, conflicts_with = "connect")]
    install_only: bool,
    /// The time limit for the installation and for the run [default: from the plan].
    #[arg(long, value_name = "MINUTES", value_parser = number())]
    timeout: Option<u32>,
    /// The time without a message after which the machine counts as hung [default: 360 in a run; six times as
    /// long without virtualization].
    #[arg(long, value_name = "SECONDS", value_parser = number())]
    silence: Option<u32>,
    /// QEMU's program.
    #[arg(long, value_name = "PROGRAM", default_value = "qemu-system-x86_64")]
    qemu: PathBuf,
    /// An additional QEMU argument; can be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    qemu_arg: Vec<OsString>,
    /// The accelerator; auto selects the first that runs a guest on this machine. Can be repeated: if no
    /// installation starts with one, the next is used.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = ["auto", "kvm-hyperv", "kvm", "tcg"])]
    accelerator: Vec<String>,
    /// The machine's firmware.
    #[arg(long, value_name = "NAME", default_value = "uefi", value_parser = ["uefi", "bios"])]
    firmware: String,
    /// The number of processors.
    #[arg(long, value_name = "N", default_value = "2", value_parser = number())]
    processors: u32,
    /// The memory; with 8192 or more, Windows may turn memory integrity on.
    #[arg(long, value_name = "MIB", default_value = "4096", value_parser = number())]
    memory: u32,
    /// The size of the system disk, which grows as needed.
    #[arg(long, value_name = "GIB", default_value = "64", value_parser = number())]
    disk: u32,
    /// The size of the results disk, which grows as needed.
    #[arg(long, value_name = "MIB", default_value = "8192", value_parser = number())]
    results: u32,
    /// The folder of base images [default: wdk-etw/vm in the user's cache folder].
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
}

/// Returns a parser for numbers that are not 0.
fn number() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..)
}

/// Returns the command line.
pub fn command() -> Command {
    selected_driver::arguments(Options::augment_args(Command::new("vm")))
}

/// Prints a progress line.
fn tell(line: &str) {
    eprintln!("{line}");
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let mut options = Options::from_arg_matches(matches)?;
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let plan = kit::plan(&options.only, options.leg.as_deref())?;
    let program = qemu::find(&options.qemu)?;
    let contents = if options.install_only {
        None
    } else {
        Some(contents(&mut options, matches, &plan, temporary.path())?)
    };
    if let Some(contents) = contents.as_ref().filter(|_| !options.connect) {
        // A stage without a script is reported before the installation, which takes an hour.
        contents.files(&plan, 1)?;
    }
    let (accelerator, alternatives) = accelerators(&options.accelerator, &program)?;
    tell(&format!("Using {} ({})", program.display(), accelerator.name()));
    let mut settings = Settings {
        program,
        accelerator,
        processors: options.processors,
        memory: options.memory,
        extra: options.qemu_arg,
    };
    let total = options.timeout.map(|count| Duration::from_secs(u64::from(count) * 60));
    let silence = options.silence.map(|count| Duration::from_secs(count.into()));
    let answer = install::answer(
        &options.iso,
        options.windows.as_deref().and_then(Windows::named),
        options.image,
        &options.language,
        options.firmware == "uefi",
        options.product_key.as_deref(),
    )?;
    let installation = Installation {
        iso: options.iso,
        answer,
        images: options.images.map_or_else(images, Ok)?,
        disk: u64::from(options.disk) * GIB,
        settings: settings.clone(),
        alternatives: alternatives.clone(),
        silence,
        total,
    };
    let base = installation.base(&tell)?;
    if let Some(installed) = base.accelerator.filter(|one| alternatives.contains(one)) {
        // The installation already tried the earlier accelerators, and none could start a guest.
        tell(&format!("Using {}, like the installation", installed.name()));
        settings.accelerator = installed;
    }
    tell(&format!("Base image: {} ({})", base.image.display(), base.system));
    if options.connect {
        run::connect(&base, &settings, contents.as_ref(), options.keep, &tell)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(contents) = contents else {
        return Ok(ExitCode::SUCCESS);
    };
    let decoded = Traces::from_contents(&contents);
    let run = Run {
        settings,
        plan,
        contents,
        out: options.out.clone(),
        results: u64::from(options.results) * MIB,
        keep: options.keep,
        silence,
        total,
    };
    let examine = |out: &Path, report: &mut Report| decoded.examine(out, report);
    let report = run.run(&base, &examine, &tell)?;
    print!("{}", report.table());
    println!("results: {}", options.out.display());
    Ok(ExitCode::from(report.exit_code()))
}

/// Returns the accelerator to use, and the alternatives to try if it cannot start a guest.
fn accelerators(names: &[String], program: &Path) -> Result<(Accelerator, Vec<Accelerator>)> {
    if names.iter().any(|name| name == "auto") {
        let found = accelerator::find(program)?;
        let after = Accelerator::ALL.into_iter().skip_while(|one| *one != found);
        return Ok((found, after.skip(1).collect()));
    }
    let mut chosen = Vec::new();
    for name in names {
        let one = Accelerator::ALL.into_iter().find(|one| one.name() == *name);
        chosen.push(one.with_context(|| format!("unknown accelerator {name}"))?);
    }
    Ok((chosen.remove(0), chosen))
}

/// Returns the folder for base images in the user's cache.
fn images() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    let cache = cache.context(
        "cannot find the user's cache folder: neither XDG_CACHE_HOME nor HOME is set; choose a \
         folder with `--images`",
    )?;
    Ok(cache.join("wdk-etw/vm"))
}

/// The stages that trace the driver.
const TRACING: [&str; 4] = ["recipes", "boot", "booted", "decode"];

/// Returns the program that traces without a client: from the command line or, if a planned stage
/// needs it, this program built for Windows. If the build fails, the stages run without it.
fn tracer(options: &Options, plan: &[Stage]) -> Result<Option<PathBuf>> {
    if let Some(named) = &options.tracer {
        return Ok((named.as_os_str() != "none").then(|| named.clone()));
    }
    let traces = |stage: &Stage| TRACING.contains(&stage.id.stage.as_str());
    if options.client.is_some() || !plan.iter().any(traces) {
        return Ok(None);
    }
    let folder = options.images.clone().map_or_else(images, Ok)?;
    tell("Building cargo-etw for Windows, which traces the driver there");
    match tracer::build(&folder) {
        Ok(program) => Ok(Some(program)),
        Err(error) => {
            tell(&format!(
                "note: cargo-etw cannot be built for Windows, so no stage decodes events with TDH; \
                 `--tracer` names a built one: {error:#}"
            ));
            Ok(None)
        }
    }
}

/// Returns the recipes: from the command line, or generated for the driver. If no provider is
/// declared or described, the stages that run recipes are skipped.
fn recipes(
    options: &Options,
    matches: &ArgMatches,
    driver: &Package,
    temporary: &Path,
) -> Result<Option<PathBuf>> {
    if options.recipes.is_some() {
        return Ok(options.recipes.clone());
    }
    let data = temporary.join("recipes.json");
    let mut command = this_program("recipes", matches)?;
    command.arg("--data").arg(&data);
    // The instructions and the profile belong to the author; the package already contains the
    // profile.
    command.arg("--text").arg(temporary.join("tracing.md"));
    let profile = Path::new(&driver.sys).with_extension("wprp");
    command.arg("--profile").arg(temporary.join(profile));
    if options.driver.is_some() {
        command.arg("--image").arg(driver.folder.join(&driver.sys));
    }
    let output = command.output().context("cannot run `cargo etw recipes`")?;
    if output.status.success() {
        return Ok(Some(data));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    tell(&format!("note: no recipes are run: {}", said.trim()));
    Ok(None)
}

/// Returns a command of this program for the driver that this command line selects.
fn this_program(name: &str, matches: &ArgMatches) -> Result<Process> {
    let program = env::current_exe().context("cannot find this program's path")?;
    let mut command = Process::new(program);
    command.args(["etw", name]);
    for option in ["package", "manifest-path"] {
        // All values, both strings and paths, come from this command line.
        if let Some(values) = matches.get_raw(option) {
            command.arg(format!("--{option}")).args(values);
        }
    }
    Ok(command)
}

/// Returns the kit's contents.
fn contents(
    options: &mut Options,
    matches: &ArgMatches,
    plan: &[Stage],
    temporary: &Path,
) -> Result<Contents> {
    let archive = match &options.driver {
        Some(path) => path.clone(),
        None => packaged(matches, temporary)?,
    };
    let driver = package(&archive, &temporary.join("package"))?;
    let unpacked = |path: &Option<PathBuf>, name: &str| {
        path.as_ref().map(|path| package(path, &temporary.join(name))).transpose()
    };
    Ok(Contents {
        provider: provider(&driver.folder)?,
        package_catalog_2: unpacked(&options.package_catalog_2, "package-catalog-2")?
            .map(|package| package.folder),
        probe: unpacked(&options.probe, "probe")?,
        tracer: tracer(options, plan)?,
        recipes: recipes(options, matches, &driver, temporary)?,
        package_wdk: options.package_wdk.take(),
        client: options.client.take(),
        stages: options.stages.take(),
        evidence: options.evidence,
        driver,
    })
}

/// Builds the current driver's package.
fn packaged(matches: &ArgMatches, temporary: &Path) -> Result<PathBuf> {
    let archive = temporary.join("package.zip");
    let mut command = this_program("package", matches)?;
    command.arg("--out").arg(&archive);
    let status = command.status().context("cannot run `cargo etw package`")?;
    ensure!(status.success(), "cannot build the driver's package; pass one with `--driver`");
    Ok(archive)
}

/// Reads a package: a folder, or an archive, which is unpacked to a folder.
fn package(path: &Path, unpacked: &Path) -> Result<Package> {
    let folder = if path.is_dir() { path.to_owned() } else { unpack(path, unpacked)? };
    let inf = only(&folder, "inf")?;
    let parsed = Inf::read_source(&read_source(&inf)?)
        .with_context(|| format!("cannot read {}", inf.display()))?;
    let sys = only(&folder, "sys")?;
    let service = services(&parsed).into_iter().next();
    let hardware_id = hardware_ids(&parsed).into_iter().next();
    let is_default = |section: &Section| {
        let name = section.name.split('.').next();
        name.is_some_and(|name| name.eq_ignore_ascii_case("DefaultInstall"))
    };
    ensure!(
        hardware_id.is_some() || parsed.sections().iter().any(is_default),
        "{} lists no hardware ID; the file of a driver without a device, a primitive driver, has a section \
         [DefaultInstall.NTamd64]",
        inf.display()
    );
    let certificates = files::with_extension(&folder, "cer")?;
    Ok(Package {
        name: name(&sys.with_extension("")),
        service: service
            .with_context(|| format!("{} adds no service (AddService)", inf.display()))?,
        // A primitive driver has no device.
        hardware_id: hardware_id.unwrap_or_default(),
        inf: name(&inf),
        sys: name(&sys),
        certificate: certificates.first().map(|path| name(path)),
        folder,
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the only file in a package with this extension.
fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let mut found = files::with_extension(folder, extension)?;
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => {
            bail!("{} is not a driver package: it has no .{extension} file", folder.display())
        }
        (Some(_), more) => bail!(
            "{} has {} .{extension} files; a driver package has one",
            folder.display(),
            more + 1
        ),
    }
}

/// Unpacks an archive, and returns the folder that contains its INF file.
fn unpack(path: &Path, to: &Path) -> Result<PathBuf> {
    let fail = || format!("cannot unpack {}", path.display());
    let file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut archive = zip::ZipArchive::new(file).with_context(fail)?;
    archive.extract(to).with_context(fail)?;
    let mut folders = vec![to.to_owned()];
    while let Some(folder) = folders.pop() {
        if !files::with_extension(&folder, "inf")?.is_empty() {
            return Ok(folder);
        }
        let entries = fs::read_dir(&folder).with_context(fail)?;
        folders.extend(
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()),
        );
    }
    bail!("{} is not a driver package: it has no .inf file", path.display())
}

/// Returns the name and GUID of the provider in the package's manifest.
fn provider(folder: &Path) -> Result<Option<(String, String)>> {
    let manifests = files::with_extension(folder, "man")?;
    let Some(path) = manifests.first() else {
        return Ok(None);
    };
    let bytes = files::read(path)?;
    let text = etw_manifest::text(&bytes)
        .with_context(|| format!("cannot read {} as text", path.display()))?;
    let read = etw_manifest::read_lenient(&text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let first = read.manifest.providers.first();
    Ok(first.map(|provider| (provider.name.clone(), provider.guid.to_string())))
}
