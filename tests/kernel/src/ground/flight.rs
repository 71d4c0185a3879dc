//! The flight recorder: what a process that runs a driver did last, in memory that another process
//! shares.
//!
//! A driver that corrupts its process can end it in any way. The process that watches it reads here
//! which routine the driver called last, from where, and in which step, and the events and the output
//! that the process had not passed on.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::spool::{Entry, Spool};

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

/// The size of the log of events and output in words: more than a session's buffers hold by default.
const SPOOL_WORDS: usize = 1 << 19;

/// The kinds of the entries of the log.
const EVENT: u32 = 1;
const OUTPUT: u32 = 2;

/// Lets one thread at a time append to the log.
static APPENDING: Mutex<()> = Mutex::new(());

/// A flight recorder. All zeros are an empty one.
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
    /// The number of bytes of the driver's output that the process has shown.
    shown: AtomicU64,
    spool: Spool<SPOOL_WORDS>,
}

/// An event that a session has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpooledEvent {
    /// The session's number.
    pub session: u16,
    /// The processor whose buffer the event is in.
    pub processor: u16,
    /// The event's record, as it is in the buffer.
    pub record: Vec<u8>,
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
    /// The most recent events, in the order of their writes. The sessions' files may have some of
    /// them.
    pub events: Vec<SpooledEvent>,
    /// What the driver printed and the process has not shown.
    pub output: String,
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

/// Records an event that a session has put in a processor's buffer.
pub fn note_event(session: u16, processor: u16, record: &[u8]) {
    let tag = u64::from(session) | u64::from(processor) << 16;
    append(EVENT, tag, record);
}

/// Records what a driver printed after `before` bytes of output.
pub fn note_output(before: u64, text: &str) {
    append(OUTPUT, before, text.as_bytes());
}

fn append(kind: u32, tag: u64, bytes: &[u8]) {
    if let Some(flight) = current() {
        let _one_at_a_time = APPENDING.lock();
        flight.spool.append(kind, tag, bytes);
    }
}

/// Records that the first `bytes` bytes of the driver's output are shown.
pub fn note_shown(bytes: u64) {
    if let Some(flight) = current() {
        flight.shown.store(bytes, Ordering::Relaxed);
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
        let shown = self.shown.load(Ordering::Relaxed);
        let mut events = Vec::new();
        let mut output = Vec::new();
        for Entry { kind, tag, bytes } in self.spool.entries() {
            match kind {
                EVENT => events.push(SpooledEvent {
                    session: low_16_bits(tag),
                    processor: low_16_bits(tag >> 16),
                    record: bytes,
                }),
                OUTPUT => {
                    let skipped = usize::try_from(shown.saturating_sub(tag)).unwrap_or(usize::MAX);
                    output.extend(bytes.into_iter().skip(skipped));
                }
                // The driver corrupted the log.
                _ => {}
            }
        }
        Recorded {
            events,
            output: String::from_utf8_lossy(&output).into_owned(),
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

/// Returns the low 16 bits of a number.
const fn low_16_bits(number: u64) -> u16 {
    let [low, high, ..] = number.to_le_bytes();
    u16::from_le_bytes([low, high])
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
