//! Checks every file in the driver package with independent verifiers.
//!
//! The test is ignored by default, because the package must first be built (`cargo make package` or
//! `cargo xtask package`); `cargo xtask test` builds the package and runs the test.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use etw_test_support::{root, verify_signature};
use tempfile::TempDir;

const SERVICE: &str = etw_sample_interface::SERVICE;

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The unpacked package.
struct Package {
    folder: TempDir,
    files: BTreeMap<String, Vec<u8>>,
}

impl Package {
    fn unpack() -> Self {
        Self::unpack_named("x64")
    }

    fn unpack_named(suffix: &str) -> Self {
        let path =
            target().join(format!("package/{SERVICE}-{}-{suffix}.zip", env!("CARGO_PKG_VERSION")));
        assert!(path.is_file(), "{} does not exist: run `cargo make package`", path.display());
        let unpacked = tempfile::tempdir().unwrap();
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(&path).arg(unpacked.path());
        assert!(unpack.status().unwrap().success());
        let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let names: Vec<_> = entries(unpacked.path()).map(|entry| entry.file_name()).collect();
        assert_eq!(names, [SERVICE], "the files are in one folder");
        let folder = tempfile::tempdir().unwrap();
        let mut files = BTreeMap::new();
        for entry in entries(&unpacked.path().join(SERVICE)) {
            let name = entry.file_name().into_string().unwrap();
            let data = fs::read(entry.path()).unwrap();
            fs::write(folder.path().join(&name), &data).unwrap();
            files.insert(name, data);
        }
        Self { folder, files }
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{SERVICE}.{extension}"))
    }

    fn text(&self, name: &str) -> &str {
        str::from_utf8(&self.files[name]).unwrap()
    }

    /// Writes the image with one byte of code changed, and returns its path.
    fn changed_image(&self) -> PathBuf {
        let mut data = self.files[&format!("{SERVICE}.sys")].clone();
        data[0x800] ^= 1;
        let changed = self.folder.path().join("changed.sys");
        fs::write(&changed, data).unwrap();
        changed
    }

    /// Returns whether osslsigncode accepts a signature, and its output.
    fn verify(&self, options: &[&Path], file: &Path) -> (bool, String) {
        verify_signature(&self.path("cer"), options, file)
    }
}

fn python(script: &str, arguments: &[&Path]) -> String {
    let arguments = arguments.iter().map(|path| path.as_os_str());
    let arguments = ["-c", script].map(OsStr::new).into_iter().chain(arguments);
    String::from_utf8(etw_test_support::run_python(arguments)).unwrap()
}

#[test]
#[ignore = "needs the package"]
fn the_package_contains_the_files_of_its_readme() {
    let package = Package::unpack();
    let mut expected: Vec<String> = ["cat", "cer", "inf", "man", "pdb", "sys", "wprp"]
        .map(|extension| format!("{SERVICE}.{extension}"))
        .to_vec();
    expected.extend(
        [
            "README.txt", "device.ps1", "etw-sample-client.exe", "install.cmd", "prepare.cmd",
            "restore.cmd", "uninstall.cmd", "uninstall.ps1",
        ]
        .map(str::to_owned),
    );
    expected.sort();
    let there: Vec<String> = package.files.keys().cloned().collect();
    assert_eq!(there, expected);
    let readme = package.text("README.txt");
    for name in there.iter().filter(|name| *name != "README.txt") {
        assert!(readme.contains(name.as_str()), "{name} is not in the README");
    }
    assert!(readme.contains("WdkEtw.SampleDriver 0xff 5"), "{readme}");
    // The command prompt requires Windows line endings.
    for name in ["README.txt", "install.cmd", "prepare.cmd", "restore.cmd"] {
        let text = package.text(name);
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    }
    // The WDK package has a certificate with a different name, so the scripts accept any
    // certificate.
    for name in ["prepare.cmd", "restore.cmd"] {
        let commands: Vec<&str> =
            package.text(name).lines().filter(|line| !line.starts_with("rem ")).collect();
        assert!(commands.iter().any(|line| line.contains("*.cer")), "{name}");
        assert!(
            !commands.iter().any(|line| line.contains("driver.cer")),
            "{name} names a certificate"
        );
    }
}

#[test]
#[ignore = "needs the package"]
fn the_driver_is_signed_and_changes_are_noticed() {
    let package = Package::unpack();
    let image = package.path("sys");
    let (is_sound, said) = package.verify(&[], &image);
    assert!(is_sound, "{said}");
    assert!(said.contains("SHA256"), "{said}");
    assert!(said.contains("Page hash"), "{said}");
    let script = "import lief, sys\n\
                  pe = lief.PE.parse(sys.argv[1])\n\
                  print(pe.verify_signature(), len(pe.signatures))\n\
                  print(pe.signatures[0].content_info.digest.hex() == pe.authentihash_sha256.hex())";
    assert_eq!(python(script, &[&image]).trim(), "VERIFICATION_FLAGS.OK 1\nTrue");

    // With one byte of code changed, neither verifier accepts the image.
    let changed = package.changed_image();
    assert!(!package.verify(&[], &changed).0);
    assert!(python(script, &[&changed]).contains("BAD_DIGEST"));
}

#[test]
#[ignore = "needs the package"]
fn the_image_is_the_driver_with_a_version_and_a_checksum() {
    let package = Package::unpack();
    let script = "import pefile, sys\n\
                  pe = pefile.PE(sys.argv[1])\n\
                  print(hex(pe.FILE_HEADER.Machine), pe.OPTIONAL_HEADER.Subsystem)\n\
                  print(pe.verify_checksum(), hex(pe.VS_FIXEDFILEINFO[0].FileType))\n\
                  table = pe.FileInfo[0][0].StringTable[0].entries\n\
                  print(table[b'OriginalFilename'].decode(), table[b'FileVersion'].decode())";
    let expected = format!("0x8664 1\nTrue 0x3\n{SERVICE}.sys {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(python(script, &[&package.path("sys")]).trim(), expected);
    let pdb = &package.files[&format!("{SERVICE}.pdb")];
    assert!(pdb.starts_with(b"Microsoft C/C++ MSF 7.00"));
    let client = &package.files["etw-sample-client.exe"];
    assert!(client.starts_with(b"MZ"));
    let help = Command::new(etw_test_support::program("WDK_ETW_WINE", "/usr/lib/wine/wine64"))
        .env("WINEPREFIX", target().join("wine"))
        // The folder of a DLL that Wine lacks.
        .env("WINEPATH", format!("Z:{}", target().join("client").display()).replace('/', "\\"))
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
        .arg(package.folder.path().join("etw-sample-client.exe"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(help.status.success());
}

/// signify is the second catalog reader, because osslsigncode only supports signatures and images,
/// and rejects files of unknown formats. Python and LIEF compute the hashes.
#[test]
#[ignore = "needs the package"]
fn both_versions_of_the_catalog_have_every_file_by_its_hashes() {
    let hashes = "import hashlib, lief, sys\n\
                  inf, sys_ = open(sys.argv[1], 'rb').read(), lief.PE.parse(sys.argv[2])\n\
                  print(hashlib.sha1(inf).hexdigest(), hashlib.sha256(inf).hexdigest())\n\
                  print(sys_.authentihash_sha1.hex(), sys_.authentihash_sha256.hex())";
    for (suffix, version) in [("x64", 1), ("x64-catalog-2", 2)] {
        let package = Package::unpack_named(suffix);
        let (catalog, image) = (package.path("cat"), package.path("sys"));
        assert!(package.verify(&[], &catalog).0, "{suffix}");
        let option = [Path::new("-catalog"), &catalog];
        let (is_sound, said) = package.verify(&option, &image);
        assert!(is_sound, "{suffix}: {said}");
        assert!(!package.verify(&option, &package.changed_image()).0);

        let printed = python(hashes, &[&package.path("inf"), &image]);
        let mut expected = Vec::new();
        for (line, name) in printed.lines().zip(["inf", "sys"]) {
            let (sha1, sha256) = line.split_once(' ').unwrap();
            let name = format!("{SERVICE}.{name}");
            if version == 1 {
                expected.push(format!("version-1 text {sha1} sha1 {sha1} {name}"));
            } else {
                expected.push(format!("version-2 bytes {sha1} - - {name}"));
                expected.push(format!("version-2 bytes {sha256} sha256 {sha256} {name}"));
            }
        }
        let dump = root().join("tests/oracles/catalog_dump.py");
        let read = etw_test_support::run_python([dump.as_os_str(), catalog.as_os_str()]);
        let read = String::from_utf8(read).unwrap();
        let mut found: Vec<&str> = read.lines().collect();
        // Readers search the entries by tag, so they must be sorted by tag.
        let tags: Vec<&str> = found.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
        assert!(tags.is_sorted(), "{read}");
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let hashes = ["SHA-1.", "SHA-1 and SHA-256."][version - 1];
        let readme = package.text("README.txt").replace("\r\n", " ");
        assert!(readme.contains(&format!("by their {hashes}")), "{readme}");
    }
}

#[test]
#[ignore = "needs the package"]
fn the_inf_is_the_drivers() {
    let package = Package::unpack();
    let check = |inf: &Path| {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("inf")
            .arg(inf)
            .arg(package.path("sys"))
            .output()
            .unwrap()
    };
    assert!(check(&package.path("inf")).status.success());
    let other = package.text(&format!("{SERVICE}.inf")).replace("= 1.31", "= 1.33");
    let path = package.folder.path().join("other.inf");
    fs::write(&path, other).unwrap();
    let output = check(&path);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("KmdfLibraryVersion is 1.33"), "{said}");
}

#[test]
#[ignore = "needs the package"]
fn the_manifest_and_the_profile_match_the_provider() {
    let package = Package::unpack();
    let provider = "802b686a-519d-5416-5280-4c0ead585fbb";
    for extension in ["man", "wprp"] {
        let text = package.text(&format!("{SERVICE}.{extension}"));
        assert!(text.contains(provider), "{extension}");
        let script = "import sys, xml.dom.minidom\nxml.dom.minidom.parse(sys.argv[1])";
        python(script, &[&package.path(extension)]);
    }
}
