//! `status`.

use etw_sample_interface::{
    IOCTL_GET_STATISTICS, NotificationRecord, Registration, Statistics, outcome,
};
use etw_session::{process, session};
use zerocopy::FromBytes;

use crate::{
    device::{self, Device},
    devnode,
    error::Failure,
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
    println!("registration:     {}", describe_registration(&found.registration));
    println!("bytes read:       {}", found.bytes_read);
    println!("bytes written:    {}", found.bytes_written);
    println!("timer ticks:      {}", found.timer_ticks);
    println!("woken:            {}", found.woken);
    println!("notifications:    {}", found.notifications);
    for record in &found.first_notifications {
        if record.recorded == 1 {
            println!("  {}", describe_notification(record));
        }
    }
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

/// Describes the outcome of the provider's registration, including the settings that ETW refused.
fn describe_registration(registration: &Registration) -> String {
    let mut parts = vec![match registration.outcome {
        outcome::NONE => "none".to_owned(),
        outcome::COMPLETE => "complete".to_owned(),
        outcome::INCOMPLETE => "incomplete".to_owned(),
        outcome::REFUSED => format!("EtwRegister returned 0x{:08x}", registration.status),
        outcome::NOT_CALLED => "EtwRegister was not called".to_owned(),
        other => format!("unknown outcome {other}"),
    }];
    for (class, status) in [
        ("SetTraits", registration.traits),
        ("UseDescriptorType", registration.descriptor_types),
        ("BinaryTrackInfo", registration.binary_tracking),
    ] {
        if status != 0 {
            parts.push(format!("EtwSetInformation(EventProvider{class}) returned 0x{status:08x}"));
        }
    }
    if registration.traits_left_out > 0 {
        parts.push(format!("{} traits omitted", registration.traits_left_out));
    }
    parts.join(", ")
}

/// Describes a notification with the arguments of the enable callback.
fn describe_notification(record: &NotificationRecord) -> String {
    let code = match record.control_code {
        0 => "disable".to_owned(),
        1 => "enable".to_owned(),
        2 => "capture state".to_owned(),
        other => format!("control code {other}"),
    };
    let mut parts = vec![format!(
        "{code}: level {}, any 0x{:x}, all 0x{:x}, source {}",
        record.level,
        record.match_any,
        record.match_all,
        etl_file::Guid::from_bytes(record.source)
    )];
    if record.filter_kind != 0 || record.filter_size != 0 {
        parts.push(format!(
            "filter of type 0x{:x} and {} bytes",
            record.filter_kind, record.filter_size
        ));
    }
    if record.during_registration == 1 {
        parts.push("before the registration was complete".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_shown_with_their_statuses() {
        let complete = Registration { outcome: outcome::COMPLETE, ..Registration::default() };
        assert_eq!(describe_registration(&complete), "complete");
        let refused = Registration {
            outcome: outcome::INCOMPLETE,
            traits: 0xC000_0022,
            traits_left_out: 2,
            ..Registration::default()
        };
        assert_eq!(
            describe_registration(&refused),
            "incomplete, EtwSetInformation(EventProviderSetTraits) returned 0xc0000022, 2 traits \
             omitted"
        );
        let not_registered = Registration {
            outcome: outcome::REFUSED,
            status: 0xC000_009A,
            ..Registration::default()
        };
        assert_eq!(describe_registration(&not_registered), "EtwRegister returned 0xc000009a");
    }

    #[test]
    fn notifications_are_shown_as_etw_delivered_them() {
        let mut record = NotificationRecord {
            recorded: 1,
            control_code: 1,
            level: 0,
            match_any: 0x81,
            match_all: 1,
            ..NotificationRecord::default()
        };
        assert_eq!(
            describe_notification(&record),
            "enable: level 0, any 0x81, all 0x1, source 00000000-0000-0000-0000-000000000000"
        );
        record.during_registration = 1;
        record.filter_kind = 0x8000_0000;
        record.filter_size = 24;
        assert!(describe_notification(&record).ends_with(
            ", filter of type 0x80000000 and 24 bytes, before the registration was complete"
        ));
    }
}
