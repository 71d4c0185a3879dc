//! Signs files for test machines with a self-signed certificate. `openssl` and `osslsigncode` must
//! be installed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

/// The number of days for which a certificate is valid.
const DAYS: &str = "3650";

/// Reasons why a file cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// A program is not installed, or cannot be started.
    #[error(
        "cannot start {program}, which signs driver packages; install it (on Debian: `apt-get \
         install {program}`) and try again"
    )]
    Start {
        /// The program.
        program: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The program's exit status.
        status: ExitStatus,
        /// The program's output.
        output: String,
    },
    /// A program succeeded but did not write its file.
    #[error("{program} succeeded but did not write {}", path.display())]
    NoOutput {
        /// The program.
        program: &'static str,
        /// The file that the program should have written.
        path: PathBuf,
    },
    /// A file cannot be read, written or removed.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A test certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    folder: PathBuf,
}

impl Certificate {
    /// Returns the certificate in a folder, and creates one for `name` if the folder has none. The
    /// certificate is kept, so that a machine that trusts one package trusts the next.
    ///
    /// # Errors
    ///
    /// Fails if `openssl` fails or the folder cannot be created.
    pub fn find_or_make(folder: &Path, name: &str) -> Result<Self, SignError> {
        let certificate = Self {
            folder: folder.to_owned(),
        };
        fs::create_dir_all(folder).map_err(|error| file("create", folder, error))?;
        if !certificate.pem().exists() || !certificate.key().exists() {
            run(
                "openssl",
                Command::new("openssl")
                    .args(["req", "-x509", "-newkey", "rsa:3072", "-sha256", "-nodes"])
                    .args(["-days", DAYS, "-subj", &format!("/CN={name}")])
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

    /// Returns the certificate in the form that Windows imports (DER).
    ///
    /// # Errors
    ///
    /// Fails if `openssl` fails.
    pub fn to_der(&self) -> Result<Vec<u8>, SignError> {
        let der = self.folder.join("test-certificate.cer");
        run(
            "openssl",
            Command::new("openssl")
                .args(["x509", "-outform", "DER", "-in"])
                .arg(self.pem())
                .arg("-out")
                .arg(&der),
        )?;
        fs::read(&der).map_err(|error| file("read", &der, error))
    }

    /// Signs an image, with hashes of its pages; `description` becomes the description in the
    /// signature.
    ///
    /// # Errors
    ///
    /// Fails if `osslsigncode` fails or a file cannot be written.
    pub fn sign_image(&self, description: &str, from: &Path, to: &Path) -> Result<(), SignError> {
        self.sign(description, &["-ph"], from, to)
    }

    /// Signs a catalog and returns the signed one.
    ///
    /// # Errors
    ///
    /// Fails if `osslsigncode` fails or a file cannot be written.
    pub fn sign_catalog(&self, description: &str, catalog: &[u8]) -> Result<Vec<u8>, SignError> {
        let unsigned = self.folder.join("unsigned.cat");
        let signed = self.folder.join("signed.cat");
        fs::write(&unsigned, catalog).map_err(|error| file("write", &unsigned, error))?;
        self.sign(description, &[], &unsigned, &signed)?;
        fs::read(&signed).map_err(|error| file("read", &signed, error))
    }

    fn pem(&self) -> PathBuf {
        self.folder.join("test-certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("test-certificate.key")
    }

    fn sign(
        &self,
        description: &str,
        options: &[&str],
        from: &Path,
        to: &Path,
    ) -> Result<(), SignError> {
        // osslsigncode does not overwrite a file.
        if to.exists() {
            fs::remove_file(to).map_err(|error| file("remove", to, error))?;
        }
        run(
            "osslsigncode",
            Command::new("osslsigncode")
                .arg("sign")
                .arg("-certs")
                .arg(self.pem())
                .arg("-key")
                .arg(self.key())
                .args(["-h", "sha256", "-n", description])
                .args(options)
                .arg("-in")
                .arg(from)
                .arg("-out")
                .arg(to),
        )?;
        if to.exists() {
            Ok(())
        } else {
            Err(SignError::NoOutput {
                program: "osslsigncode",
                path: to.to_owned(),
            })
        }
    }
}

fn file(action: &'static str, path: &Path, source: io::Error) -> SignError {
    SignError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Runs a program; its output appears only in the error if it fails.
fn run(program: &'static str, command: &mut Command) -> Result<(), SignError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| SignError::Start { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    Err(SignError::Failed {
        program,
        status: output.status,
        output: [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let program = "a-program-that-nobody-has";
        let error = run(program, &mut Command::new(program)).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("cannot start a-program-that"), "{told}");
        assert!(told.contains("install it"), "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no key >&2; exit 3"]);
        let told = run("sh", &mut command).unwrap_err().to_string();
        assert!(told.contains("no key"), "{told}");
    }
}
