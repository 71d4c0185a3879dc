//! The logs of `WppRecorder.sys`.

use std::collections::VecDeque;

use etl_file::Guid;

use crate::ground::arena::Block;

/// A message in a recorder log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderMessage {
    /// The identifier of the log, which is empty for a driver's default log.
    pub log: String,
    /// The level of the message.
    pub level: u8,
    /// The number of the message's flag, from 1.
    pub flag: u32,
    /// The message GUID.
    pub guid: Guid,
    /// The message number.
    pub number: u16,
    /// The arguments, concatenated.
    pub data: Vec<u8>,
}

/// The size of a default log: one page.
pub const DEFAULT_ROOM: usize = 4096;

/// The logs, oldest first.
#[derive(Default)]
pub struct Recorder(pub Vec<Log>);

/// A log.
pub struct Log {
    /// The driver's control block.
    pub control: u64,
    /// Set if this is the driver's default log.
    pub is_default: bool,
    /// The identifier, which is empty for a default log.
    pub identifier: String,
    /// The buffer's size in bytes.
    room: usize,
    used: usize,
    /// The messages, oldest first.
    pub messages: VecDeque<RecorderMessage>,
    /// The memory whose address serves as the log's handle.
    memory: Block,
}

impl Log {
    /// Creates an empty log. `room` is the size of its buffer in bytes.
    pub fn new(control: u64, is_default: bool, identifier: String, room: usize) -> Self {
        Self {
            control,
            is_default,
            identifier,
            room,
            used: 0,
            messages: VecDeque::new(),
            memory: Block::zeroed(0x40),
        }
    }

    /// Returns the log's handle.
    pub const fn handle(&self) -> u64 {
        self.memory.address()
    }

    /// Adds a message, and drops the oldest messages that no longer fit.
    pub fn add(&mut self, message: RecorderMessage) {
        self.used += size_of_message(&message);
        self.messages.push_back(message);
        while self.used > self.room {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            self.used -= size_of_message(&oldest);
        }
    }
}

/// Returns the size of a message in a log: its data and its header.
const fn size_of_message(message: &RecorderMessage) -> usize {
    const FIXED: usize = 32;
    FIXED + message.data.len()
}

impl Recorder {
    /// Returns the messages of all logs.
    pub fn messages(&self) -> Vec<RecorderMessage> {
        let logs = self.0.iter();
        logs.flat_map(|log| log.messages.iter().cloned()).collect()
    }

    /// Removes the logs of the control blocks that `belongs` selects. Returns their number.
    pub fn take_left(&mut self, belongs: impl Fn(u64) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|log| !belongs(log.control));
        before - self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_the_newest_messages_that_fit() {
        let mut log = Log::new(1, true, String::new(), 100);
        for number in 0..5 {
            log.add(RecorderMessage {
                log: String::new(),
                level: 4,
                flag: 1,
                guid: Guid::from_bytes([0; 16]),
                number,
                data: vec![0; 8],
            });
        }
        let numbers: Vec<u16> = log.messages.iter().map(|one| one.number).collect();
        assert_eq!((numbers.as_slice(), log.used), (&[3, 4][..], 80));
    }
}
