//! `send`.

use std::fmt::Write as _;

use clap::ArgMatches;
use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_SET_TIMER, IOCTL_SIMULATE_READS,
    IOCTL_WAIT, IOCTL_WAKE, Reads, TimerControl,
};
use etw_scenarios::Answer;
use zerocopy::IntoBytes;

use crate::{
    arguments::{Bytes, required},
    device::Device,
    error::Failure,
    process,
};

/// What came back, or what the driver said instead.
fn output(answer: Answer) -> Result<Vec<u8>, Failure> {
    if answer.status.cast_signed() < 0 {
        return Err(Failure::Refused(answer.status));
    }
    Ok(answer.output)
}

/// Bytes as a text where they are one, else as hexadecimal digits.
fn show(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Sends a request.
pub fn run(arguments: &ArgMatches) -> Result<(), Failure> {
    let Some((request, arguments)) = arguments.subcommand() else {
        // clap asks for a request.
        return Ok(());
    };
    let text = || required::<String>(arguments, "text").map(String::as_bytes);
    let number = |name| required::<u32>(arguments, name).copied();
    let device = Device::open()?;
    let send = |code, input: &[u8], room| device.control(code, input, room).and_then(output);
    match request {
        "echo" => {
            let code = if arguments.get_flag("dpc") {
                IOCTL_ECHO_IN_DPC
            } else {
                IOCTL_ECHO
            };
            println!("{}", show(&send(code, text()?, text()?.len())?));
        }
        "write" => {
            output(device.write(text()?)?)?;
            println!("{} bytes written", text()?.len());
        }
        "read" => println!(
            "{}",
            show(&output(device.read(number("length")? as usize)?)?)
        ),
        "timer" => {
            let on = required::<String>(arguments, "run")? == "on";
            let control = TimerControl { run: u32::from(on) };
            send(IOCTL_SET_TIMER, control.as_bytes(), 0)?;
            println!("the timer is {}", if on { "on" } else { "off" });
        }
        "burst" => {
            let burst = Burst {
                count: number("count")?,
                sender: number("sender")?,
            };
            send(IOCTL_BURST, burst.as_bytes(), 0)?;
            println!("the driver wrote {} events", burst.count);
        }
        "reads" => {
            let reads = Reads {
                local: number("local")?,
                remote: number("remote")?,
            };
            send(IOCTL_SIMULATE_READS, reads.as_bytes(), 0)?;
            println!("{} local and {} remote reads", reads.local, reads.remote);
        }
        "wait" => wait(&device)?,
        "wake" => {
            send(IOCTL_WAKE, &[], 0)?;
            println!("one is awake");
        }
        _ => {
            let input = required::<Bytes>(arguments, "input")?;
            let room = number("room")? as usize;
            println!("{}", hex(&send(number("code")?, &input.0, room)?));
        }
    }
    Ok(())
}

/// Waits to be woken, or for Ctrl+C.
fn wait(device: &Device) -> Result<(), Failure> {
    process::catch_interrupts()?;
    let request = device.start_control(IOCTL_WAIT, &[], size_of::<u64>())?;
    process::wait(None, || request.is_over());
    if !request.is_over() {
        request.cancel();
    }
    let woken = output(request.finish()?)?;
    let number = woken.try_into().map_or(0, u64::from_le_bytes);
    println!("woken, as number {number}");
    Ok(())
}
