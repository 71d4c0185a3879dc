//! Finds an accelerator that can run guests on this machine.
//!
//! `/dev/kvm` can exist but be unusable because of its permissions, the host's own hypervisor or
//! the processor. This module therefore runs a guest of a few instructions.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{
    error::{Error, Result, file},
    interrupt,
    qemu::{Accelerator, Display, Drive, Firmware, Machine, Settings},
};

/// The time limit for the guest, which takes one second under TCG.
const PATIENCE: Duration = Duration::from_secs(30);

/// The text that the guest writes to its serial port.
const WORD: &[u8] = b"etw-vm runs\n";

/// Returns a boot sector that waits for a timer interrupt, switches to 64-bit mode, writes [`WORD`]
/// to COM1 and halts.
///
/// Real mode alone is not a sufficient test, because some hosts run nothing beyond it.
fn boot_sector() -> Vec<u8> {
    let mut code = vec![
        0xFC, // cld
        0x31, 0xC0, // xor ax, ax
        0x8E, 0xD8, // mov ds, ax
        0x8E, 0xC0, // mov es, ax
        0x8E, 0xD0, // mov ss, ax
        0xBC, 0x00, 0x7C, // mov sp, 0x7C00
        0xFB, // sti
        0xA1, 0x6C, 0x04, // mov ax, [0x46C]: the BIOS's count of timer interrupts
        0xF4, // tick: hlt
        0x3B, 0x06, 0x6C, 0x04, // cmp ax, [0x46C]
        0x74, 0xF9, // je tick
        0xFA, // cli
        0xBF, 0x00, 0x10, // mov di, 0x1000: page tables
        0xB9, 0x00, 0x18, // mov cx, 0x1800
        0x31, 0xC0, // xor ax, ax
        0xF3, 0xAB, // rep stosw
        0xC7, 0x06, 0x00, 0x10, 0x03, 0x20, // mov word [0x1000], 0x2003
        0xC7, 0x06, 0x00, 0x20, 0x03, 0x30, // mov word [0x2000], 0x3003
        0xC7, 0x06, 0x00, 0x30, 0x83, 0x00, // mov word [0x3000], 0x83: the first 2 MiB
        0x0F, 0x20, 0xE0, // mov eax, cr4
        0x0C, 0x20, // or al, 0x20: PAE
        0x0F, 0x22, 0xE0, // mov cr4, eax
        0x66, 0xB8, 0x00, 0x10, 0x00, 0x00, // mov eax, 0x1000
        0x0F, 0x22, 0xD8, // mov cr3, eax
        0x66, 0xB9, 0x80, 0x00, 0x00, 0xC0, // mov ecx, 0xC0000080: EFER
        0x0F, 0x32, // rdmsr
        0x80, 0xCC, 0x01, // or ah, 1: LME
        0x0F, 0x30, // wrmsr
        0x0F, 0x01, 0x16, 0x90, 0x7C, // lgdt [0x7C90]
        0x0F, 0x20, 0xC0, // mov eax, cr0
        0x66, 0x0D, 0x01, 0x00, 0x00, 0x80, // or eax, 0x80000001: paging and protection
        0x0F, 0x22, 0xC0, // mov cr0, eax
        0xEA, 0x68, 0x7C, 0x08, 0x00, // jmp 8:0x7C68
        0x48, 0x8D, 0x35, 0x27, 0x00, 0x00, 0x00, // lea rsi, [word]
        0x66, 0xBA, 0xF8, 0x03, // mov dx, 0x3F8
        0xB9, 0x0C, 0x00, 0x00, 0x00, // mov ecx, 12
        0xAC, // next: lodsb
        0xEE, // out dx, al
        0xE2, 0xFC, // loop next
        0xFA, // cli
        0xF4, // halt: hlt
        0xEB, 0xFD, // jmp halt
        0, 0, 0, 0, 0, 0, 0, 0, // descriptors: a null descriptor,
        0, 0, 0, 0, 0, 0x9A, 0x20, 0, // and 64-bit code
        0x0F, 0x00, 0x80, 0x7C, 0x00, 0x00, // the table's limit and address
    ];
    code.extend(WORD);
    code.resize(510, 0);
    code.extend([0x55, 0xAA]);
    code
}

/// Returns the first accelerator that runs a guest.
///
/// # Errors
///
/// Fails with [`Error::NoAccelerator`], which contains each accelerator's result, or with
/// [`Error::Interrupted`] if the user interrupted the command.
pub fn find(program: &Path) -> Result<Accelerator> {
    let mut tried = String::new();
    for accelerator in Accelerator::ALL {
        if accelerator != Accelerator::Tcg && !Path::new("/dev/kvm").exists() {
            let _ = writeln!(tried, "- {}: /dev/kvm does not exist", accelerator.name());
            continue;
        }
        match runs(program, accelerator) {
            Ok(()) => return Ok(accelerator),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                let _ = writeln!(tried, "- {}: {error}", accelerator.name());
            }
        }
    }
    Err(Error::NoAccelerator { tried })
}

/// Fails unless the guest runs with an accelerator.
fn runs(program: &Path, accelerator: Accelerator) -> Result<()> {
    let folder = tempfile::tempdir().map_err(file("create a folder in", &std::env::temp_dir()))?;
    let disk = folder.path().join("boot.img");
    let mut sectors = boot_sector();
    sectors.resize(1 << 20, 0);
    fs::write(&disk, sectors).map_err(file("write", &disk))?;
    let machine = Machine {
        settings: Settings {
            program: program.to_owned(),
            accelerator,
            processors: 1,
            memory: 64,
            extra: Vec::new(),
        },
        firmware: Firmware::Bios,
        drives: vec![Drive::Raw(disk)],
        display: Display::None,
    };
    let serial = folder.path().join("serial.log");
    let mut running = machine.start(&serial)?;
    let until = Instant::now() + PATIENCE;
    let word = String::from_utf8_lossy(WORD);
    let refused = |reason: String| Error::Control { command: "cont".to_owned(), reason };
    loop {
        interrupt::check()?;
        if running.lines()?.iter().any(|line| line.contains(word.trim_end())) {
            return running.quit();
        }
        if let Some(status) = running.ended() {
            return Err(refused(format!("QEMU ended ({status}): {}", running.output())));
        }
        if Instant::now() > until {
            return Err(refused(format!(
                "the guest wrote nothing within {} s",
                PATIENCE.as_secs()
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
}
