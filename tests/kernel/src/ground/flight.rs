//! The flight recorder: what a process that runs a driver did last, in memory that another process
//! shares.
//!
//! A driver that corrupts its process can end it in any way. The process that watches it reads here
//! which routine the driver called last, from where, and in which step.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Text of a fixed size, which one process writes and another reads.
#[derive(Default)]
#[repr(C)]
struct Text<const WORDS: usize>(Words<WORDS>);

#[repr(C)]
struct Words<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Default for Words<WORDS> {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }
}

impl<const WORDS: usize> Text<WORDS> {
    /// Stores as much of a text as there is room for.
    fn store(&self, text: &str) {
        let mut chunks = text.as_bytes().chunks(8);
        for word in &self.0.0 {
            let mut bytes = [0; 8];
            if let Some(chunk) = chunks.next() {
                bytes[..chunk.len()].copy_from_slice(chunk);
            }
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    }

    fn load(&self) -> String {
        let words = self.0.0.iter();
        let bytes: Vec<u8> = words
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A flight recorder. All zeros are an empty one.
#[derive(Default)]
#[repr(C)]
pub struct Flight {
    is_finished: AtomicBool,
    /// The number of calls and steps, by which a process shows that it goes on.
    progress: AtomicU64,
    calls: AtomicU64,
    return_address: AtomicU64,
    fault: AtomicU64,
    image: AtomicU64,
    routine: Text<8>,
    step: Text<32>,
    /// The symbol file that is being read, or empty.
    symbols: Text<32>,
}

/// The state of a recorder, as the watching process reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The number of calls of the kernel.
    pub calls: u64,
    /// The name of the routine that the driver called last, and the return address.
    pub last_call: Option<(String, u64)>,
    /// The address of the instruction of a fault that nobody handled.
    pub fault: Option<u64>,
    /// The address of the driver's image.
    pub image: u64,
    /// The step that the process was in.
    pub step: String,
    /// The symbol file that the process was reading.
    pub symbols: Option<String>,
}

/// This process's recorder, if another process watches it.
static CURRENT: AtomicPtr<Flight> = AtomicPtr::new(std::ptr::null_mut());

/// Makes a recorder this process's.
pub fn install(flight: &'static Flight) {
    CURRENT.store(std::ptr::from_ref(flight).cast_mut(), Ordering::Release);
}

fn current() -> Option<&'static Flight> {
    let flight = CURRENT.load(Ordering::Acquire);
    // SAFETY: the pointer is null or that of `install`, which lives as long as the process.
    unsafe { flight.as_ref() }
}

/// Records a driver's call.
pub fn note_call(routine: &str, return_address: u64) {
    if let Some(flight) = current() {
        flight.routine.store(routine);
        flight
            .return_address
            .store(return_address, Ordering::Relaxed);
        flight.calls.fetch_add(1, Ordering::Relaxed);
        flight.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records a step.
pub fn note_step(step: &str) {
    if let Some(flight) = current() {
        flight.step.store(step);
        flight.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records that `body` reads a symbol file.
pub fn reading_symbols<R>(file: &str, body: impl FnOnce() -> R) -> R {
    if let Some(flight) = current() {
        flight.symbols.store(file);
    }
    let result = body();
    if let Some(flight) = current() {
        flight.symbols.store("");
    }
    result
}

/// Records the address that a driver's image is loaded at.
pub fn note_image(base: u64) {
    if let Some(flight) = current() {
        flight.image.store(base, Ordering::Relaxed);
    }
}

/// Records the instruction of a fault that ends the process. Safe in a signal handler.
pub fn note_fault(instruction: u64) {
    if let Some(flight) = current() {
        flight.fault.store(instruction, Ordering::Relaxed);
    }
}

impl Flight {
    /// Records that the process has done its work and is about to end.
    pub fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Returns whether the process has done its work.
    pub fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    /// Returns the number of calls and steps.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Returns the state.
    pub fn recorded(&self) -> Recorded {
        let calls = self.calls.load(Ordering::Relaxed);
        let fault = self.fault.load(Ordering::Relaxed);
        Recorded {
            calls,
            last_call: (calls > 0).then(|| {
                let address = self.return_address.load(Ordering::Relaxed);
                (self.routine.load(), address)
            }),
            fault: (fault != 0).then_some(fault),
            image: self.image.load(Ordering::Relaxed),
            step: self.step.load(),
            symbols: Some(self.symbols.load()).filter(|file| !file.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        let text = Text::<2>::default();
        text.store("WdfSpinLockAcquire");
        assert_eq!(text.load(), "WdfSpinLockAcqui");
        text.store("short");
        assert_eq!(text.load(), "short");
    }
}
