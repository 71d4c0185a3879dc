//! `status`.

use etw_sample_interface::{IOCTL_GET_STATISTICS, Statistics};
use zerocopy::FromBytes;

use crate::{
    device::{self, Device},
    devnode,
    error::Failure,
    process, session,
};

/// Prints the state of the driver, its provider and its device.
pub fn run() -> Result<(), Failure> {
    let elevated = process::is_elevated()?;
    println!("elevated:       {}", if elevated { "yes" } else { "no" });
    match devnode::is_loaded() {
        Ok(loaded) => println!("driver loaded:  {}", if loaded { "yes" } else { "no" }),
        Err(error) => println!("driver loaded:  unknown: {error}"),
    }
    println!("provider:       {}", etw_scenarios::provider());
    println!("provider group: {}", etw_scenarios::group());
    match session::registrations(etw_scenarios::provider()) {
        Ok(found) => {
            println!("registrations:  {}", found.instances);
            for one in found.enable_infos {
                println!(
                    "  session {:>2}: level {}, any 0x{:x}, all 0x{:x}",
                    one.session, one.level, one.any, one.all
                );
            }
        }
        Err(error) => println!("registrations:  unknown: {error}"),
    }
    for path in device::paths() {
        println!("device:         {path}");
    }
    let device = Device::open()?;
    let answer = device.control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())?;
    if answer.status.cast_signed() < 0 {
        return Err(Failure::Refused(answer.status));
    }
    let found = Statistics::read_from_bytes(&answer.output).map_err(|_| Failure::WrongLength {
        request: "IOCTL_GET_STATISTICS",
        expected: size_of::<Statistics>(),
        got: answer.output.len(),
    })?;
    println!("bytes read:       {}", found.bytes_read);
    println!("bytes written:    {}", found.bytes_written);
    println!("timer ticks:      {}", found.timer_ticks);
    println!("woken:            {}", found.woken);
    println!("notifications:    {}", found.notifications);
    println!(
        "enabled:          {}, level {}, any 0x{:x}, all 0x{:x}",
        if found.enabled == 0 { "no" } else { "yes" },
        found.level,
        found.match_any,
        found.match_all
    );
    println!(
        "events failed:    {} ({} without memory, {} too large for a session's buffer, {} too \
         large for ETW)\nevents truncated: {}",
        found.events_failed,
        found.failed_without_memory,
        found.failed_for_a_buffer,
        found.failed_for_size,
        found.events_cut
    );
    Ok(())
}
