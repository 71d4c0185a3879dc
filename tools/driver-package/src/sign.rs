//! Signs files for test machines with a self-signed certificate. `openssl` and `osslsigncode` must
//! be installed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{self, Command, ExitStatus, Stdio},
};

use jiff::{SignedDuration, Timestamp};

/// The validity of a certificate in days.
const DAYS: i64 = 3650;

/// The number of days by which a certificate's validity starts early, because a test machine's
/// clock can be behind by its time zone.
const DAYS_BEFORE: i64 = 2;

/// The `openssl ca` configuration that defines a certificate's contents. Before OpenSSL 3.4,
/// `-x509` cannot set the first day of validity.
const AUTHORITY: &str = "[ca]
default_ca = test
[test]
new_certs_dir = .
database = index.txt
unique_subject = no
rand_serial = yes
default_md = sha256
policy = policy
x509_extensions = extensions
[policy]
commonName = supplied
[extensions]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = codeSigning
subjectKeyIdentifier = hash
";

/// The reason why a file cannot be signed.
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

/// A test certificate and its key.
#[derive(Debug)]
pub struct Certificate {
    folder: PathBuf,
    /// Locked while the value exists, because each use of the certificate writes to its folder.
    _lock: File,
}

impl Certificate {
    /// Returns the certificate in a folder, creating one for `name` if there is none. The
    /// certificate is kept, so that a machine that trusts one package also trusts the next. Waits while
    /// another program uses the folder's certificate.
    ///
    /// # Errors
    ///
    /// Fails if `openssl` fails, or the folder cannot be created or locked.
    pub fn find_or_make(folder: &Path, name: &str) -> Result<Self, SignError> {
        fs::create_dir_all(folder).map_err(|error| file("create", folder, error))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(|error| file("create", &path, error))?;
        lock.lock().map_err(|error| file("lock", &path, error))?;
        let certificate = Self { folder: folder.to_owned(), _lock: lock };
        if !certificate.pem().exists() || !certificate.key().exists() {
            certificate.make(name)?;
        }
        Ok(certificate)
    }

    /// Creates the key and the certificate.
    fn make(&self, name: &str) -> Result<(), SignError> {
        // openssl's own files are in a temporary folder.
        let work = self.folder.join(format!("new-{}", process::id()));
        fs::create_dir_all(&work).map_err(|error| file("create", &work, error))?;
        let made = self.make_in(&work, name);
        let removed = fs::remove_dir_all(&work).map_err(|error| file("remove", &work, error));
        made.and(removed)
    }

    fn make_in(&self, work: &Path, name: &str) -> Result<(), SignError> {
        for (own, text) in [("ca.cnf", AUTHORITY), ("index.txt", "")] {
            let path = work.join(own);
            fs::write(&path, text).map_err(|error| file("write", &path, error))?;
        }
        run(
            "openssl",
            Command::new("openssl")
                .current_dir(work)
                .args(["req", "-new", "-newkey", "rsa:3072", "-sha256", "-nodes"])
                .args(["-subj", &format!("/CN={name}")])
                .args(["-keyout", "own.key", "-out", "own.csr"]),
        )?;
        let time = |days: i64| {
            let time = Timestamp::now() + SignedDuration::from_hours(24 * days);
            // The time format of openssl.
            time.strftime("%Y%m%d%H%M%SZ").to_string()
        };
        run(
            "openssl",
            Command::new("openssl")
                .current_dir(work)
                .args(["ca", "-config", "ca.cnf", "-batch", "-selfsign", "-notext"])
                .args(["-in", "own.csr", "-keyfile", "own.key", "-out", "own.pem"])
                .args(["-startdate", &time(-DAYS_BEFORE)])
                .args(["-enddate", &time(DAYS - DAYS_BEFORE)]),
        )?;
        for (from, to) in [("own.key", self.key()), ("own.pem", self.pem())] {
            let from = work.join(from);
            fs::rename(&from, &to).map_err(|error| file("rename", &from, error))?;
        }
        Ok(())
    }

    /// Returns the certificate in DER form, which Windows can import.
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

    /// Signs an image, including page hashes; `description` is stored in the signature.
    ///
    /// # Errors
    ///
    /// Fails if `osslsigncode` fails or a file cannot be written.
    pub fn sign_image(&self, description: &str, from: &Path, to: &Path) -> Result<(), SignError> {
        self.sign(description, &["-ph"], from, to)
    }

    /// Signs a catalog and returns the signed catalog.
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
        // osslsigncode does not overwrite files.
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
            Err(SignError::NoOutput { program: "osslsigncode", path: to.to_owned() })
        }
    }
}

fn file(action: &'static str, path: &Path, source: io::Error) -> SignError {
    SignError::File { action, path: path.to_owned(), source }
}

/// Runs a program; if it fails, the error contains its output.
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

    const SECONDS_OF_DAY: i64 = 86400;

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let program = "a-program-that-nobody-has";
        let error = run(program, &mut Command::new(program)).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("cannot start a-program-that"), "{told}");
        assert!(told.contains("install it"), "{told}");
    }

    /// A certificate must not appear too new to a machine whose clock is behind by its time zone.
    #[cfg(unix)]
    #[test]
    fn a_certificate_is_valid_since_the_day_before_yesterday() {
        let folder = tempfile::tempdir().unwrap();
        let certificate = Certificate::find_or_make(folder.path(), "Contoso's test").unwrap();
        let output = Command::new("openssl")
            .args(["x509", "-noout", "-startdate", "-enddate", "-subject", "-ext"])
            .args(["basicConstraints,extendedKeyUsage", "-in"])
            .arg(certificate.pem())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let check = |at: i64| {
            let time = Timestamp::now().as_second() + at;
            Command::new("openssl")
                .args(["verify", "-check_ss_sig", "-attime", &time.to_string()])
                .arg("-CAfile")
                .arg(certificate.pem())
                .arg(certificate.pem())
                .output()
                .unwrap()
                .status
                .success()
        };
        assert!(check(-SECONDS_OF_DAY), "{shown}");
        assert!(check(0) && check(3640 * SECONDS_OF_DAY), "{shown}");
        assert!(!check(-3 * SECONDS_OF_DAY), "{shown}");
        assert!(!check(3651 * SECONDS_OF_DAY), "{shown}");
        for text in ["Contoso's test", "CA:FALSE", "Code Signing"] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        // No other files are left in the folder.
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["lock", "test-certificate.key", "test-certificate.pem"]);
    }

    #[cfg(unix)]
    #[test]
    fn programs_that_share_a_certificate_wait_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let subject = || {
            let certificate = Certificate::find_or_make(folder.path(), "Contoso's test").unwrap();
            let der = certificate.to_der().unwrap();
            // The key and the certificate are a pair.
            let of = |arguments: &[&str], from: PathBuf| {
                Command::new("openssl").args(arguments).arg(from).output().unwrap().stdout
            };
            let public = of(&["x509", "-noout", "-pubkey", "-in"], certificate.pem());
            assert_eq!(public, of(&["pkey", "-pubout", "-in"], certificate.key()));
            der
        };
        let all = std::thread::scope(|scope| {
            [(); 4].map(|()| scope.spawn(subject)).map(|thread| thread.join().unwrap())
        });
        assert!(!all[0].is_empty() && all.iter().all(|one| *one == all[0]));
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
