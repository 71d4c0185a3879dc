//! Signing for test machines: a certificate of our own, `osslsigncode` for the signatures.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    packages::Program,
    process::{output_of, run_quietly},
};

/// Who the certificate says it is.
const SUBJECT: &str = "/CN=wdk-etw test certificate";
/// For how long it is good.
const DAYS: &str = "3650";
/// What signatures say the files are.
const DESCRIPTION: &str = "wdk-etw sample driver";

/// The signing tool's version, if it is there.
pub fn version() -> Option<String> {
    let said = output_of(Command::new("osslsigncode").arg("--version"))?;
    let first = said.lines().next()?;
    Some(first.trim_end_matches(", using:").to_owned())
}

/// The signing tools.
const TOOLS: [Program; 2] = [
    Program {
        names: &["openssl"],
        package: "openssl",
    },
    Program {
        names: &["osslsigncode"],
        package: "osslsigncode",
    },
];

/// Returns the packages of the signing tools that are not installed.
pub fn missing_packages() -> Vec<&'static str> {
    TOOLS.iter().filter_map(Program::missing).collect()
}

/// A test certificate, with its key.
pub struct Certificate {
    folder: PathBuf,
}

/// The certificate in a folder; it is made if there is none. It stays, so that a machine that
/// trusts one package trusts the next.
pub fn certificate(folder: &Path) -> Result<Certificate> {
    let certificate = Certificate {
        folder: folder.to_owned(),
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if !certificate.pem().exists() || !certificate.key().exists() {
        run_quietly(
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:3072", "-sha256", "-nodes"])
                .args(["-days", DAYS, "-subj", SUBJECT])
                .args(["-addext", "basicConstraints=critical,CA:false"])
                .args(["-addext", "keyUsage=critical,digitalSignature"])
                .args(["-addext", "extendedKeyUsage=codeSigning"])
                .arg("-keyout")
                .arg(certificate.key())
                .arg("-out")
                .arg(certificate.pem()),
        )?;
    }
    Ok(certificate)
}

impl Certificate {
    fn pem(&self) -> PathBuf {
        self.folder.join("test-certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("test-certificate.key")
    }

    /// As Windows imports it.
    pub fn to_der(&self) -> Result<Vec<u8>> {
        let der = self.folder.join("test-certificate.cer");
        run_quietly(
            Command::new("openssl")
                .args(["x509", "-outform", "DER", "-in"])
                .arg(self.pem())
                .arg("-out")
                .arg(&der),
        )?;
        fs::read(&der).with_context(|| format!("{} cannot be read", der.display()))
    }

    fn sign(&self, options: &[&str], from: &Path, to: &Path) -> Result<()> {
        // It does not write over a file.
        if to.exists() {
            fs::remove_file(to).with_context(|| format!("cannot remove {}", to.display()))?;
        }
        run_quietly(
            Command::new("osslsigncode")
                .arg("sign")
                .arg("-certs")
                .arg(self.pem())
                .arg("-key")
                .arg(self.key())
                .args(["-h", "sha256", "-n", DESCRIPTION])
                .args(options)
                .arg("-in")
                .arg(from)
                .arg("-out")
                .arg(to),
        )?;
        ensure!(to.exists(), "osslsigncode wrote no {}", to.display());
        Ok(())
    }

    /// Signs an image, page by page too.
    pub fn sign_image(&self, from: &Path, to: &Path) -> Result<()> {
        self.sign(&["-ph"], from, to)
    }

    /// Signs a catalog.
    pub fn sign_catalog(&self, catalog: &[u8]) -> Result<Vec<u8>> {
        let unsigned = self.folder.join("unsigned.cat");
        let signed = self.folder.join("signed.cat");
        fs::write(&unsigned, catalog)
            .with_context(|| format!("cannot write {}", unsigned.display()))?;
        self.sign(&[], &unsigned, &signed)?;
        fs::read(&signed).with_context(|| format!("{} cannot be read", signed.display()))
    }
}
