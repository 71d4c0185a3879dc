//! Tests the errors of a build script for faulty declarations and manifests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use wdk_etw_build::{BuildError, Image, compile, declared, manifest_of};

use crate::helpers::{FILES, module, write};

/// Returns the error that the build script reports for a source file.
fn refused(source: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "trace.rs", source);
    let Err(error) = manifest_of(&path, &FILES) else {
        panic!("{source} is accepted");
    };
    let text = error.to_string();
    assert!(text.contains("trace.rs"), "{text}");
    // Including the separator, which differs on Windows.
    text.replace(&folder.path().join("").display().to_string(), "")
}

/// Returns a declaration with one event.
fn event(provider: &str, more: &str, fields: &str) -> String {
    module(
        &format!("name = \"{provider}\""),
        &format!("#[event(id = 1, level = Info, keyword = none{more})]\n    fn x({fields});"),
    )
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    for (source, message) in [
        ("fn (", "trace.rs:1:4: "),
        (
            &module("name = \"A\"", "#[event(level = Loud)]\n    fn x();"),
            "trace.rs:3:21: unknown level `Loud`",
        ),
        ("#[wdk_etw::provider(guid = \"1\")]\nmod trace {}", "trace.rs:1:28: `1` is not a GUID"),
        // A mistake inside a literal.
        (
            &event("A", ", message = \"%2\"", "a: u32"),
            "trace.rs:3:62: column 1 of the message: it refers to %2, but the event has one field, %1",
        ),
        // A mistake that only the manifest rules detect.
        (
            &module(
                "name = \"A\"",
                "#[channels]\n    enum Channel {\n        #[channel(Admin)]\n        Admin = 16,\n    }\n    \
                 #[event(id = 1, level = Verbose, keyword = none, channel = Admin)]\n    fn x();",
            ),
            "trace.rs:9:8: an event of an Admin channel needs a message",
        ),
        (
            &event("A|B", "", ""),
            "trace.rs:1:28: the provider's name contains '|', which the name of a provider with a \
             manifest cannot contain",
        ),
        ("mod trace {}", "trace.rs has no `#[wdk_etw::provider]` module"),
    ] {
        let error = refused(source);
        assert!(error.starts_with(message), "{message}: {error}");
    }
    // All mistakes are reported.
    let error = refused(&module(
        "name = \"A\"",
        "#[event(level = Loud, keyword = none)]\n    fn x();\n    #[event(level = Info)]\n    fn y();",
    ));
    assert_eq!(error.lines().count(), 2, "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let error = declared(Path::new("no-such.rs")).unwrap_err();
    assert!(matches!(error, BuildError::Read { .. }));
    assert!(error.to_string().starts_with("cannot read no-such.rs: "), "{error}");
}

#[test]
fn a_named_manifest_must_be_valid_and_agree() {
    let folder = tempfile::tempdir().unwrap();
    let source = |manifest: &Path| {
        let text = event("A", "", "a: u32");
        let named = format!("\"A\", manifest = {:?}", manifest.display().to_string());
        write(&folder, "trace.rs", &text.replace("\"A\"", &named))
    };
    let error_of = |path: &Path| manifest_of(path, &FILES).unwrap_err().to_string();
    let error = error_of(&source(&folder.path().join("missing.man")));
    assert!(error.contains("missing.man"), "{error}");

    let broken = write(&folder, "broken.man", "<instrumentationManifest>");
    let error = error_of(&source(&broken));
    assert!(error.contains("broken.man: line 1, "), "{error}");

    // A manifest with the event, and a manifest with a different layout of the event.
    let alone = write(&folder, "alone.rs", &event("A", "", "a: u32"));
    let (manifest, _) = manifest_of(&alone, &FILES).unwrap();
    let good = wdk_etw_build::manifest::write(&manifest, "");
    let path = write(&folder, "good.man", &good);
    let (_, read) = manifest_of(&source(&path), &FILES).unwrap();
    assert_eq!(read.len(), 2);
    // UTF-16 gives the same result; bytes that are not text are rejected.
    let units = std::iter::once(0xFEFF).chain(good.encode_utf16());
    let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    fs::write(&path, &bytes).unwrap();
    assert!(manifest_of(&source(&path), &FILES).is_ok());
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = error_of(&source(&path));
    assert!(error.contains("neither UTF-8 nor UTF-16"), "{error}");
    let path = write(
        &folder,
        "other.man",
        &good.replace("win:UInt32\" outType=\"xs:unsignedInt", "win:UInt64"),
    );
    let error = error_of(&source(&path));
    assert!(
        error.contains(
            "trace.rs:4:8: A: event 1 version 0 does not have the layout of the manifest"
        ),
        "{error}"
    );

    assert!(error.ends_with(&format!("(the manifest is {})", path.display())), "{error}");

    let both = format!(
        "{}\n#[wdk_etw::provider(name = \"B\")]\nmod other {{}}",
        fs::read_to_string(source(&path)).unwrap()
    );
    let path = write(&folder, "both.rs", &both);
    let error = error_of(&path);
    assert!(error.contains("must all name the same manifest, or none"), "{error}");
}

#[test]
fn outside_a_build_script_the_call_fails() {
    // Cargo sets these only for build scripts.
    assert!(std::env::var_os("OUT_DIR").is_none());
    for error in [Image::of_package().unwrap_err(), compile("src/trace.rs").unwrap_err()] {
        assert!(matches!(error, BuildError::NoBuildScript(_)), "{error}");
        assert!(error.to_string().contains("call this function from a build script"));
    }
}

/// Runs the test below in a process with the environment of a driver's build script, and returns
/// its output.
fn embedded(folder: &TempDir, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "build_script::driver_build_script", "--ignored", "--nocapture"])
        .envs([
            ("CARGO_PKG_VERSION", "1.22.333-beta.4+five"),
            ("CARGO_PKG_NAME", "contoso-disk"),
            ("CARGO_PKG_AUTHORS", "Ann:Bob"),
            ("CARGO_PKG_DESCRIPTION", "A disk"),
            ("CARGO_PKG_LICENSE", "MIT"),
            ("DEBUG", "true"),
            ("PROFILE", "debug"),
            ("CARGO_CFG_TARGET_OS", "windows"),
            ("CARGO_CFG_TARGET_ENV", "msvc"),
        ])
        .env("OUT_DIR", folder.path())
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "the build script of a driver; `embedded` runs it"]
fn driver_build_script() {
    let embed = || {
        let image = Image::of_package()?;
        let image = match env::var_os("DECLARATION") {
            Some(path) => image.declaration(PathBuf::from(path)),
            None => image,
        };
        image.embed()
    };
    // Rust prints the error that `main` returns in this form.
    if let Err(error) = embed() {
        println!("Error: {error:?}");
    }
}

#[test]
fn cargo_shows_each_mistake_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let source = module(
        "name = \"A\"",
        "#[event(level = Loud, keyword = none)]\n    fn x();\n    #[event(level = Info)]\n    fn y();",
    );
    let path = write(&folder, "trace.rs", &source);
    let path = path.to_str().unwrap();
    let said = embedded(&folder, &[("DECLARATION", path)]);
    for line in [3, 6] {
        let start = format!("cargo::error={path}:{line}:");
        assert_eq!(said.matches(&start).count(), 1, "{start}: {said}");
    }
    assert!(said.contains(&format!("Error: {path}:3:21: unknown level `Loud`")), "{said}");
    // A mistake without a position in a declaration is shown too.
    let said = embedded(&folder, &[("DECLARATION", "no-such.rs")]);
    assert!(said.contains("cargo::error=cannot read no-such.rs: "), "{said}");
    assert!(said.contains("Error: cannot read no-such.rs: "), "{said}");
}

#[test]
fn cargo_shows_what_is_left_out_of_a_named_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let alone = write(&folder, "alone.rs", &event("A", "", "a: u32"));
    let (manifest, _) = manifest_of(&alone, &FILES).unwrap();
    let text = wdk_etw_build::manifest::write(&manifest, "");
    let counters = "<counters xmlns=\"http://schemas.microsoft.com/win/2005/12/counters\"/>";
    let text =
        text.replacen("<instrumentation>", &format!("<instrumentation>\n{counters}{counters}"), 1);
    let file = write(&folder, "a.man", &text);
    let line = text.lines().position(|line| line.starts_with("<counters")).unwrap() + 1;
    let file = file.display().to_string();
    let source = event("A", "", "a: u32").replace("\"A\"", &format!("\"A\", manifest = {file:?}"));
    let path = write(&folder, "trace.rs", &source);
    let said = embedded(&folder, &[("DECLARATION", path.to_str().unwrap())]);
    let warnings: Vec<&str> =
        said.lines().filter(|line| line.starts_with("cargo::warning=")).collect();
    let expected = format!("cargo::warning={file}:{line}:1: omitting 2 elements `counters` of ");
    assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{expected}: {said}");
    // Libraries' manifests are reported too, even if the driver's declaration names none.
    let other = write(&folder, "other.rs", &event("B", "", "a: u32"));
    let said = embedded(
        &folder,
        &[
            ("DECLARATION", other.to_str().unwrap()),
            ("DEP_OTHER_WDK_ETW_DECLARATIONS", path.to_str().unwrap()),
        ],
    );
    assert_eq!(said.matches("cargo::warning=").count(), 1, "{said}");
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn cargo_shows_the_providers_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c, d] = ["A", "B", "C", "D"].map(|name| event(name, "", "a: u32"));
    let d = d.replace(
        "#[wdk_etw::provider(name = \"D\")]",
        "#[cfg_attr(windows, wdk_etw::provider(name = \"D\"))]",
    );
    let inner = a.replacen("    #[event", "    mod inner {}\n    #[event", 1);
    let source = inner.replace("mod inner {}", &format!("mod inner {{\n{b}\n}}"))
        + &format!("\nmacro_rules! made {{ () => {{\n{c}\n}} }}\nfn f() {{\n{d}\n}}\n")
        // The build omits tests, and another crate's attribute declares no module.
        + &format!("#[cfg(test)] mod tests {{ fn f() {{ {c} }} }}\n#[cfg(test)] fn g() {{ {c} }}\n")
        + &format!("#[cfg(any())] mod never {{ fn f() {{ {c} }} }}\n")
        + "fn h() { #[other::provider(name = \"E\")] pub struct E { module: u8 } }\n"
        + "#[provider(name = \"F\")] fn i() { mod inner {} }\n";
    let path = write(&folder, "trace.rs", &source);
    let path = path.to_str().unwrap();
    let said = embedded(&folder, &[("DECLARATION", path)]);
    for name in ["B", "C", "D"] {
        let line =
            source.lines().position(|line| line.contains(&format!("\"{name}\""))).unwrap() + 1;
        let start = format!("cargo::warning={path}:{line}:2: this provider is inside a macro");
        assert!(said.contains(&start), "{start}: {said}");
    }
    assert_eq!(said.matches("cargo::warning=").count(), 3, "{said}");
    assert!(contains(&folder, "contoso_disk.sys") && !said.contains("cargo::error"), "{said}");
    let path = write(&folder, "macro.rs", &format!("made! {{\n{c}\n}}"));
    let said = embedded(&folder, &[("DECLARATION", path.to_str().unwrap())]);
    assert!(
        said.contains("macro.rs has no `#[wdk_etw::provider]` module that a build script can read"),
        "{said}"
    );
}

/// Returns the four numbers of the version resource in the embedded resources, and its flags.
fn version(folder: &TempDir) -> ([u16; 4], u32) {
    let bytes = fs::read(folder.path().join("resources.res")).unwrap();
    let start = bytes.windows(4).position(|bytes| bytes == 0xFEEF_04BD_u32.to_le_bytes()).unwrap();
    let word = |at: usize| {
        let at = start + 4 * at;
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    };
    let halves = |word: u32| [word >> 16, word & 0xFFFF].map(|half| u16::try_from(half).unwrap());
    let ([a, b], [c, d]) = (halves(word(2)), halves(word(3)));
    ([a, b, c, d], word(7))
}

/// Returns whether the embedded resources contain this string, encoded as UTF-16.
fn contains(folder: &TempDir, text: &str) -> bool {
    let bytes = fs::read(folder.path().join("resources.res")).unwrap();
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn the_image_has_the_packages_version() {
    let folder = tempfile::tempdir().unwrap();
    let said = embedded(&folder, &[]);
    assert_eq!(version(&folder), ([1, 22, 333, 0], 1), "{said}");
    for text in [
        "1.22.333-beta.4+five\0", "Ann, Bob\0", "A disk\0", "contoso_disk.sys\0", "contoso-disk\0",
        "MIT\0",
    ] {
        assert!(contains(&folder, text), "{text}");
    }
    // A release build with debug information is not a debug build, and neither is a debug build
    // without debug information.
    for (debug, profile) in [("true", "release"), ("false", "debug"), ("false", "release")] {
        embedded(&folder, &[("DEBUG", debug), ("PROFILE", profile)]);
        assert_eq!(version(&folder).1, 0, "{debug} {profile}");
    }
    let said = embedded(&folder, &[("CARGO_PKG_VERSION", "1.65536.0")]);
    assert!(said.contains("Error: cannot use package version 1.65536.0 for the image: "), "{said}");
}

#[test]
fn resources_are_linked_into_images_for_windows_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resources.res");
    let link = format!("cargo::rustc-link-arg-cdylib={}\n", path.display());
    let said = embedded(&folder, &[]);
    assert!(said.contains(&link), "{said}");
    fs::remove_file(&path).unwrap();
    let said = embedded(&folder, &[("CARGO_CFG_TARGET_ENV", "gnu")]);
    assert!(!said.contains("rustc-link-arg"), "{said}");
    assert!(path.is_file());
}

#[test]
fn the_image_has_the_events_of_its_package_and_of_its_dependencies() {
    let folder = tempfile::tempdir().unwrap();
    let declared = |provider: &str, feature: &str| {
        let text = format!(
            "#[wdk_etw::provider(name = \"{provider}\")]\nmod trace {{\n    #[event(id = 1, level = Info, \
             keyword = none, message = \"{provider} writes\")]\n    fn x();\n    #[cfg(feature = \
             \"{feature}\")]\n    #[event(id = 2, level = Info, keyword = none, message = \"{provider} has \
             {feature}\")]\n    fn y();\n}}"
        );
        write(&folder, &format!("{provider}.rs"), &text)
    };
    let own = declared("Own", "own");
    let own = own.to_str().unwrap();
    let other = declared("Other", "other");
    let other = other.to_str().unwrap();
    let passed_on = format!("{other}\u{1f}other");
    let of_own = ("DECLARATION", own);
    let of_other = ("DEP_OTHER_WDK_ETW_DECLARATIONS", passed_on.as_str());
    let has = |text: &str| contains(&folder, text);

    let said = embedded(&folder, &[]);
    assert!(!said.contains("rerun-if-changed"), "{said}");
    assert!(!has("writes"));

    let said = embedded(&folder, &[of_own]);
    assert!(said.contains(&format!("cargo::rerun-if-changed={own}\n")), "{said}");
    assert!(has("Own writes") && !has("Own has own") && !has("Other"));

    let said = embedded(&folder, &[of_own, of_other, ("CARGO_CFG_FEATURE", "own")]);
    assert!(said.contains(&format!("cargo::rerun-if-changed={own}\n")), "{said}");
    assert!(said.contains(&format!("cargo::rerun-if-changed={other}\n")), "{said}");
    assert!(
        has("Own writes") && has("Own has own") && has("Other writes") && has("Other has other")
    );

    // A driver without its own provider, which links a library that has one.
    embedded(&folder, &[of_other]);
    assert!(has("Other writes") && !has("Own"));
}
