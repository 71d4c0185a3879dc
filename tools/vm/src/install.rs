//! Installs Windows unattended, and keeps the result as a base image.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    answer::{Answer, ImageKind, Windows, hex, product_key},
    error::{Error, Result, file},
    interrupt, iso,
    protocol::Message,
    qemu::{self, Accelerator, Display, Drive, Firmware, Machine, Settings},
    watch::{self, Ending, Limits, Observer, Seen},
};

/// The maximum number of restarts during an installation; other projects' CI uses the same limit.
const RESTARTS: u32 = 10;

/// The time for which a base image of an evaluation edition can be used. Activation requires a
/// network; after ten days without it, Windows shuts itself down, so a run must end before then.
const EVALUATION: Duration = Duration::from_hours(9 * 24);

/// The options of an installation.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The installation image published by Microsoft.
    pub iso: PathBuf,
    /// The contents of the answer file.
    pub answer: Answer,
    /// The folder for base images.
    pub images: PathBuf,
    /// The size of the system disk in bytes. The image is sparse.
    pub disk: u64,
    /// The settings for QEMU.
    pub settings: Settings,
    /// The accelerators to try in turn if nothing starts in the virtual machine. On some hosts, KVM
    /// can run a few instructions but not an operating system.
    pub alternatives: Vec<Accelerator>,
    /// The maximum time without a message; the default depends on the accelerator.
    pub silence: Option<Duration>,
    /// The time limit for the installation; the default depends on the accelerator.
    pub total: Option<Duration>,
}

/// An installed Windows. Its image is read-only: runs write to overlays.
#[derive(Clone, Debug)]
pub struct Base {
    /// The folder that contains the base image.
    pub folder: PathBuf,
    /// The system disk.
    pub image: PathBuf,
    /// The files with the UEFI firmware's code and variables.
    pub uefi: Option<(PathBuf, PathBuf)>,
    /// The system name that the installed Windows reported.
    pub system: String,
    /// The accelerator used for the installation.
    pub accelerator: Option<Accelerator>,
}

impl Base {
    /// Returns the firmware for a virtual machine that runs an overlay, with its own copy of the
    /// variables.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::File`] if the variables cannot be copied.
    pub fn firmware(&self, folder: &Path) -> Result<Firmware> {
        let Some((code, variables)) = &self.uefi else {
            return Ok(Firmware::Bios);
        };
        let own = folder.join("variables.fd");
        fs::copy(variables, &own).map_err(file("copy", variables))?;
        Ok(Firmware::Uefi { code: code.clone(), variables: own })
    }
}

impl Installation {
    /// Returns the base image for this installation image and answer file, installing Windows if
    /// there is none.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Installation`] if the installation did not finish; the folder in the
    /// error contains the serial log and screenshots.
    pub fn base(&self, tell: &dyn Fn(&str)) -> Result<Base> {
        check_iso(&self.iso)?;
        fs::create_dir_all(&self.images).map_err(file("create", &self.images))?;
        let images = self.images.canonicalize().map_err(file("find", &self.images))?;
        let hash = hash(&self.iso, &images, tell)?;
        let version = self.answer.version()?;
        let name = format!("{}-{}", short(&hash), short(&version));
        let folder = images.join(name);
        fs::create_dir_all(&folder).map_err(file("create", &folder))?;
        let _lock = lock(&folder.join("lock"), tell)?;
        if let Some(base) = self.installed(&folder, tell)? {
            return Ok(base);
        }
        // The evaluation period starts before Setup runs.
        let begun = now();
        let (system, accelerator) = self.install_somehow(&folder, tell)?;
        let about = json!({
            "version": 1,
            "image": self.iso.display().to_string(),
            "sha256": hash,
            "answer": version,
            "windows": self.answer.windows.name(),
            "index": self.answer.index,
            "system": system,
            "accelerator": accelerator.name(),
            "installed": begun,
        });
        let path = folder.join("base.json");
        fs::write(&path, format!("{about:#}\n")).map_err(file("write", &path))?;
        self.installed(&folder, tell)?.ok_or_else(|| Error::Installation {
            reason: "the base image is missing".to_owned(),
            folder,
        })
    }

    /// Returns the base image in a folder, if the installation finished and Windows can still run
    /// without activation.
    fn installed(&self, folder: &Path, tell: &dyn Fn(&str)) -> Result<Option<Base>> {
        let image = folder.join("base.qcow2");
        let Ok(about) = fs::read(folder.join("base.json")) else {
            return Ok(None);
        };
        let about: Value = serde_json::from_slice(&about).unwrap_or_default();
        if !image.exists() {
            return Ok(None);
        }
        if ImageKind::of_image(&self.iso) == ImageKind::Evaluation {
            let installed = about["installed"].as_u64().unwrap_or_default();
            let age = Duration::from_secs(now().saturating_sub(installed));
            if age > EVALUATION {
                tell(&format!(
                    "The base image is {} days old; an evaluation edition without activation \
                     shuts down after 10 days. Installing it again",
                    age.as_secs() / (24 * 60 * 60)
                ));
                return Ok(None);
            }
        }
        let uefi = if self.answer.is_uefi {
            let (code, _) = qemu::find_uefi()?;
            Some((code, folder.join("variables.fd")))
        } else {
            None
        };
        Ok(Some(Base {
            folder: folder.to_owned(),
            image,
            uefi,
            system: about["system"].as_str().unwrap_or_default().to_owned(),
            accelerator: Accelerator::ALL
                .into_iter()
                .find(|one| about["accelerator"] == one.name()),
        }))
    }

    /// Installs Windows with the first accelerator that starts anything, and returns the name that
    /// the system reported.
    fn install_somehow(&self, folder: &Path, tell: &dyn Fn(&str)) -> Result<(String, Accelerator)> {
        let mut settings = self.settings.clone();
        let mut alternatives = self.alternatives.iter();
        loop {
            let accelerator = settings.accelerator;
            let next = alternatives.next();
            tell(&format!(
                "Installing {} ({}) into {}",
                self.answer.windows.title(),
                accelerator.name(),
                folder.display()
            ));
            let installed = self.install(&settings, next.is_some(), folder, tell);
            match (installed, next) {
                (Err(Error::SaidNothing { limit }), Some(next)) => {
                    tell(&format!(
                        "The guest did not start with {} within {} s; trying {}",
                        accelerator.name(),
                        limit.as_secs(),
                        next.name()
                    ));
                    settings.accelerator = *next;
                }
                (installed, _) => return Ok((installed?, accelerator)),
            }
        }
    }

    /// Installs Windows, and returns the name that the system reported. If `can_give_up` is true,
    /// fails early if nothing starts.
    fn install(
        &self,
        settings: &Settings,
        can_give_up: bool,
        folder: &Path,
        tell: &dyn Fn(&str),
    ) -> Result<String> {
        let path = |name: &str| folder.join(name);
        let (image, cd) = (path("installing.qcow2"), path("answer.iso"));
        for left in ["installing.qcow2", "base.json", "base.qcow2"] {
            // Files from an interrupted installation.
            let _ = fs::remove_file(path(left));
        }
        qemu::create_image(&settings.program, &image, self.disk)?;
        iso::write(&cd, "ANSWER", &self.answer.files()?)?;
        let firmware = if self.answer.is_uefi {
            let (code, variables) = qemu::find_uefi()?;
            let own = path("variables.fd");
            fs::copy(&variables, &own).map_err(file("copy", &variables))?;
            make_writable(&own)?;
            Firmware::Uefi { code, variables: own }
        } else {
            Firmware::Bios
        };
        let source = self.iso.canonicalize().map_err(file("find", &self.iso))?;
        let machine = Machine {
            settings: settings.clone(),
            firmware,
            // The firmware tries the empty disk first, then the CD; for Setup, the disk is disk 0.
            drives: vec![Drive::System(image.clone()), Drive::Cd(source), Drive::Cd(cd.clone())],
            display: Display::None,
        };
        let slow = settings.accelerator.slowness();
        let minutes = |count: u64| Duration::from_secs(count * 60);
        let limits = Limits {
            silence: self.silence.unwrap_or_else(|| minutes(15) * slow),
            // Windows PE reports within a minute or two. Without a serial port, disk writes show
            // that it is running.
            first_message: can_give_up.then(|| self.silence.unwrap_or_else(|| minutes(10) * slow)),
            total: self.total.unwrap_or_else(|| minutes(150) * slow),
            after_interrupt: self.silence.unwrap_or_else(|| minutes(3)),
            restarts: RESTARTS,
            do_writes_count: true,
            // The CD's UEFI boot loader waits for a key press before it starts Setup.
            press_keys: if self.answer.is_uefi {
                Duration::from_secs(30) * slow.min(3)
            } else {
                Duration::ZERO
            },
        };
        let mut steps = Steps { tell, start: Instant::now(), system: None, errors: Vec::new() };
        let running = machine.start(&path("serial.log"))?;
        let ending = watch::watch(running, &limits, folder, &mut steps)?;
        let failed = |reason: String| Error::Installation { reason, folder: folder.to_owned() };
        if let Some(error) = steps.errors.first() {
            return Err(failed(format!("Windows reported: {error}")));
        }
        if let Ending::SaidNothing { limit } = ending {
            return Err(Error::SaidNothing { limit });
        }
        let Some(system) = steps.system else {
            return Err(failed(ending.to_string()));
        };
        if ending != Ending::PoweredOff {
            return Err(failed(ending.to_string()));
        }
        let base = path("base.qcow2");
        fs::rename(&image, &base).map_err(file("rename", &image))?;
        let _ = fs::remove_file(&cd);
        Ok(system)
    }
}

/// Reports an installation's steps.
struct Steps<'a> {
    tell: &'a dyn Fn(&str),
    start: Instant,
    system: Option<String>,
    errors: Vec<String>,
}

impl Observer for Steps<'_> {
    fn see(&mut self, seen: &Seen) {
        let text = match seen {
            Seen::Message(Message::Setup(step)) => step.clone(),
            Seen::Message(Message::Installed(system)) => {
                self.system = Some(system.clone());
                format!("installed {system}")
            }
            Seen::Message(Message::Error(error)) => {
                self.errors.push(error.clone());
                format!("error: {error}")
            }
            Seen::Message(_) => return,
            Seen::Restart => "the virtual machine restarts".to_owned(),
            Seen::Crash(_) => "Windows crashed".to_owned(),
            Seen::Hang(silent) => format!("no progress for {} s", silent.as_secs()),
        };
        let time = self.start.elapsed().as_secs();
        (self.tell)(&format!("{:>3}:{:02} {text}", time / 60, time % 60));
    }
}

/// Fails unless a file is a CD image.
fn check_iso(path: &Path) -> Result<()> {
    /// The offset of the first volume descriptor's identifier.
    const PLACE: u64 = 0x8001;
    let mut image = File::open(path).map_err(file("open", path))?;
    let mut identifier = [0; 5];
    let found = image.seek(SeekFrom::Start(PLACE)).and_then(|_| image.read_exact(&mut identifier));
    // UDF-only images have BEA01 at this offset.
    if found.is_err() || !(&identifier == b"CD001" || &identifier == b"BEA01") {
        return Err(Error::Plan(format!(
            "{} is not a CD image; `--iso` expects a Windows installation image, such as one from \
             Microsoft's Evaluation Center",
            path.display()
        )));
    }
    Ok(())
}

fn make_writable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(file("change", path))
}

/// Returns the number of seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Returns the SHA-256 of an installation image. Images are several gigabytes large, so the hash is
/// cached for later runs, keyed by the file's path, size and time.
fn hash(image: &Path, folder: &Path, tell: &dyn Fn(&str)) -> Result<String> {
    let known = folder.join("hashes.json");
    let place = image.canonicalize().map_err(file("find", image))?;
    let data = fs::metadata(image).map_err(file("read", image))?;
    let time = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let key = format!("{} {} {}", place.display(), data.len(), time.unwrap_or_default().as_nanos());
    let read = fs::read(&known).ok();
    let mut hashes: Value =
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_else(|| json!({}));
    if let Some(hash) = hashes[&key].as_str() {
        return Ok(hash.to_owned());
    }
    tell(&format!("Hashing {}", image.display()));
    let mut input = File::open(image).map_err(file("open", image))?;
    let mut hash = Sha256::new();
    let mut bytes = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        let count = input.read(&mut bytes).map_err(file("read", image))?;
        if count == 0 {
            break;
        }
        hash.update(bytes.get(..count).unwrap_or_default());
    }
    let hash = hex(&hash.finalize());
    hashes[&key] = json!(hash);
    // If this fails, the next run computes the hash again.
    let _ = fs::write(&known, format!("{hashes:#}\n"));
    Ok(hash)
}

/// Locks a base image's folder against other processes.
fn lock(path: &Path, tell: &dyn Fn(&str)) -> Result<File> {
    const PATIENCE: Duration = Duration::from_hours(3);
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(file("open", path))?;
    let start = Instant::now();
    let mut is_told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(file("lock", path)(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        interrupt::check()?;
        if !is_told {
            tell("Waiting for another process that installs the same image");
            is_told = true;
        }
        if start.elapsed() > PATIENCE {
            return Err(Error::Busy { path: path.to_owned(), waited: PATIENCE });
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the contents of the answer file for an image, with defaults for missing values.
///
/// # Errors
///
/// Fails with [`Error::UnknownWindows`] if neither the file name nor the caller specifies the
/// system, and with the errors of [`product_key`].
pub fn answer(
    iso: &Path,
    windows: Option<Windows>,
    index: Option<u32>,
    language: &str,
    is_uefi: bool,
    key: Option<&str>,
) -> Result<Answer> {
    let windows = crate::answer::windows_of(iso, windows)?;
    let index = index.unwrap_or_else(|| windows.default_index(ImageKind::of_image(iso)));
    Ok(Answer {
        windows,
        index,
        language: language.to_owned(),
        is_uefi,
        product_key: product_key(iso, windows, index, key)?,
    })
}

#[cfg(test)]
mod tests;
