//! Builds the C test driver, with clang and the cross toolchain's linker.
//!
//! Its source is in `tests/drivers/c`. Each variant is a separate image, which tests load in the
//! stand-in kernel.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use driver_build::{
    driver::Profile,
    files,
    packages::{C_COMPILER, c_compiler},
    toolchain::{Machine, Toolchain},
};

use crate::{
    build::drivers,
    process::{output_of, root, run_quietly, target},
};

/// The driver's name on the command line, used like a package name.
pub const PACKAGE: &str = "etw-c-driver";

/// The folder of the source, relative to the repository's root.
const SOURCE: &str = "tests/drivers/c";

/// The source files.
const FILES: [&str; 4] = ["entry", "driver", "provider", "messages"];

/// The modules from which the driver imports. `NAME.def` lists their routines.
const IMPORTS: [&str; 2] = ["ntoskrnl", "wdfldr"];

/// A way to build the driver.
struct Variant {
    name: &'static str,
    compile: &'static [&'static str],
    link: &'static [&'static str],
}

/// The variants. `/Z7` and `/debug` create a PDB.
const VARIANTS: [Variant; 8] = [
    Variant { name: "od", compile: &["/Od", "/Z7"], link: &["/debug"] },
    Variant { name: "o2", compile: &["/O2", "/Z7"], link: &["/debug"] },
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
    Variant { name: "no_pdb", compile: &["/O2"], link: &[] },
    // A load configuration like an older linker's, which ends after the cookie.
    Variant { name: "old_config", compile: &["/O2", "/DOLD_LOAD_CONFIG"], link: &[] },
    Variant { name: "no_config", compile: &["/O2", "/DNO_LOAD_CONFIG"], link: &[] },
    // Without relocations.
    Variant { name: "fixed", compile: &["/O2"], link: &["/fixed"] },
];

/// Returns the compiler's version, if it is installed.
pub fn compiler() -> Option<String> {
    let version = output_of(Command::new(C_COMPILER.path()?).arg("--version"))?;
    version.lines().next().map(str::to_owned)
}

/// Returns the compiler's package, if the compiler is not installed.
pub fn missing_package() -> Option<&'static str> {
    C_COMPILER.missing()
}

/// Builds every variant, and returns the folder that contains the images.
///
/// # Errors
///
/// Fails if the compiler cannot be installed, or if the driver cannot be compiled or linked.
pub fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    let compiler = c_compiler()?;
    let to = drivers(Profile::Release);
    files::create_dir_all(&to)?;
    for variant in &VARIANTS {
        let objects = target().join("driver-build/c").join(variant.name);
        files::create_dir_all(&objects)?;
        for file in FILES {
            let options = [&["/GS"], variant.compile].concat();
            compile(&compiler, &options, SOURCE, file, &objects)?;
        }
        link(toolchain, variant, &objects, &to)?;
    }
    Ok(to)
}

/// Compiles a file in the folder `source` to an object.
fn compile(
    compiler: &Path,
    options: &[&str],
    source: &str,
    file: &str,
    objects: &Path,
) -> Result<()> {
    let mut command = Command::new(compiler);
    let object = objects.join(file).with_extension("obj");
    // Paths in the image are relative, so that the image does not depend on the checkout's path.
    command
        .current_dir(root())
        .args(["--driver-mode=cl", "--target=x86_64-pc-windows-msvc"])
        .args(["/nologo", "/c", "/X", "/Zl", "/W4", "/WX", "/Brepro"])
        .args([
            "/clang:-fdebug-compilation-dir=.",
            // These options are useful only with debug information.
            "/clang:-gno-codeview-command-line", "-Wno-unused-command-line-argument", "-Xclang",
        ])
        .arg(format!("-object-file-name={file}.obj"))
        .args(options)
        .arg(format!("{source}/{file}.c"))
        .arg(format!("/Fo{}", object.display()));
    run_quietly(&mut command)
}

/// Returns the linker's command.
fn linker(toolchain: &Toolchain) -> Command {
    let mut command = Command::new(toolchain.linker());
    command.current_dir(root()).args(["-flavor", "link"]);
    // The PDB contains the name under which the linker was started.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, "lld-link");
    command
}

/// Creates an import library from a list of exports.
fn import_library(toolchain: &Toolchain, list: &Path, library: &Path) -> Result<()> {
    let mut command = linker(toolchain);
    command
        .args(["/lib", "/nologo", "/machine:x64"])
        .arg(format!("/def:{}", list.display()))
        .arg(format!("/out:{}", library.display()));
    run_quietly(&mut command)
}

/// Links a variant's objects with the import libraries.
fn link(toolchain: &Toolchain, variant: &Variant, objects: &Path, to: &Path) -> Result<()> {
    for module in IMPORTS {
        let list = Path::new(SOURCE).join(module).with_extension("def");
        let library = objects.join(module).with_extension("lib");
        import_library(toolchain, &list, &library)?;
    }
    let image = format!("etw_c_driver_{}", variant.name);
    let mut command = linker(toolchain);
    command
        .args(["/nologo", "/driver", "/subsystem:native", "/machine:x64"])
        .args(["/entry:FxDriverEntry", "/nodefaultlib", "/release", "/brepro"])
        .args(variant.link)
        .arg(format!("/pdbaltpath:{image}.pdb"))
        // The PDB contains absolute paths below this folder, a prefix that the stand-in kernel
        // removes.
        .arg("/pdbsourcepath:C:\\src")
        // The PDB also contains the objects' names, so they are given without a folder.
        .current_dir(objects)
        .arg(format!("/out:{image}.sys"))
        .args(FILES.map(|file| format!("{file}.obj")))
        .args(IMPORTS.map(|module| format!("{module}.lib")));
    run_quietly(&mut command)?;
    for extension in ["sys", "pdb"] {
        let made = objects.join(&image).with_extension(extension);
        if made.exists() {
            files::copy(&made, to.join(&image).with_extension(extension))?;
        }
    }
    Ok(())
}

/// The source that runs both as a driver and as a program, relative to the repository's root.
const ROUTINES: &str = "tests/drivers/c/routines";

/// The sources of the drivers that raise exceptions and that print results.
const EXCEPTIONS: &str = "tests/drivers/c/exceptions";
const STATUSES: &str = "tests/drivers/c/statuses";

/// An image without a framework: the folder of its source, its source files, the module that exports the
/// routines in the folder's `exports.txt`, its other imports and their module, the linker options, and
/// the file to build.
struct Form {
    source: &'static str,
    files: &'static [&'static str],
    routines_of: &'static str,
    imports: &'static [(&'static str, &'static [&'static str])],
    link: &'static [&'static str],
    image: &'static str,
}

const DRIVER: &[&str] = &["/driver", "/subsystem:native", "/entry:DriverEntry"];

/// A driver whose imports are all in its folder's list.
const fn driver(source: &'static str, image: &'static str) -> Form {
    Form {
        source,
        files: &["driver"],
        routines_of: "ntoskrnl.exe",
        imports: &[],
        link: DRIVER,
        image,
    }
}

const FORMS: [Form; 4] = [
    driver(EXCEPTIONS, "etw_c_exceptions.sys"),
    driver(STATUSES, "etw_c_statuses.sys"),
    Form {
        source: ROUTINES,
        files: &["routines", "driver"],
        routines_of: "ntoskrnl.exe",
        imports: &[("ntoskrnl.exe", &["DbgPrint"])],
        link: DRIVER,
        image: "etw_c_routines.sys",
    },
    Form {
        source: ROUTINES,
        files: &["routines", "program"],
        routines_of: "ntdll.dll",
        imports: &[("kernel32.dll", &["ExitProcess", "GetStdHandle", "WriteFile"])],
        link: &["/subsystem:console", "/entry:Start"],
        image: "etw_c_routines.exe",
    },
];

/// Builds the images without a framework, and returns their folder.
///
/// # Errors
///
/// Fails like [`build`].
pub fn build_routines(toolchain: &Toolchain) -> Result<PathBuf> {
    let compiler = c_compiler()?;
    let to = drivers(Profile::Release);
    files::create_dir_all(&to)?;
    for form in &FORMS {
        let list = root().join(form.source).join("exports.txt");
        let routines = files::read_to_string(&list)?;
        let objects = target().join("driver-build/c-images").join(form.image);
        files::create_dir_all(&objects)?;
        // Without these options, the compiler would replace calls to routines that it knows.
        let options = ["/O1", "/GS-", "/clang:-fno-builtin"];
        for file in form.files {
            compile(&compiler, &options, form.source, file, &objects)?;
        }
        let mut command = linker(toolchain);
        let of_routines = [(form.routines_of, routines.lines().collect::<Vec<_>>())];
        let others = form.imports.iter().map(|(module, names)| (*module, names.to_vec()));
        for (number, (module, names)) in of_routines.into_iter().chain(others).enumerate() {
            let list = objects.join(format!("{number}.def"));
            let text = format!("LIBRARY {module}\nEXPORTS\n{}\n", names.join("\n"));
            files::write(&list, text)?;
            let library = list.with_extension("lib");
            import_library(toolchain, &list, &library)?;
            command.arg(library);
        }
        let made = objects.join(form.image);
        command
            .args(["/nologo", "/machine:x64", "/nodefaultlib", "/release", "/brepro"])
            .args(form.link)
            .args(form.files.iter().map(|file| objects.join(file).with_extension("obj")))
            .arg(format!("/out:{}", made.display()));
        run_quietly(&mut command)?;
        files::copy(&made, to.join(form.image))?;
    }
    Ok(to)
}

/// Runs `cargo xtask build` for the driver.
///
/// # Errors
///
/// Fails like [`build`].
pub fn run() -> Result<()> {
    let toolchain = Toolchain::find_or_install(Machine::X64)?;
    build(&toolchain)?;
    println!("{}", build_routines(&toolchain)?.display());
    Ok(())
}
