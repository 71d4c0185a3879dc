//! A client for QMP, QEMU's control protocol.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The time limit for a command. Under TCG on a busy host, a screenshot takes a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// An event that QEMU reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's name, such as `RESET`.
    pub name: String,
    /// The event's data.
    pub data: Value,
}

/// A connection to a running QEMU.
///
/// Incomplete lines are kept, so that a read that times out loses nothing.
#[derive(Debug)]
pub struct Qmp {
    stream: UnixStream,
    pending: Vec<u8>,
    events: VecDeque<Event>,
    is_open: bool,
}

impl Qmp {
    /// Connects to QEMU's socket. Returns `None` if QEMU does not listen yet.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`] if QEMU listens but does not follow the QMP protocol.
    pub fn connect(socket: &Path) -> Result<Option<Self>> {
        let Ok(stream) = UnixStream::connect(socket) else {
            return Ok(None);
        };
        let mut qmp = Self { stream, pending: Vec::new(), events: VecDeque::new(), is_open: true };
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(Some(qmp))
    }

    /// Runs a command and returns its result. Keeps events that arrive in the meantime.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`] if QEMU rejects the command or does not respond within 30 s.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let fail = |reason: String| Error::Control { command: command.to_owned(), reason };
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        self.stream
            .set_write_timeout(Some(PATIENCE))
            .and_then(|()| self.stream.write_all(line.as_bytes()))
            .map_err(|error| fail(error.to_string()))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(mut answer) = self.line() {
                if let Some(result) = answer.get_mut("return") {
                    return Ok(result.take());
                }
                if let Some(error) = answer.get("error") {
                    let reason = error["desc"].as_str().unwrap_or("no reason was given");
                    return Err(fail(reason.to_owned()));
                }
                self.note(&answer);
            }
            if !self.is_open {
                return Err(fail("QEMU closed the connection".to_owned()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = format!("QEMU did not answer within {} s", PATIENCE.as_secs());
                return Err(fail(reason));
            }
            self.read(left).map_err(|error| fail(error.to_string()))?;
        }
    }

    /// Returns the next event, if one has arrived.
    pub fn event(&mut self) -> Option<Event> {
        if self.events.is_empty() && self.is_open {
            // A broken connection becomes visible when the QEMU process ends.
            if self.read(Duration::from_millis(1)).is_err() {
                self.is_open = false;
            }
            while let Some(line) = self.line() {
                self.note(&line);
            }
        }
        self.events.pop_front()
    }

    /// Keeps an event; ignores the greeting and other lines.
    fn note(&mut self, line: &Value) {
        if let Some(name) = line["event"].as_str() {
            self.events.push_back(Event { name: name.to_owned(), data: line["data"].clone() });
        }
    }

    /// Reads the bytes that have arrived, or waits for the first ones.
    fn read(&mut self, wait: Duration) -> io::Result<()> {
        let mut bytes = [0; 4096];
        self.stream.set_read_timeout(Some(wait))?;
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_open = false,
            Ok(count) => self.pending.extend(bytes.iter().take(count)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Removes and returns one complete JSON line.
    fn line(&mut self) -> Option<Value> {
        loop {
            let end = self.pending.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            if let Ok(value) = serde_json::from_slice(&line) {
                return Some(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        os::unix::net::UnixListener,
        thread,
    };

    use super::*;

    /// Returns a client whose peer sends these parts after a command, each after a pause.
    fn answering(parts: &'static [&'static [&'static str]]) -> (tempfile::TempDir, Qmp) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qmp");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut commands = BufReader::new(stream.try_clone().unwrap());
            stream.write_all(b"{\"QMP\": {}}\r\n").unwrap();
            let accepted: &[&str] = &["{\"return\": {}}\r\n"];
            for part in std::iter::once(accepted).chain(parts.iter().copied()) {
                let mut line = String::new();
                commands.read_line(&mut line).unwrap();
                for text in part {
                    stream.write_all(text.as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let qmp = Qmp::connect(&path).unwrap().unwrap();
        (folder, qmp)
    }

    #[test]
    fn answers_and_events_arrive_in_parts() {
        let (_folder, mut qmp) = answering(&[
            &[
                "{\"event\": \"RESET\", \"data\": {\"guest\": true}}\r\n{\"ret",
                "urn\": {\"status\": \"running\"}}\r\n{\"event\": \"ST",
                "OP\"}\r\n",
            ],
            &["{\"error\": {\"class\": \"GenericError\", \"desc\": \"No such node\"}}\r\n"],
        ]);
        let status = qmp.execute("query-status", &json!({})).unwrap();
        assert_eq!(status["status"], "running");
        let reset = qmp.event().unwrap();
        assert_eq!((reset.name.as_str(), &reset.data["guest"]), ("RESET", &json!(true)));
        let stop = loop {
            if let Some(event) = qmp.event() {
                break event;
            }
        };
        assert_eq!(stop.name, "STOP");
        let error = qmp.execute("screendump", &json!({})).unwrap_err().to_string();
        assert_eq!(error, "QEMU's command screendump failed: No such node");
        // The peer has closed the connection.
        assert_eq!(qmp.event(), None);
        let error = qmp.execute("quit", &json!({})).unwrap_err().to_string();
        assert!(error.starts_with("QEMU's command quit failed: "), "{error}");
    }

    #[test]
    fn no_socket_is_no_connection() {
        assert!(Qmp::connect(Path::new("/nowhere/qmp")).unwrap().is_none());
    }
}
