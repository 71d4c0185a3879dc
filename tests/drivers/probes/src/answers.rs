//! Performs operations, in any context.

use etw_probes_interface::{Ask, Reply, operation};

use crate::{
    activities, callbacks, registrations,
    system::{self, reply_from_here},
    timer, write,
};

/// The operations that must be performed at `PASSIVE_LEVEL`.
const AT_PASSIVE_LEVEL: [u32; 7] = [
    operation::RESET,
    operation::REGISTER,
    operation::UNREGISTER,
    operation::SET_INFORMATION,
    operation::ROUTINE,
    operation::TIMER_START,
    operation::TIMER_STOP,
];

/// Performs an operation in the current context. `bytes` are the bytes that follow the [`Ask`].
pub fn answer(ask: &Ask, bytes: &[u8]) -> Reply {
    if AT_PASSIVE_LEVEL.contains(&ask.operation) && system::irql() != 0 {
        return registrations::refused(ask.operation);
    }
    match ask.operation {
        operation::RESET => {
            registrations::end_all();
            callbacks::forget();
            reply_from_here(ask.operation)
        }
        operation::REGISTER => registrations::register(ask),
        operation::UNREGISTER => registrations::unregister(ask),
        operation::SET_INFORMATION => registrations::set_information(ask, bytes),
        operation::WRITE => write::many(ask, bytes),
        operation::ACTIVITY => activities::plain(ask),
        operation::ACTIVITY_KERNEL => activities::kernel(ask),
        operation::IMPLICIT => activities::implicit(ask),
        operation::ROUTINE => {
            let mut reply = reply_from_here(ask.operation);
            reply.available = u32::from(system::has_routine(ask.form));
            reply
        }
        operation::TIMER_START => timer::start(ask),
        operation::TIMER_STOP => timer::stop(ask),
        _ => registrations::refused(ask.operation),
    }
}
