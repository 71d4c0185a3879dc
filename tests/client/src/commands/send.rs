//! `send`.

use std::fmt::Write as _;

use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_SET_TIMER, IOCTL_SIMULATE_READS,
    IOCTL_WAIT, IOCTL_WAKE, Reads, TimerControl,
};
use etw_scenarios::Answer;
use etw_session::process;
use zerocopy::IntoBytes;

use crate::{arguments::Request, device::Device, error::Failure};

/// Returns the output bytes, or an error if the driver's status is an error.
fn output(answer: Answer) -> Result<Vec<u8>, Failure> {
    if answer.status.cast_signed() < 0 {
        return Err(Failure::Refused(answer.status));
    }
    Ok(answer.output)
}

/// Formats bytes as a string if they are printable UTF-8, and otherwise in hexadecimal.
fn show(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Sends a request.
pub fn run(request: &Request) -> Result<(), Failure> {
    let device = Device::open()?;
    let send = |code, input: &[u8], room| device.control(code, input, room).and_then(output);
    match request {
        Request::Echo { text, dpc } => {
            let code = if *dpc { IOCTL_ECHO_IN_DPC } else { IOCTL_ECHO };
            println!("{}", show(&send(code, text.as_bytes(), text.len())?));
        }
        Request::Write { text } => {
            output(device.write(text.as_bytes())?)?;
            println!("wrote {} bytes", text.len());
        }
        Request::Read { length } => {
            println!("{}", show(&output(device.read(*length as usize)?)?));
        }
        Request::Timer { on } => {
            let control = TimerControl { run: u32::from(*on) };
            send(IOCTL_SET_TIMER, control.as_bytes(), 0)?;
            println!("the timer is {}", if *on { "on" } else { "off" });
        }
        Request::Burst { count, sender } => {
            let burst = Burst { count: *count, sender: *sender };
            send(IOCTL_BURST, burst.as_bytes(), 0)?;
            println!("the driver wrote {count} events");
        }
        Request::Reads { local, remote } => {
            let reads = Reads { local: *local, remote: *remote };
            send(IOCTL_SIMULATE_READS, reads.as_bytes(), 0)?;
            println!("the driver simulated {local} local and {remote} remote reads");
        }
        Request::Wait => wait(&device)?,
        Request::Wake => {
            send(IOCTL_WAKE, &[], 0)?;
            println!("completed one waiting request");
        }
        Request::Control { code, input, room } => {
            println!("{}", hex(&send(*code, &input.0, *room as usize)?));
        }
    }
    Ok(())
}

/// Sends a request that waits for [`IOCTL_WAKE`], and cancels it on Ctrl+C.
fn wait(device: &Device) -> Result<(), Failure> {
    let _interrupts = process::catch_interrupts()?;
    let (request, _) = device.start_traced_control(IOCTL_WAIT, &[], size_of::<u64>())?;
    process::wait(None, || request.is_over());
    if !request.is_over() {
        request.cancel();
    }
    let woken = output(request.finish()?)?;
    let number = woken.try_into().map(u64::from_le_bytes).map_err(|output: Vec<u8>| {
        Failure::WrongLength {
            request: "IOCTL_WAIT",
            expected: size_of::<u64>(),
            got: output.len(),
        }
    })?;
    println!("woken by wake request number {number}");
    Ok(())
}
