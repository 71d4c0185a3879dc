//! Builds the test driver in C, with clang and the linker of the cross toolchain.
//!
//! Its source is in `tests/drivers/c`. Each variant is an image of its own, which the tests of the
//! stand-in kernel load.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use driver_build::{
    driver::Profile,
    packages::{self, Program},
    toolchain::{Machine, Toolchain},
};

use crate::{
    build::drivers,
    process::{output_of, root, run_quietly, target},
};

/// The name of the driver on the command line, as that of a package.
pub const PACKAGE: &str = "etw-c-driver";

/// The folder of the source, in the repository.
const SOURCE: &str = "tests/drivers/c";

/// The source files.
const FILES: [&str; 4] = ["entry", "driver", "provider", "messages"];

/// The modules that the driver imports from. Their routines are in `NAME.def`.
const IMPORTS: [&str; 2] = ["ntoskrnl", "wdfldr"];

/// The C compiler. With `--driver-mode=cl` it takes the options of Microsoft's.
const COMPILER: Program = Program {
    names: &["clang-19"],
    package: "clang-19",
};

/// A way to build the driver.
struct Variant {
    name: &'static str,
    compile: &'static [&'static str],
    link: &'static [&'static str],
}

/// The variants. `/Z7` and `/debug` make a PDB.
const VARIANTS: [Variant; 8] = [
    Variant {
        name: "od",
        compile: &["/Od", "/Z7"],
        link: &["/debug"],
    },
    Variant {
        name: "o2",
        compile: &["/O2", "/Z7"],
        link: &["/debug"],
    },
    Variant {
        name: "guard",
        compile: &["/O2", "/Z7", "/guard:cf"],
        link: &["/debug", "/guard:cf"],
    },
    Variant {
        name: "kernel",
        compile: &["/O2", "/Z7", "/kernel", "/guard:cf"],
        link: &["/debug", "/guard:cf"],
    },
    Variant {
        name: "no_pdb",
        compile: &["/O2"],
        link: &[],
    },
    // The load configuration of an older linker, which ends after the cookie.
    Variant {
        name: "old_config",
        compile: &["/O2", "/DOLD_LOAD_CONFIG"],
        link: &[],
    },
    Variant {
        name: "no_config",
        compile: &["/O2", "/DNO_LOAD_CONFIG"],
        link: &[],
    },
    // Without relocations.
    Variant {
        name: "fixed",
        compile: &["/O2"],
        link: &["/fixed"],
    },
];

/// Returns the compiler's version, if it is installed.
pub fn compiler() -> Option<String> {
    let version = output_of(Command::new(COMPILER.path()?).arg("--version"))?;
    version.lines().next().map(str::to_owned)
}

/// Returns the package of the compiler, if it is not installed.
pub fn missing_package() -> Option<&'static str> {
    COMPILER.missing()
}

/// Returns the compiler's path. It is installed if it is not there.
///
/// # Errors
///
/// Fails if it cannot be installed.
pub fn compiler_or_install() -> Result<PathBuf> {
    packages::install(COMPILER.missing().as_slice())
        .context("drivers in C need the compiler of Debian's package clang-19")?;
    COMPILER
        .path()
        .context("clang-19 is not on the search path after its installation")
}

/// Builds every variant, and returns the folder with their images.
///
/// # Errors
///
/// Fails if the compiler cannot be installed, or if the driver does not compile or link.
pub fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    let compiler = compiler_or_install()?;
    let to = drivers(Profile::Release);
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    for variant in &VARIANTS {
        let objects = target().join("driver-build/c").join(variant.name);
        fs::create_dir_all(&objects)
            .with_context(|| format!("cannot create {}", objects.display()))?;
        for file in FILES {
            let mut command = Command::new(&compiler);
            // Paths in the image are relative, so that it does not depend on the checkout's.
            command
                .current_dir(root())
                .args(["--driver-mode=cl", "--target=x86_64-pc-windows-msvc"])
                .args(["/nologo", "/c", "/X", "/Zl", "/GS", "/W4", "/WX", "/Brepro"])
                .args([
                    "/clang:-fdebug-compilation-dir=.",
                    // Of use only where there is debug information.
                    "/clang:-gno-codeview-command-line",
                    "-Wno-unused-command-line-argument",
                    "-Xclang",
                ])
                .arg(format!("-object-file-name={file}.obj"))
                .args(variant.compile)
                .arg(format!("{SOURCE}/{file}.c"))
                .arg(format!("/Fo{}", object(&objects, file).display()));
            run_quietly(&mut command)?;
        }
        link(toolchain, variant, &objects, &to)?;
    }
    Ok(to)
}

fn object(folder: &Path, file: &str) -> PathBuf {
    folder.join(file).with_extension("obj")
}

/// Links a variant's objects with import libraries for what it imports.
fn link(toolchain: &Toolchain, variant: &Variant, objects: &Path, to: &Path) -> Result<()> {
    let linker = || {
        let mut command = Command::new(toolchain.linker());
        command.current_dir(root()).args(["-flavor", "link"]);
        // The PDB has the linker's name as it was started.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut command, "lld-link");
        command
    };
    let library = |module: &str| objects.join(module).with_extension("lib");
    for module in IMPORTS {
        let mut command = linker();
        command
            .args(["/lib", "/nologo", "/machine:x64"])
            .arg(format!("/def:{SOURCE}/{module}.def"))
            .arg(format!("/out:{}", library(module).display()));
        run_quietly(&mut command)?;
    }
    let image = format!("etw_c_driver_{}", variant.name);
    let mut command = linker();
    command
        .args(["/nologo", "/driver", "/subsystem:native", "/machine:x64"])
        .args([
            "/entry:FxDriverEntry",
            "/nodefaultlib",
            "/release",
            "/brepro",
        ])
        .args(variant.link)
        .arg(format!("/pdbaltpath:{image}.pdb"))
        // The PDB has absolute paths, below this folder, which the stand-in kernel removes.
        .arg("/pdbsourcepath:C:\\src")
        // It names the objects too, so they are named without their folder.
        .current_dir(objects)
        .arg(format!("/out:{image}.sys"))
        .args(FILES.map(|file| format!("{file}.obj")))
        .args(IMPORTS.map(|module| format!("{module}.lib")));
    run_quietly(&mut command)?;
    for extension in ["sys", "pdb"] {
        let made = objects.join(&image).with_extension(extension);
        if made.exists() {
            let copy = to.join(&image).with_extension(extension);
            fs::copy(&made, &copy)
                .with_context(|| format!("cannot copy {} to {}", made.display(), copy.display()))?;
        }
    }
    Ok(())
}

/// Runs `cargo xtask build` for the driver.
///
/// # Errors
///
/// Fails as [`build`] does.
pub fn run() -> Result<()> {
    let toolchain = Toolchain::find_or_install(Machine::X64)?;
    println!("{}", build(&toolchain)?.display());
    Ok(())
}
