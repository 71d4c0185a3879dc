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
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
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
    options::{flag, optional, path, required, several, text},
    selected_driver, tracer,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Returns an argument for a number.
fn number(name: &'static str, unit: &'static str, help: &'static str) -> Arg {
    text(name, unit, help).value_parser(value_parser!(u32).range(1..))
}

/// Returns the command line.
pub fn command() -> Command {
    let command = Command::new("vm")
        .about("Install Windows in QEMU unattended, and run a driver's test stages there")
        .long_about(
            "Install Windows in QEMU unattended, and run a driver's test stages there.\n\n\
             The first run with an installation image installs it, and keeps the disk as a base \
             image. Each run uses an overlay of that image, and copies all results of the stages \
             to the host. The exit code is 0 if every stage passed or was skipped, 1 if a stage \
             did not pass, and 3 if the machine hung, was stopped, or ended before its plan was \
             complete.",
        )
        .arg(
            path(
                "iso",
                "FILE",
                "The installation image: Windows 10 22H2, Windows 11 24H2, Windows Server 2022 or \
                 2025, x64, including evaluation images",
            )
            .required(true),
        )
        .arg(
            text(
                "windows",
                "NAME",
                "The version of Windows in the image [default: derived from the file name]",
            )
            .value_parser(Windows::ALL.map(Windows::name)),
        )
        .arg(number(
            "image",
            "INDEX",
            "The edition's index in the image [default: 1; for consumer images 6, Pro; for \
             servers 2, Standard with Desktop Experience]",
        ))
        .arg(text("language", "NAME", "The image's language").default_value("en-US"))
        .arg(text(
            "product-key",
            "KEY",
            "The product key, or `none` [default: none for evaluation and volume images; for \
             others, the setup key that Microsoft publishes for the edition, which does not \
             activate Windows]",
        ));
    selected_driver::arguments(machine(limits(stages(command))))
}

/// Adds the arguments for the driver and its stages.
fn stages(command: Command) -> Command {
    command
        .arg(path(
            "driver",
            "PACKAGE",
            "The driver's package: a folder or a .zip file with .sys, .inf, .cat and .cer [default: \
             made as with `cargo etw package`]",
        ))
        .arg(path(
            "package-wdk",
            "FOLDER",
            "The same driver, packaged by the WDK",
        ))
        .arg(path(
            "package-catalog-2",
            "PACKAGE",
            "The same driver with a version 2 catalog, a folder or a .zip file: the install stage \
             tries both",
        ))
        .arg(path(
            "probe",
            "PACKAGE",
            "The package of a driver that probes Windows",
        ))
        .arg(path(
            "client",
            "FILE",
            "A program that uses the driver's device, with the commands `install INF`, `uninstall INF`, \
             `status` and `scenarios`; docs/vm-guide.md lists everything that the stages call [default: scripts \
             install the package, the driver's device is restarted so that it writes events, and the stages \
             `scenarios` and `probe` are skipped]",
        ))
        .arg(path(
            "tracer",
            "FILE",
            "cargo-etw.exe, built for Windows, which the stages use to trace and decode events \
             without a client, or `none` [default: built from the source of this program, unless \
             a client is named]",
        ))
        .arg(path(
            "recipes",
            "FILE",
            "The recipes of a guide, as data [default: from the driver's declaration or image]",
        ))
        .arg(path(
            "stages",
            "FOLDER",
            "A folder with other scripts for the stages, such as install.ps1 for the install stage",
        ))
        .arg(
            text(
                "only",
                "STAGE",
                "Run only this stage, with `install` before it if it needs the driver; can be \
                 repeated",
            )
            .action(ArgAction::Append)
            .value_parser(kit::stage_names()),
        )
        .arg(
            text(
                "leg",
                "LEG",
                "Run only the stages without Driver Verifier, or only those with it [default: both]",
            )
            .value_parser([kit::PLAIN, kit::VERIFIER]),
        )
}

/// Adds the arguments for the results and the time limits.
fn limits(command: Command) -> Command {
    command
        .arg(
            path(
                "out",
                "FOLDER",
                "The folder for the results; the results of a previous run are replaced",
            )
            .default_value("vm-results"),
        )
        .arg(flag(
            "keep",
            "Keep the disks of the run",
        ))
        .arg(flag(
            "connect",
            "Show the virtual machine for manual work, without running stages",
        ))
        .arg(flag("install-only", "Create the base image, without running stages").conflicts_with("connect"))
        .arg(number(
            "timeout",
            "MINUTES",
            "The time limit for the installation and for the run [default: from the plan]",
        ))
        .arg(number(
            "silence",
            "SECONDS",
            "The time without a message after which the machine counts as hung [default: 360 in a run; six \
             times as long without virtualization]",
        ))
}

/// Adds the arguments for QEMU and the virtual machine.
fn machine(command: Command) -> Command {
    command
        .arg(path("qemu", "PROGRAM", "QEMU's program").default_value("qemu-system-x86_64"))
        .arg(
            text("qemu-arg", "ARGUMENT", "An additional QEMU argument; can be repeated")
                .action(ArgAction::Append)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString)),
        )
        .arg(
            text(
                "accelerator",
                "NAME",
                "The accelerator; auto selects the first that runs a guest on this machine. Can \
                 be repeated: if no installation starts with one, the next is used",
            )
            .action(ArgAction::Append)
            .default_value("auto")
            .value_parser(["auto", "kvm-hyperv", "kvm", "tcg"]),
        )
        .arg(
            text("firmware", "NAME", "The machine's firmware")
                .default_value("uefi")
                .value_parser(["uefi", "bios"]),
        )
        .arg(number("processors", "N", "The number of processors").default_value("2"))
        .arg(
            number(
                "memory",
                "MIB",
                "The memory; with 8192 or more, Windows may turn memory integrity on",
            )
            .default_value("4096"),
        )
        .arg(
            number("disk", "GIB", "The size of the system disk, which grows as needed")
                .default_value("64"),
        )
        .arg(
            number("results", "MIB", "The size of the results disk, which grows as needed")
                .default_value("8192"),
        )
        .arg(path(
            "images",
            "FOLDER",
            "The folder of base images [default: wdk-etw/vm in the user's cache folder]",
        ))
}

/// Prints a progress line.
fn tell(line: &str) {
    eprintln!("{line}");
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let is_connect = matches.get_flag("connect");
    let is_install = matches.get_flag("install-only");
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let only: Vec<String> = several(matches, "only");
    let leg: Option<String> = optional(matches, "leg")?;
    let plan = kit::plan(&only, leg.as_deref())?;
    let program = qemu::find(&required::<PathBuf>(matches, "qemu")?)?;
    let contents =
        if is_install { None } else { Some(contents(matches, &plan, temporary.path())?) };
    if let Some(contents) = contents.as_ref().filter(|_| !is_connect) {
        // A stage without a script is reported before the installation, which takes an hour.
        contents.files(&plan, 1)?;
    }
    let (accelerator, alternatives) = accelerators(matches, &program)?;
    tell(&format!("Using {} ({})", program.display(), accelerator.name()));
    let mut settings = Settings {
        program,
        accelerator,
        processors: required(matches, "processors")?,
        memory: required(matches, "memory")?,
        extra: several(matches, "qemu-arg"),
    };
    let minutes: Option<u32> = optional(matches, "timeout")?;
    let total = minutes.map(|count| Duration::from_secs(u64::from(count) * 60));
    let seconds: Option<u32> = optional(matches, "silence")?;
    let silence = seconds.map(|count| Duration::from_secs(count.into()));
    let iso: PathBuf = required(matches, "iso")?;
    let windows: Option<String> = optional(matches, "windows")?;
    let answer = install::answer(
        &iso,
        windows.as_deref().and_then(Windows::named),
        optional(matches, "image")?,
        &required::<String>(matches, "language")?,
        required::<String>(matches, "firmware")? == "uefi",
        optional::<String>(matches, "product-key")?.as_deref(),
    )?;
    let installation = Installation {
        iso,
        answer,
        images: match optional(matches, "images")? {
            Some(images) => images,
            None => images()?,
        },
        disk: u64::from(required::<u32>(matches, "disk")?) * GIB,
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
    let keep = matches.get_flag("keep");
    if is_connect {
        run::connect(&base, &settings, contents.as_ref(), keep, &tell)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(contents) = contents else {
        return Ok(ExitCode::SUCCESS);
    };
    let out: PathBuf = required(matches, "out")?;
    let decoded = Traces::from_contents(&contents);
    let run = Run {
        settings,
        plan,
        contents,
        out: out.clone(),
        results: u64::from(required::<u32>(matches, "results")?) * MIB,
        keep,
        silence,
        total,
    };
    let examine = |out: &Path, report: &mut Report| decoded.examine(out, report);
    let report = run.run(&base, &examine, &tell)?;
    print!("{}", report.table());
    println!("results: {}", out.display());
    Ok(ExitCode::from(report.exit_code()))
}

/// Returns the accelerator to use, and the alternatives to try if it cannot start a guest.
fn accelerators(matches: &ArgMatches, program: &Path) -> Result<(Accelerator, Vec<Accelerator>)> {
    let names: Vec<String> = several(matches, "accelerator");
    if names.is_empty() || names.iter().any(|name| name == "auto") {
        let found = accelerator::find(program)?;
        let after = Accelerator::ALL.into_iter().skip_while(|one| *one != found);
        return Ok((found, after.skip(1).collect()));
    }
    let mut chosen = Vec::new();
    for name in names {
        let one = Accelerator::ALL.into_iter().find(|one| one.name() == name);
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
fn tracer(matches: &ArgMatches, plan: &[Stage]) -> Result<Option<PathBuf>> {
    if let Some(named) = optional::<PathBuf>(matches, "tracer")? {
        return Ok((named.as_os_str() != "none").then_some(named));
    }
    let traces = |stage: &Stage| TRACING.contains(&stage.id.stage.as_str());
    if matches.contains_id("client") || !plan.iter().any(traces) {
        return Ok(None);
    }
    let folder = match optional(matches, "images")? {
        Some(folder) => folder,
        None => images()?,
    };
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
fn recipes(matches: &ArgMatches, driver: &Package, temporary: &Path) -> Result<Option<PathBuf>> {
    if let Some(named) = optional(matches, "recipes")? {
        return Ok(Some(named));
    }
    let data = temporary.join("recipes.json");
    let mut command = this_program("recipes", matches)?;
    command.arg("--data").arg(&data);
    // The instructions and the profile belong to the author; the package already contains the
    // profile.
    command.arg("--text").arg(temporary.join("tracing.md"));
    let profile = Path::new(&driver.sys).with_extension("wprp");
    command.arg("--profile").arg(temporary.join(profile));
    if matches.contains_id("driver") {
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
fn contents(matches: &ArgMatches, plan: &[Stage], temporary: &Path) -> Result<Contents> {
    let given: Option<PathBuf> = optional(matches, "driver")?;
    let archive = match given {
        Some(path) => path,
        None => packaged(matches, temporary)?,
    };
    let driver = package(&archive, &temporary.join("package"))?;
    let provider = provider(&driver.folder)?;
    let probe: Option<PathBuf> = optional(matches, "probe")?;
    let probe = probe.map(|path| package(&path, &temporary.join("probe")));
    let catalog_2: Option<PathBuf> = optional(matches, "package-catalog-2")?;
    let catalog_2 = catalog_2.map(|path| package(&path, &temporary.join("package-catalog-2")));
    Ok(Contents {
        provider,
        package_catalog_2: catalog_2.transpose()?.map(|package| package.folder),
        package_wdk: optional(matches, "package-wdk")?,
        probe: probe.transpose()?,
        client: optional(matches, "client")?,
        tracer: tracer(matches, plan)?,
        recipes: recipes(matches, &driver, temporary)?,
        stages: optional(matches, "stages")?,
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
