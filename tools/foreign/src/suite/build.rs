//! Builds the images of a test driver with mingw-w64: one for each test function.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use driver_build::{
    files,
    packages::{Program, install},
    process::printed,
};

use crate::{
    compile::root,
    link::{join, module_of, run},
};

const COMPILER: Program =
    Program { names: &["x86_64-w64-mingw32-gcc"], package: "gcc-mingw-w64-x86-64" };

/// The folders in which systems have mingw-w64's headers for drivers.
const HEADERS: [&str; 3] = [
    "/usr/share/mingw-w64/include/ddk",
    "/usr/x86_64-w64-mingw32/include/ddk",
    "/usr/x86_64-w64-mingw32/sys-root/mingw/include/ddk",
];

/// The headers that the shim's own header replaces.
const REPLACED: [&str; 8] = [
    "windef.h", "winbase.h", "winternl.h", "winioctl.h", "ddk/fltkernel.h", "ddk/ntddk.h",
    "ddk/ntifs.h", "ddk/wdm.h",
];

/// Returns a tool of mingw-w64.
fn tool(name: &str) -> Command {
    Command::new(format!("x86_64-w64-mingw32-{name}"))
}

/// A compiled driver that lacks the name of the chosen test function.
pub struct Object {
    out: PathBuf,
    libraries: Vec<PathBuf>,
}

/// Compiles a driver's text with the shim. `folder` contains the driver's own headers, and
/// `headers` contains the headers that mingw-w64 lacks.
///
/// # Errors
///
/// Fails if a tool is missing, or with the compiler's message.
pub fn compile(text: &str, folder: &Path, headers: &Path, out: &Path) -> Result<Object> {
    install(COMPILER.missing().as_slice()).context("the suite needs the compiler mingw-w64")?;
    let ddk = HEADERS.iter().map(Path::new).find(|one| one.join("wdm.h").is_file());
    let ddk = ddk.with_context(|| {
        format!("mingw-w64's headers for drivers are in none of {}", HEADERS.join(", "))
    })?;
    for name in ["kernel.h", "utils.h"] {
        files::copy(root().join("tools/foreign/wine").join(name), out.join(name))?;
    }
    for name in REPLACED {
        let file = out.join(name);
        files::create_dir_all(file.parent().unwrap_or(out))?;
        files::write(file, "#include \"kernel.h\"\n")?;
    }
    let source = out.join("driver.c");
    files::write(&source, text)?;
    let object = out.join("driver.o");
    run(tool("gcc")
        .args([
            "-c", "-std=gnu11", "-O1", "-w", "-ffreestanding", "-fno-builtin",
            "-mno-stack-arg-probe",
        ])
        .args(["-D_WIN32_WINNT=0x0A00", "-DNTDDI_VERSION=0x0A000000"])
        .arg(join("-I", out))
        .arg(join("-I", ddk))
        // This folder comes first, because it contains the shim's header instead of the driver's.
        .arg("-iquote")
        .arg(out)
        .arg("-iquote")
        .arg(folder)
        .arg("-idirafter")
        .arg(headers)
        .arg("-o")
        .args([&object, &source]))?;
    let symbols = printed(tool("nm").args(["-u", "-j"]).arg(&object))?;
    let symbols = String::from_utf8_lossy(&symbols);
    let mut imports: BTreeMap<&str, String> = BTreeMap::new();
    for symbol in symbols.lines().map(|line| line.trim().trim_start_matches("U ")) {
        let name = symbol.trim_start_matches("__imp_");
        if name != "shim_chosen" {
            let _ = writeln!(imports.entry(module_of(name)).or_default(), "{name}");
        }
    }
    let mut libraries = Vec::new();
    for (module, names) in imports {
        let definition = out.join(module).with_extension("def");
        files::write(&definition, format!("LIBRARY {module}\nEXPORTS\n{names}"))?;
        let library = definition.with_extension("a");
        run(tool("dlltool").arg("-d").arg(&definition).arg("-l").arg(&library))?;
        libraries.push(library);
    }
    Ok(Object { out: out.to_owned(), libraries })
}

impl Object {
    /// Links the image that runs one test function, or none.
    ///
    /// # Errors
    ///
    /// Fails with the linker's message.
    pub fn link(&self, chosen: &str, image: &Path) -> Result<()> {
        let name = self.out.join("chosen.c");
        files::write(&name, format!("const char shim_chosen[] = \"{chosen}\";\n"))?;
        run(tool("gcc")
            .args([
                "-nostdlib", "-shared", "-s", "-Wl,--subsystem,native", "-Wl,--entry,DriverEntry",
            ])
            .args(["-Wl,--image-base,0x140000000", "-Wl,--dynamicbase", "-o"])
            .arg(image)
            .args([&name, &self.out.join("driver.o")])
            .args(&self.libraries)
            .arg("-lgcc"))
    }
}
