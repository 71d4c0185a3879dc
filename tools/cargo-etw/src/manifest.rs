//! `cargo etw manifest`: writes, checks, compiles and imports manifests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command as Process,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use driver_build::files;
use etw_manifest::{
    self as manifest, Manifest,
    compare::{self, Break},
    res,
    resources::{self, Version},
};
use serde_json::json;
use wdk_etw_build::{
    BuildError,
    declaration::{self, Files},
    import, manifest_in, manifest_of_all, package_folder,
};

use crate::{
    configuration,
    options::{
        file, flag, is_json, message_format, optional, optional_file, path, required, text,
        written_by,
    },
    selected_driver::{self, Declaration, SelectedDriver},
};

/// The image name for manifests in which it is irrelevant.
const ANY_IMAGE: &str = r"%SystemRoot%\System32\drivers\driver.sys";

/// Returns the command line.
pub fn command() -> Command {
    let write = Command::new("write")
        .about("Write the manifest of the driver's declaration")
        .arg(optional_file(
            "declaration",
            "The source file with the declaration [default: the driver's, found in its source]",
        ))
        .arg(path("out", "FILE", "The manifest to write [default: NAME.man beside the INF file]"))
        .arg(text(
            "image",
            "PATH",
            "The path of the driver's image on the machine that it is installed on [default: in \
             %SystemRoot%\\System32\\drivers]",
        ))
        .arg(written_by("cargo etw manifest write"))
        .arg(flag("check", "Report whether the file is up to date, without writing it"));
    let check = Command::new("check")
        .about("Check that the driver's declaration still decodes the events of an older one")
        .arg(text(
            "base",
            "BASE",
            "The older manifest (.man) or declaration (.rs), or a git commit that contains the \
             driver's [default: HEAD]",
        ))
        .arg(optional_file(
            "now",
            "The newer manifest (.man) or declaration (.rs) [default: the driver's declaration]",
        ))
        .arg(message_format());
    let compile = Command::new("compile")
        .about("Compile a manifest (.man) or a declaration (.rs) to resources")
        .arg(optional_file(
            "file",
            "The manifest, or the source file with the declaration [default: the driver's \
             declaration]",
        ))
        .arg(path(
            "out",
            "FOLDER",
            "The folder to write the resources to [default: target/manifest]",
        ))
        .arg(
            text(
                "format",
                "N",
                "The version of the WEVT_TEMPLATE format; mc.exe of old SDKs writes version 3",
            )
            .default_value("5")
            .value_parser(["3", "5"]),
        );
    let import = Command::new("import")
        .about("Write a Rust declaration of a manifest's providers")
        .arg(file("file", "The manifest"))
        .arg(path("out", "FILE", "The source file to write [default: standard output]"));
    Command::new("manifest")
        .about("Write, check, compile and import instrumentation manifests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(selected_driver::arguments(write))
        .subcommand(selected_driver::arguments(check))
        .subcommand(selected_driver::arguments(compile))
        .subcommand(import)
}

/// Runs the command.
pub fn run(name: &str, matches: &ArgMatches) -> Result<()> {
    match name {
        "write" => write(matches),
        "check" => check(matches),
        "compile" => compile(matches),
        "import" => import(
            &required::<PathBuf>(matches, "file")?,
            optional::<PathBuf>(matches, "out")?.as_deref(),
        ),
        other => bail!("`cargo etw manifest` has no command {other}"),
    }
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = files::read(path)?;
    text_of(&bytes, &path.display().to_string())
}

/// Returns the text of a file. Manifests from Windows are often in UTF-16.
fn text_of(bytes: &[u8], name: &str) -> Result<String> {
    let text = manifest::text(bytes);
    text.with_context(|| format!("{name} is neither UTF-8 nor UTF-16 text"))
}

/// Parses the text of a manifest file, and reports ignored elements.
fn parsed(text: &str, name: &str) -> Result<Manifest> {
    let read = manifest::read(text).map_err(|failures| {
        let lines: Vec<String> =
            failures.0.iter().map(|error| format!("cannot read {name}: {error}")).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })?;
    note_left_out(&read, name);
    Ok(read)
}

/// Prints a note about each omitted part of a manifest.
fn note_left_out(read: &Manifest, name: &str) {
    for note in &read.left_out {
        eprintln!("note: {name}: {note}");
    }
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Reads a manifest, or generates it from a declaration.
fn read(path: &Path, image: &str) -> Result<Manifest> {
    if is_source(path) {
        let files = Files { resources: image, messages: image };
        return match manifest_in(path, &files, &configuration::read(path)?) {
            Ok((manifest, read)) => {
                // The manifest that the declaration names is the last file.
                let file = read.last().map_or(path, PathBuf::as_path);
                note_left_out(&manifest, &file.display().to_string());
                Ok(manifest)
            }
            // A source file without providers yields empty resources.
            Err(BuildError::NoProvider(_)) => Ok(Manifest::default()),
            Err(error) => Err(error.into()),
        };
    }
    parsed(&read_text(path)?, &path.display().to_string())
}

/// Returns the manifest of a driver's declarations.
pub fn of_declarations(declarations: &[Declaration], image: &str) -> Result<Manifest> {
    if let [only] = declarations {
        return read(&only.path, image);
    }
    let sources: Vec<_> = declarations
        .iter()
        .map(|one| Ok((one.path.clone(), configuration::read(&one.path)?)))
        .collect::<Result<_>>()?;
    let files = Files { resources: image, messages: image };
    let (manifest, _) = manifest_of_all(&sources, &files)?;
    Ok(manifest)
}

/// `manifest write`: writes a driver's manifest from its declaration.
fn write(matches: &ArgMatches) -> Result<()> {
    let command: String = required(matches, "command")?;
    let declaration: Option<PathBuf> = optional(matches, "declaration")?;
    let out: Option<PathBuf> = optional(matches, "out")?;
    let image: Option<String> = optional(matches, "image")?;
    let (written, source, out) = match (declaration, out, image) {
        (Some(declaration), Some(out), Some(image)) => {
            let source = declaration.display().to_string();
            (read(&declaration, &image)?, source, out)
        }
        (declaration, out, image) => {
            let driver = SelectedDriver::select(matches)?;
            let image = image.unwrap_or_else(|| driver.installed());
            let out = match out {
                Some(out) => out,
                None => driver.manifest()?,
            };
            if let Some(path) = declaration {
                let source = path.display().to_string();
                (read(&path, &image)?, source, out)
            } else {
                let declarations = driver.some_declarations()?;
                if let Some(own) = own_manifest(&declarations, &out) {
                    println!("{}", own.display());
                    eprintln!(
                        "note: this manifest is not changed, because the declaration is made from it"
                    );
                    return Ok(());
                }
                let names: Vec<String> =
                    declarations.iter().map(|one| driver.named(&one.path)).collect();
                let made = of_declarations(&declarations, &image)?;
                (made, names.join(", "), out)
            }
        }
    };
    let comment = format!(
        "Written by `{command}` from {source}. The provider's other events are self-describing \
         TraceLogging events."
    );
    let wanted = manifest::write(&written, &comment);
    if written.providers.iter().all(|provider| provider.events.is_empty()) {
        eprintln!(
            "note: every event is self-describing, so no tool needs the manifest to decode them"
        );
    }
    if !matches.get_flag("check") {
        files::write(&out, wanted)?;
        println!("{}", out.display());
        if let Some(provider) = written.providers.first() {
            let name = out.file_name().unwrap_or_default().display().to_string();
            eprintln!(
                "note: the INF file registers the provider; to register the manifest without it, run \
                 `{}`",
                install_command(&name, &provider.resource_file)
            );
        }
        return Ok(());
    }
    let found = if out.exists() { read_text(&out)? } else { String::new() };
    ensure!(
        found == wanted,
        "{} is {}: run `{command}` and commit the file",
        out.display(),
        if found.is_empty() { "missing" } else { "stale" }
    );
    Ok(())
}

/// Returns the command that registers a manifest with the image in the current folder. The
/// manifest's path, `image`, does not exist, because an INF file installs the image in the driver
/// store.
pub fn install_command(manifest: &str, image: &str) -> String {
    let name = image.rsplit(['\\', '/']).next().unwrap_or(image);
    format!("wevtutil im {manifest} /rf:\"%CD%\\{name}\" /mf:\"%CD%\\{name}\"")
}

/// Returns the manifest that a declaration names, if it is the file to write.
fn own_manifest(declarations: &[Declaration], out: &Path) -> Option<PathBuf> {
    let out = fs::canonicalize(out).ok()?;
    declarations.iter().find_map(|one| {
        let named = one.providers.iter().find_map(|it| it.manifest.as_ref())?;
        let own = fs::canonicalize(package_folder(&one.path).join(named)).ok()?;
        (own == out).then_some(own)
    })
}

/// A manifest to compare, and its name in messages.
struct Compared {
    name: String,
    manifest: Manifest,
}

/// `manifest check`: checks that older events can still be decoded.
fn check(matches: &ArgMatches) -> Result<()> {
    let base: Option<String> = optional(matches, "base")?;
    let named: Option<PathBuf> = optional(matches, "now")?;
    let old_file = base.as_ref().map(PathBuf::from).filter(|path| path.is_file());
    let (base, now, package) = if let (Some(base), Some(now)) = (&old_file, &named) {
        (from_file(base)?, from_file(now)?, None)
    } else {
        let driver = SelectedDriver::select(matches)?;
        let declarations = driver.declarations()?;
        let base = match &old_file {
            Some(path) => from_file(path)?,
            None => from_git(&driver, &declarations, base.as_deref().unwrap_or("HEAD"))?,
        };
        let now = match &named {
            Some(path) => from_file(path)?,
            None => now(&driver, &declarations)?,
        };
        (base, now, Some(driver.driver.package))
    };
    let breaks = compare::breaks(&base.manifest, &now.manifest);
    if is_json(matches)? {
        let message = json!({
            "reason": "manifest-check",
            "package": package,
            "base": base.name,
            "now": now.name,
            "success": breaks.is_empty(),
            "breaks": breaks.iter().map(in_json).collect::<Vec<_>>(),
        });
        println!("{message}");
    }
    if breaks.is_empty() {
        if !is_json(matches)? {
            println!("{} decodes every event of {}", now.name, base.name);
        }
        return Ok(());
    }
    let lines: Vec<String> = breaks.iter().map(|one| format!("{}:{one}", now.name)).collect();
    bail!("{} does not decode every event of {}:\n{}", now.name, base.name, lines.join("\n"));
}

fn in_json(one: &Break) -> serde_json::Value {
    json!({
        "line": one.at.line,
        "column": one.at.column,
        "provider": one.provider,
        "message": one.what.to_string(),
    })
}

fn from_file(path: &Path) -> Result<Compared> {
    Ok(Compared { name: path.display().to_string(), manifest: read(path, ANY_IMAGE)? })
}

/// Returns the manifest of the driver's declarations or, if there are none, of its image's
/// resources.
fn now(driver: &SelectedDriver, declarations: &[Declaration]) -> Result<Compared> {
    if declarations.is_empty()
        && let Some(image) = driver.image()
    {
        return Ok(Compared {
            name: image.display().to_string(),
            manifest: selected_driver::described(&image)?,
        });
    }
    ensure!(
        !declarations.is_empty(),
        "{} declares no provider and has not been built; name the newer manifest or declaration",
        driver.driver.package
    );
    let names: Vec<String> = declarations.iter().map(|one| driver.named(&one.path)).collect();
    Ok(Compared { name: names.join(", "), manifest: of_declarations(declarations, ANY_IMAGE)? })
}

/// Returns the driver's manifest in a git commit or, if it is not there, the manifest of its
/// declarations in that commit.
fn from_git(
    driver: &SelectedDriver,
    declarations: &[Declaration],
    commit: &str,
) -> Result<Compared> {
    let folder = driver.folder();
    let kept = driver.manifest()?;
    if !succeeds(
        git(folder).args(["rev-parse", "--verify", "--quiet"]).arg(format!("{commit}^{{commit}}")),
    ) {
        ensure!(
            !succeeds(git(folder).arg("rev-parse")) || has_commits(folder),
            "cannot compare with {commit}: the git repository that has {} has no commit yet; commit \
             the driver, or name the older manifest with `--base FILE`",
            folder.display()
        );
        // For example, git does not read a repository that another user owns.
        let said = git(folder).arg("rev-parse").output().map(|output| output.stderr);
        let said =
            said.map_err(|error| error.to_string().into_bytes()).unwrap_or_else(|error| error);
        let said = String::from_utf8_lossy(&said);
        let why =
            said.lines().next().map(|line| format!(" ({})", line.trim_start_matches("fatal: ")));
        bail!(
            "cannot compare with {commit}: it is neither a file nor a commit of a git repository that \
             has {}{}; name the older manifest with `--base FILE`",
            folder.display(),
            why.unwrap_or_default()
        );
    }
    if let Some(bytes) = show(folder, commit, &kept)? {
        let name = format!("{commit}:{}", driver.named(&kept));
        let manifest = parsed(&text_of(&bytes, &name)?, &name)?;
        return Ok(Compared { name, manifest });
    }
    let mut providers = Vec::new();
    let mut names = Vec::new();
    for one in declarations {
        let Some(bytes) = show(folder, commit, &one.path)? else {
            continue;
        };
        let name = format!("{commit}:{}", driver.named(&one.path));
        let text = text_of(&bytes, &name)?;
        let found = wdk_etw_schema::parse::source_in(&text, &configuration::read(&one.path)?)
            .with_context(|| format!("{name} is not a valid declaration"))?;
        providers.extend(found);
        names.push(name);
    }
    ensure!(
        !names.is_empty(),
        "{commit} has neither {} nor the driver's declaration, so there is nothing to compare \
         with; write the manifest with `cargo etw manifest write` and commit it, or name an older \
         one with `--base FILE`",
        driver.named(&kept)
    );
    let files = Files { resources: ANY_IMAGE, messages: ANY_IMAGE };
    Ok(Compared { name: names.join(", "), manifest: declaration::manifest(&providers, &files) })
}

fn git(folder: &Path) -> Process {
    let mut git = Process::new("git");
    git.arg("-C").arg(folder);
    git
}

/// Returns whether a folder's repository has a commit on any branch.
fn has_commits(folder: &Path) -> bool {
    let listed = git(folder).args(["rev-list", "--all", "--max-count=1"]).output();
    listed.is_ok_and(|listed| !listed.stdout.is_empty())
}

fn succeeds(git: &mut Process) -> bool {
    git.output().is_ok_and(|output| output.status.success())
}

/// Returns a file's contents in a commit, or `None` if the commit does not contain the file.
fn show(folder: &Path, commit: &str, path: &Path) -> Result<Option<Vec<u8>>> {
    // In git, a path that starts with `./` is relative to the folder.
    let top =
        git(folder).args(["rev-parse", "--show-toplevel"]).output().context("cannot start git")?;
    let top = PathBuf::from(String::from_utf8_lossy(&top.stdout).trim_end());
    let top = fs::canonicalize(&top).unwrap_or(top);
    let whole = match fs::canonicalize(path) {
        Ok(whole) => whole,
        // The commit can contain a file that the working tree lacks.
        Err(_) => std::path::absolute(path)
            .with_context(|| format!("cannot find the folder of {}", path.display()))?,
    };
    let Ok(inside) = whole.strip_prefix(&top) else {
        return Ok(None);
    };
    let inside = inside.display().to_string().replace('\\', "/");
    let output = git(&top)
        .arg("show")
        .arg(format!("{commit}:{inside}"))
        .output()
        .context("cannot start git")?;
    Ok(output.status.success().then_some(output.stdout))
}

/// `manifest compile`: compiles a manifest or a declaration to resources.
fn compile(matches: &ArgMatches) -> Result<()> {
    let version = match required::<String>(matches, "format")?.as_str() {
        "3" => Version::V3,
        "5" => Version::V5,
        other => bail!("WEVT_TEMPLATE has no version {other}; expected 3 or 5"),
    };
    let out: Option<PathBuf> = optional(matches, "out")?;
    let usual = PathBuf::from("target/manifest");
    if let Some(path) = optional::<PathBuf>(matches, "file")? {
        let stem =
            path.file_stem().map_or_else(|| "manifest".into(), |stem| stem.to_string_lossy());
        let made = read(&path, ANY_IMAGE)?;
        return compile_to(&made, &stem, &out.unwrap_or(usual), version);
    }
    let driver = SelectedDriver::select(matches)?;
    let out = out.unwrap_or_else(|| driver.driver.target.join("manifest"));
    let made = of_declarations(&driver.some_declarations()?, &driver.installed())?;
    compile_to(&made, &driver.driver.image, &out, version)
}

fn compile_to(manifest: &Manifest, stem: &str, out: &Path, version: Version) -> Result<()> {
    files::create_dir_all(out)?;
    let put = |name: String, data: Vec<u8>| {
        let path = out.join(name);
        files::write(&path, data)?;
        println!("{}", path.display());
        Ok::<(), anyhow::Error>(())
    };
    let template = resources::wevt_template(manifest, version)?;
    put(format!("{stem}.wevt.bin"), template.clone())?;
    let mut all = resources::resources(manifest)?;
    // The file for the first language has no language number in its name.
    let first = all.first().map_or(res::ENGLISH, |first| first.language);
    for resource in &mut all {
        if resource.kind == res::WEVT_TEMPLATE {
            resource.data.clone_from(&template);
        } else if resource.language == first {
            put(format!("{stem}.msg.bin"), resource.data.clone())?;
        } else {
            let name = format!("{stem}.msg.{:04x}.bin", resource.language);
            put(name, resource.data.clone())?;
        }
    }
    put(format!("{stem}.res"), res::file(&all)?)
}

/// `manifest import`: writes a declaration of the events in a manifest.
fn import(path: &Path, out: Option<&Path>) -> Result<()> {
    // A declaration names its manifest relative to its package's folder.
    let declaration = out.unwrap_or(path);
    let package = package_folder(declaration);
    let whole = std::path::absolute(path)
        .with_context(|| format!("cannot find the folder of {}", path.display()))?;
    let named = whole.strip_prefix(&package).unwrap_or(&whole);
    let read = parsed(&read_text(path)?, &path.display().to_string())?;
    let imported = import::declaration(&read, named.to_str());
    for note in &imported.notes {
        eprintln!("note: {}:{note}", path.display());
    }
    // On standard error, like the notes, because the declaration can go to standard output.
    eprintln!("{}", imported.counts);
    match out {
        Some(out) => {
            files::write(out, imported.source)?;
            println!("{}", out.display());
        }
        None => print!("{}", imported.source),
    }
    Ok(())
}
