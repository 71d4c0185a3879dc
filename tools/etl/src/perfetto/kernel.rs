//! The timeline forms of kernel events.

use super::lanes::Lanes;
use super::schema::{etw, sample};
use super::wire::Message;
use etl_file::Decoded;
use etl_file::decode::{Kind, Value};

/// The maximum number of processors in Perfetto.
const MAX_PROCESSORS: u16 = 1024;
/// The lowest address of kernel code in 64-bit Windows.
const KERNEL_SPACE: u64 = 0xFFFF_8000_0000_0000;
/// Code below this address belongs to a process, in every version of Windows.
const USER_SPACE: u64 = 0x8000_0000;

/// The file operations in Perfetto's schema, which correspond to the classes `FileIo_Create`,
/// `FileIo_ReadWrite` and so on: hooks, message number, and the names of the consecutively numbered
/// fields.
const FILE_OPERATIONS: [(&[u16], u32, &str); 7] = [
    (
        &[0x0440],
        etw::FILE_IO_CREATE,
        "IrpPtr FileObject TTID CreateOptions FileAttributes ShareAccess OpenPath",
    ),
    (
        &[0x0443, 0x0444],
        etw::FILE_IO_READ_WRITE,
        "Offset IrpPtr FileObject FileKey TTID IoSize IoFlags Opcode",
    ),
    (&[0x0441, 0x0442, 0x0449], etw::FILE_IO_SIMPLE_OP, "IrpPtr FileObject FileKey TTID Opcode"),
    (
        &[0x0445, 0x0446, 0x0447, 0x044A, 0x044B],
        etw::FILE_IO_INFO,
        "IrpPtr FileObject FileKey ExtraInfo TTID InfoClass Opcode",
    ),
    (
        &[0x0448, 0x044D],
        etw::FILE_IO_DIR_ENUM,
        "IrpPtr FileObject FileKey TTID Length InfoClass FileIndex FileName Opcode",
    ),
    (&[0x044C], etw::FILE_IO_OP_END, "IrpPtr ExtraInfo NtStatus"),
    (
        &[0x044F, 0x0450],
        etw::FILE_IO_PATH_OPERATION,
        "IrpPtr FileObject FileKey ExtraInfo TTID InfoClass FileName Opcode",
    ),
];

/// The timeline form of a kernel event.
#[derive(Debug)]
pub enum Form {
    /// An event that Perfetto's schema defines: the number and the encoded fields of its message.
    Etw(u32, Vec<u8>),
    /// An interval that ends with the event.
    Interval(Lanes, Begin),
    /// A sample of the instruction pointer.
    Sample {
        /// The address of the running code.
        address: u64,
    },
    /// A fact about a process or thread, in addition to the event itself.
    Fact(Fact),
}

/// The beginning of an interval.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// A reading of the session's clock.
    Clock(i64),
    /// The event's time minus a number of performance counter ticks.
    Ticks(u64),
}

/// A fact about a process or thread.
#[derive(Debug, PartialEq, Eq)]
pub enum Fact {
    /// A process, its image's name and its command line. `started` is true if the process did not
    /// exist before.
    Process { id: u32, name: String, command_line: String, started: bool },
    /// A process has ended.
    ProcessEnded(u32),
    /// A thread and its name, if it has one.
    Thread { process: u32, id: u32, name: String, started: bool },
    /// A thread has ended.
    ThreadEnded { process: u32, id: u32 },
}

/// Returns the form of a kernel event. `None` means an instant: the event has no other form, or
/// lacks the fields that the form needs.
pub fn form(event: &Decoded) -> Option<Form> {
    let Kind::Kernel { hook } = event.kind else {
        return None;
    };
    let fields = Reader(event);
    match hook {
        0x0524 => fields.switch().map(|message| Form::Etw(etw::C_SWITCH, message)),
        0x0532 => fields.ready().map(|message| Form::Etw(etw::READY_THREAD, message)),
        0x0F42 | 0x0F44 | 0x0F45 => fields.interrupt(Lanes::Dpc(event.processor)),
        0x0F32 | 0x0F43 => fields.interrupt(Lanes::Isr(event.processor)),
        0x0F2E => Some(Form::Sample { address: fields.number("InstructionPointer")? }),
        0x010A => fields.disk(Lanes::DiskReads),
        0x010B => fields.disk(Lanes::DiskWrites),
        0x010E => fields.disk(Lanes::DiskFlushes),
        0x0440..=0x0450 => fields.file(hook),
        0x0301..=0x0304 | 0x030B | 0x0327 => fields.process(hook).map(Form::Fact),
        0x0501..=0x0504 | 0x0548 => fields.thread(hook).map(Form::Fact),
        _ => None,
    }
}

/// Returns true if [`form`] can return a form for a kernel event.
pub const fn is_special(event: &Decoded) -> bool {
    matches!(
        event.kind,
        Kind::Kernel {
            hook: 0x0524 | 0x0532 | 0x0F32 | 0x0F42..=0x0F45 | 0x0F2E | 0x010A | 0x010B | 0x010E
                | 0x0440..=0x044D | 0x044F | 0x0450
        }
    )
}

/// Returns the thread id in a field.
pub fn thread_field(event: &Decoded, name: &str) -> Option<u32> {
    Reader(event).narrow(name)
}

/// Returns the processor mode of the code at `address`, if the address determines it.
pub const fn mode(address: u64) -> Option<u64> {
    if address >= KERNEL_SPACE {
        Some(sample::MODE_KERNEL)
    } else if address < USER_SPACE || address > u32::MAX as u64 {
        Some(sample::MODE_USER)
    } else {
        None
    }
}

/// Reads the fields of an event.
pub struct Reader<'a>(pub &'a Decoded);

impl Reader<'_> {
    /// Returns a number; negative numbers become their two's complement.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.field(name)? {
            Value::UInt(number)
            | Value::Hex(number)
            | Value::Pointer(number)
            | Value::ProcessId(number)
            | Value::ThreadId(number)
            | Value::Code { address: number, .. }
            | Value::Named { value: number, .. } => Some(*number),
            Value::NtStatus(number) | Value::Win32Error(number) => Some(u64::from(*number)),
            Value::Int(number) => Some(number.cast_unsigned()),
            _ => None,
        }
    }

    fn signed(&self, name: &str) -> Option<i64> {
        self.number(name).map(u64::cast_signed)
    }

    pub fn narrow(&self, name: &str) -> Option<u32> {
        self.number(name).and_then(|number| u32::try_from(number).ok())
    }

    fn text(&self, name: &str) -> String {
        match self.0.field(name) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    /// Encodes a message in the processor's ETW event bundle.
    fn message(&self, content: impl FnOnce(&mut Message<'_>) -> Option<()>) -> Option<Vec<u8>> {
        // The message has no field for surplus bytes.
        let complete = self.0.problems.is_empty() && self.0.leftover.is_empty();
        if !complete || self.0.processor >= MAX_PROCESSORS {
            return None;
        }
        let mut out = Vec::new();
        content(&mut Message::new(&mut out))?;
        Some(out)
    }

    /// Encodes a `CSwitchEtwEvent`.
    fn switch(&self) -> Option<Vec<u8>> {
        self.message(|to| {
            to.uint(1, u64::from(self.narrow("NewThreadId")?));
            to.uint(2, u64::from(self.narrow("OldThreadId")?));
            for (number, name) in [(3, "NewThreadPriority"), (4, "OldThreadPriority")] {
                if let Some(priority) = self.signed(name) {
                    to.sint(number, priority);
                }
            }
            if let Some(state) = self.narrow("PreviousCState") {
                to.uint(5, u64::from(state));
            }
            // The reason and mode are numbers, because Perfetto reads the reason in no other form.
            for (number, name) in [(11, "OldThreadWaitReason"), (12, "OldThreadWaitMode")] {
                if let Some(value) = self.signed(name) {
                    to.int(number, value);
                }
            }
            match self.signed("OldThreadState")? {
                state @ 0..=7 => to.int(8, state),
                state => to.sint(13, state),
            }
            if let Some(processor) = self.signed("OldThreadWaitIdealProcessor") {
                to.sint(9, processor);
            }
            if let Some(time) = self.narrow("NewThreadWaitTime") {
                to.uint(10, u64::from(time));
            }
            Some(())
        })
    }

    /// Encodes a `ReadyThreadEtwEvent`.
    fn ready(&self) -> Option<Vec<u8>> {
        self.message(|to| {
            to.uint(1, u64::from(self.narrow("TThreadId")?));
            if let Some(reason) = self.signed("AdjustReason") {
                to.int(5, reason);
            }
            if let Some(increment) = self.signed("AdjustIncrement") {
                to.sint(3, increment);
            }
            if let Some(flag) = self.signed("Flag") {
                to.int(6, flag);
            }
            Some(())
        })
    }

    fn interrupt(&self, lanes: Lanes) -> Option<Form> {
        let begin = Begin::Clock(self.signed("InitialTime")?);
        Some(Form::Interval(lanes, begin))
    }

    fn disk(&self, lanes: fn(u32) -> Lanes) -> Option<Form> {
        let begin = Begin::Ticks(self.number("HighResResponseTime")?);
        Some(Form::Interval(lanes(self.narrow("DiskNumber")?), begin))
    }

    /// Encodes the message of a file operation.
    fn file(&self, hook: u16) -> Option<Form> {
        let [opcode, _] = hook.to_le_bytes();
        let (_, form, fields) = FILE_OPERATIONS.iter().find(|(hooks, ..)| hooks.contains(&hook))?;
        let message = self.message(|to| {
            // Without the request's address, Perfetto cannot find the operation's end.
            self.number("IrpPtr")?;
            for (number, name) in (1..).zip(fields.split(' ')) {
                match name {
                    "Opcode" => to.uint(number, u64::from(opcode)),
                    "OpenPath" | "FileName" => to.text(number, &self.text(name)),
                    _ => {
                        if let Some(value) = self.number(name) {
                            to.uint(number, value);
                        }
                    }
                }
            }
            Some(())
        });
        Some(Form::Etw(*form, message?))
    }

    fn process(&self, hook: u16) -> Option<Fact> {
        let id = self.narrow("ProcessId")?;
        Some(match hook {
            0x0302 | 0x030B | 0x0327 => Fact::ProcessEnded(id),
            _ => Fact::Process {
                id,
                name: self.text("ImageFileName"),
                command_line: self.text("CommandLine"),
                started: hook == 0x0301,
            },
        })
    }

    fn thread(&self, hook: u16) -> Option<Fact> {
        let process = self.narrow("ProcessId")?;
        let id = self.narrow("TThreadId").or_else(|| self.narrow("ThreadId"))?;
        Some(match hook {
            0x0502 => Fact::ThreadEnded { process, id },
            _ => {
                Fact::Thread { process, id, name: self.text("ThreadName"), started: hook == 0x0501 }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_the_mode_unless_it_is_of_either_on_a_32_bit_machine() {
        const USER: Option<u64> = Some(sample::MODE_USER);
        for (address, expected) in [
            (0, USER),
            (0x7FFF_FFFF, USER),
            (0x8000_0000, None),
            (0xFFFF_FFFF, None),
            (0x1_0000_0000, USER),
            (0xFFFF_7FFF_FFFF_FFFF, USER),
            (0xFFFF_8000_0000_0000, Some(sample::MODE_KERNEL)),
        ] {
            assert_eq!(mode(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn threads_start_exist_and_end() {
        let fact = |hook| {
            let event = Decoded {
                kind: Kind::Kernel { hook },
                fields: vec![
                    ("ProcessId".into(), Value::ProcessId(5)),
                    ("TThreadId".into(), Value::ThreadId(6)),
                ],
                ..etl_fixtures::decoded(etl_file::EventRecord::default())
            };
            match form(&event) {
                Some(Form::Fact(fact)) => fact,
                other => panic!("{other:?}"),
            }
        };
        let thread = |started| Fact::Thread { process: 5, id: 6, name: String::new(), started };
        assert_eq!(fact(0x0501), thread(true));
        assert_eq!(fact(0x0502), Fact::ThreadEnded { process: 5, id: 6 });
        assert_eq!(fact(0x0503), thread(false));
    }
}
