//! The flight recorder: the last actions of a process that runs a driver, in memory shared with another
//! process.
//!
//! A driver that corrupts its process can end it in any way. The parent process then reads from the
//! recorder which routine the driver called last, the top of the driver's stack, the current step,
//! and the events and output that the process had not passed on.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{
    spool::{Entry, Spool},
    unwind::Registers,
};

/// A string of limited size that one process writes and another reads.
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
    /// Stores the part of the string that fits.
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

/// The size of the event log in words: more than a session's buffers hold by default.
const EVENT_WORDS: usize = 1 << 19;

/// The size of the output log in words.
const OUTPUT_WORDS: usize = 1 << 17;

/// The number of words of the driver's stack that are recorded for the last call.
const STACK_WORDS: usize = 1 << 10;

/// The number of sessions whose losses are recorded: the sessions with the lowest numbers.
const SESSIONS: usize = 64;

/// The number of words in the bit set of system calls. x86-64 Linux has fewer than 500 system calls.
const REFUSED_WORDS: usize = 8;

/// Ensures that only one thread at a time appends to a log.
static APPENDING: Mutex<()> = Mutex::new(());

/// A flight recorder. All zeros represent an empty recorder.
#[repr(C)]
pub struct Flight {
    is_finished: AtomicBool,
    /// The number of output writes that have not returned.
    writes: AtomicU64,
    /// A count that increases while the process works.
    progress: AtomicU64,
    calls: AtomicU64,
    fault: AtomicU64,
    image: AtomicU64,
    routine: Text<8>,
    caller: Caller,
    step: Text<32>,
    /// The path of the symbol file that is being read, or an empty string.
    symbols: Text<32>,
    /// The number of bytes of the driver's output.
    printed: AtomicU64,
    /// The number of bytes of the driver's output that the process has shown.
    shown: AtomicU64,
    /// The number of events that the process has shown.
    shown_events: AtomicU64,
    /// One bit per system call number that the confinement refused. The last bit stands for all higher
    /// numbers.
    refused: [AtomicU64; REFUSED_WORDS],
    sessions: [Counts; SESSIONS],
    events: Spool<EVENT_WORDS>,
    output: Spool<OUTPUT_WORDS>,
}

/// The caller of the last routine: its registers after the call, and the top of its stack.
#[repr(C)]
struct Caller {
    instruction: AtomicU64,
    registers: [AtomicU64; 16],
    /// The number of stack words that are recorded.
    kept: AtomicU64,
    stack: [AtomicU64; STACK_WORDS],
}

/// The counters of a session.
#[repr(C)]
struct Counts {
    recorded: AtomicU64,
    events_lost: AtomicU32,
    buffers_lost: AtomicU32,
}

/// An event that a session has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpooledEvent {
    /// The session's number.
    pub session: u16,
    /// The processor whose buffer the event is in.
    pub processor: u16,
    /// The event's record, as stored in the buffer.
    pub record: Vec<u8>,
}

/// A session's counters at the end of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// The number of events that were written to buffers.
    pub recorded: u64,
    /// The number of events that were not recorded.
    pub events_lost: u32,
    /// The number of buffers that were not written.
    pub buffers_lost: u32,
}

/// A driver's call to a kernel routine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastCall {
    /// The routine's name.
    pub routine: String,
    /// The driver's registers after the call.
    pub caller: Registers,
    /// The words of the driver's stack, from the stack pointer in `caller`.
    pub stack: Vec<u64>,
}

impl LastCall {
    /// Returns the word at an address of the driver's stack, if it was recorded.
    pub fn word(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.caller.rsp())?;
        let index = usize::try_from(offset / 8).ok()?;
        let word = self.stack.get(index).copied();
        word.filter(|_| offset.is_multiple_of(8))
    }
}

/// The state of a recorder, as read by the parent process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The number of calls to the kernel.
    pub calls: u64,
    /// The last call.
    pub last_call: Option<LastCall>,
    /// The address of the instruction that caused an unhandled fault.
    pub fault: Option<u64>,
    /// The address of the driver's image.
    pub image: u64,
    /// The step that the process was executing.
    pub step: String,
    /// The symbol file that the process was reading.
    pub symbols: Option<String>,
    /// The number of events that the process has shown.
    pub shown_events: u64,
    /// The most recent events, in the order in which they were written. The sessions' files may already
    /// contain some of them.
    pub events: Vec<SpooledEvent>,
    /// The sessions' counters, ordered by session number.
    pub sessions: Vec<SessionCounts>,
    /// The numbers of the system calls that the confinement refused, except those that the driver made.
    pub refused: Vec<u64>,
    /// The output that the driver printed and the process has not shown.
    pub output: String,
    /// The number of bytes of the output that are neither shown nor in `output`.
    pub output_lost: u64,
}

/// This process's recorder, if a parent process reads it.
static CURRENT: AtomicPtr<Flight> = AtomicPtr::new(std::ptr::null_mut());

/// Installs a recorder for this process.
pub fn install(flight: &'static Flight) {
    CURRENT.store(std::ptr::from_ref(flight).cast_mut(), Ordering::Release);
}

fn current() -> Option<&'static Flight> {
    let flight = CURRENT.load(Ordering::Acquire);
    // SAFETY: the pointer is null or was passed to `install`, which lives as long as the process.
    unsafe { flight.as_ref() }
}

/// Records a driver's call. `caller` returns the driver's registers after the call, and the address at
/// the top of its stack.
///
/// # Safety
///
/// All words between the stack pointer and the address that `caller` returns must be readable.
pub unsafe fn note_call(routine: &str, caller: impl FnOnce() -> (Registers, u64)) {
    if let Some(flight) = current() {
        let (caller, top) = caller();
        flight.routine.store(routine);
        // SAFETY: the caller guarantees it.
        unsafe { flight.caller.store(&caller, top) };
        flight.calls.fetch_add(1, Ordering::Relaxed);
        flight.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records a step.
pub fn note_step(step: &str) {
    if let Some(flight) = current() {
        flight.step.store(step);
    }
    note_progress();
}

/// Records that the process made progress.
pub fn note_progress() {
    if let Some(flight) = current() {
        flight.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records that `body` writes to the output. The write may block until the reader continues.
pub fn writing<R>(body: impl FnOnce() -> R) -> R {
    let Some(flight) = current() else {
        return body();
    };
    flight.writes.fetch_add(1, Ordering::Relaxed);
    let result = body();
    flight.progress.fetch_add(1, Ordering::Relaxed);
    flight.writes.fetch_sub(1, Ordering::Relaxed);
    result
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
    note_progress();
    result
}

/// Records the load address of a driver's image.
pub fn note_image(base: u64) {
    if let Some(flight) = current() {
        flight.image.store(base, Ordering::Relaxed);
    }
}

/// Records an event that a session wrote to a processor's buffer.
pub fn note_event(session: u16, processor: u16, record: &[u8]) {
    if let Some(flight) = current() {
        flight.note_event(session, processor, record);
    }
}

/// Records the losses of a session since its start.
pub fn note_losses(session: u16, events_lost: u32, buffers_lost: u32) {
    if let Some(counts) = current().and_then(|flight| flight.session(session)) {
        // Another thread may already have recorded a higher count.
        counts.events_lost.fetch_max(events_lost, Ordering::Relaxed);
        counts.buffers_lost.fetch_max(buffers_lost, Ordering::Relaxed);
    }
}

/// Records the string that a driver printed after `before` bytes of output.
pub fn note_output(before: u64, text: &str) {
    if let Some(flight) = current() {
        flight.note_output(before, text);
    }
}

/// Records that the process has shown the first `bytes` bytes of the driver's output.
pub fn note_shown(bytes: u64) {
    if let Some(flight) = current() {
        flight.shown.store(bytes, Ordering::Relaxed);
    }
}

/// Records that the process has shown another event.
pub fn note_shown_event() {
    if let Some(flight) = current() {
        flight.shown_events.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records the instruction of a fault that ends the process. Safe to call in a signal handler.
pub fn note_fault(instruction: u64) {
    if let Some(flight) = current() {
        flight.fault.store(instruction, Ordering::Relaxed);
    }
}

/// Records a system call that the confinement refused. Safe to call in a signal handler.
pub fn note_refused(number: u64) {
    if let Some(flight) = current() {
        flight.note_refused(number);
    }
}

/// Returns the numbers of the system calls that the confinement refused in this process so far.
pub fn refused() -> Vec<u64> {
    current().map_or_else(Vec::new, Flight::refused)
}

impl Caller {
    /// Stores the registers, and as many stack words below `top` as fit.
    ///
    /// # Safety
    ///
    /// The words from the registers' stack pointer to `top` must be readable.
    unsafe fn store(&self, registers: &Registers, top: u64) {
        self.instruction.store(registers.rip, Ordering::Relaxed);
        for (to, register) in self.registers.iter().zip(registers.general) {
            to.store(register, Ordering::Relaxed);
        }
        let from = registers.rsp();
        let mut kept = 0;
        for (to, address) in self.stack.iter().zip((from..top).step_by(8)) {
            // SAFETY: the caller guarantees it.
            let word = unsafe { (address as *const u64).read_volatile() };
            to.store(word, Ordering::Relaxed);
            kept += 1;
        }
        self.kept.store(kept, Ordering::Relaxed);
    }

    fn load(&self) -> (Registers, Vec<u64>) {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let kept = usize::try_from(load(&self.kept)).unwrap_or(usize::MAX);
        let mut registers = Registers { rip: load(&self.instruction), ..Registers::default() };
        for (to, from) in registers.general.iter_mut().zip(&self.registers) {
            *to = load(from);
        }
        (registers, self.stack.iter().take(kept).map(load).collect())
    }
}

impl Flight {
    /// Records that the process has finished its work and is about to end.
    pub fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Returns whether the process has finished its work.
    pub fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    /// Returns a count that increases while the process works.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Returns whether the process is writing to the output, so that the output's reader may be
    /// blocking it.
    pub fn is_writing(&self) -> bool {
        self.writes.load(Ordering::Relaxed) != 0
    }

    fn session(&self, number: u16) -> Option<&Counts> {
        self.sessions.get(usize::from(number))
    }

    fn note_event(&self, session: u16, processor: u16, record: &[u8]) {
        let tag = u64::from(session) | u64::from(processor) << 16;
        let _one_at_a_time = APPENDING.lock();
        self.events.append(tag, record);
        if let Some(counts) = self.session(session) {
            counts.recorded.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note_output(&self, before: u64, text: &str) {
        let _one_at_a_time = APPENDING.lock();
        self.output.append(before, text.as_bytes());
        let after = before.saturating_add(text.len() as u64);
        self.printed.store(after, Ordering::Relaxed);
    }

    fn note_refused(&self, number: u64) {
        let last = REFUSED_WORDS as u64 * 64 - 1;
        let number = number.min(last);
        if let Some(word) = self.refused.get(usize::try_from(number / 64).unwrap_or(usize::MAX)) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }

    fn refused(&self) -> Vec<u64> {
        let words = self.refused.iter().map(|word| word.load(Ordering::Relaxed));
        let bits = words.zip(0_u64..).flat_map(|(word, index)| {
            (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| index * 64 + bit)
        });
        bits.collect()
    }

    /// Returns the output that the process has not shown, and the number of lost bytes.
    fn unshown_output(&self) -> (String, u64) {
        let mut shown = self.shown.load(Ordering::Relaxed);
        let mut lost = 0_u64;
        let mut output = Vec::new();
        for Entry { tag, bytes } in self.output.entries() {
            // The entries between this entry and the previous one were overwritten.
            lost = lost.saturating_add(tag.saturating_sub(shown));
            let skipped = usize::try_from(shown.saturating_sub(tag)).unwrap_or(usize::MAX);
            shown = shown.max(tag.saturating_add(bytes.len() as u64));
            output.extend(bytes.into_iter().skip(skipped));
        }
        let after = self.printed.load(Ordering::Relaxed).saturating_sub(shown);
        let output = String::from_utf8_lossy(&output).into_owned();
        (output, lost.saturating_add(after))
    }

    /// Returns the state.
    pub fn recorded(&self) -> Recorded {
        let calls = self.calls.load(Ordering::Relaxed);
        let fault = self.fault.load(Ordering::Relaxed);
        let events = self.events.entries().into_iter();
        let (output, output_lost) = self.unshown_output();
        Recorded {
            calls,
            last_call: (calls > 0).then(|| {
                let (caller, stack) = self.caller.load();
                LastCall { routine: self.routine.load(), caller, stack }
            }),
            fault: (fault != 0).then_some(fault),
            image: self.image.load(Ordering::Relaxed),
            step: self.step.load(),
            symbols: Some(self.symbols.load()).filter(|file| !file.is_empty()),
            shown_events: self.shown_events.load(Ordering::Relaxed),
            refused: self.refused(),
            events: events
                .map(|Entry { tag, bytes }| SpooledEvent {
                    session: low_16_bits(tag),
                    processor: low_16_bits(tag >> 16),
                    record: bytes,
                })
                .collect(),
            sessions: self.sessions.iter().map(Counts::load).collect(),
            output,
            output_lost,
        }
    }
}

impl Counts {
    fn load(&self) -> SessionCounts {
        SessionCounts {
            recorded: self.recorded.load(Ordering::Relaxed),
            events_lost: self.events_lost.load(Ordering::Relaxed),
            buffers_lost: self.buffers_lost.load(Ordering::Relaxed),
        }
    }
}

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

    fn empty() -> Box<Flight> {
        // SAFETY: all zeros are an empty recorder.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn output_that_was_shown_is_not_returned_again() {
        let flight = empty();
        flight.note_output(0, "one\ntw");
        flight.note_output(6, "o\nthree");
        // The process shows only whole lines.
        for (shown, expected) in [(0, "one\ntwo\nthree"), (4, "two\nthree"), (8, "three"), (13, "")]
        {
            flight.shown.store(shown, Ordering::Relaxed);
            assert_eq!(flight.unshown_output(), (expected.to_owned(), 0), "{shown}");
        }
    }

    #[test]
    fn output_that_is_overwritten_before_it_was_shown_is_counted() {
        let flight = empty();
        let mut before = 0;
        let piece = "x".repeat(1000);
        for _ in 0..3000 {
            flight.note_output(before, &piece);
            before += 1000;
        }
        let (kept, lost) = flight.unshown_output();
        assert_eq!(kept.len() as u64 + lost, before);
        assert!(lost > 0 && kept.len() > 900 << 10, "{lost}");
        // Output that was shown is not lost, even though it is overwritten.
        flight.shown.store(lost + 10, Ordering::Relaxed);
        let (rest, lost) = flight.unshown_output();
        assert_eq!((rest.len(), lost), (kept.len() - 10, 0));
        // The string is larger than the log.
        flight.note_output(before, &"y".repeat(OUTPUT_WORDS * 8));
        assert_eq!(flight.unshown_output().1, (OUTPUT_WORDS * 8) as u64);
    }

    #[test]
    fn refused_calls_are_kept_by_their_numbers() {
        let flight = empty();
        for number in [59, 0, 425, 59, u64::MAX] {
            flight.note_refused(number);
        }
        assert_eq!(flight.recorded().refused, [0, 59, 425, 511]);
    }

    #[test]
    fn events_do_not_displace_output() {
        let flight = empty();
        flight.note_output(0, "printed first");
        let record = vec![7; 60_000];
        for _ in 0..200 {
            flight.note_event(3, 1, &record);
        }
        let recorded = flight.recorded();
        assert_eq!(recorded.output, "printed first");
        assert_eq!(recorded.sessions[3].recorded, 200);
        assert!(recorded.events.len() < 100);
        assert_eq!((recorded.events[0].session, recorded.events[0].processor), (3, 1));
    }

    #[test]
    fn the_top_of_the_callers_stack_is_kept() {
        let flight = empty();
        let stack: Vec<u64> = (0..2000).collect();
        let from = stack.as_ptr().addr() as u64;
        let mut caller = Registers { rip: 77, ..Registers::default() };
        for (words, kept) in [(2000, STACK_WORDS), (3, 3), (0, 0)] {
            caller.set_rsp(from);
            // SAFETY: the words belong to the vector.
            unsafe { flight.caller.store(&caller, from + 8 * words) };
            flight.calls.store(1, Ordering::Relaxed);
            let call = flight.recorded().last_call.unwrap();
            assert_eq!((call.caller, call.stack.len()), (caller, kept));
            assert_eq!(call.word(from + 16), (kept > 2).then_some(2));
            assert_eq!(call.word(from - 8), None);
            assert_eq!(call.word(from + 4), None);
        }
    }
}
