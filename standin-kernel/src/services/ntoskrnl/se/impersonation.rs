//! Threads that impersonate clients, and the security contexts of clients that drivers keep for that.

use super::token_objects::{self, BAD_IMPERSONATION_LEVEL, DELEGATES, IMPERSONATES, IMPERSONATION};
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        opaque::{
            AccessToken, ImpersonationState, KernelThread, SecurityClientContext, SecurityQuality,
            SecuritySubjectContext,
        },
    },
    services::{
        managers::tokens,
        ntoskrnl::{
            context::{Context, Entries},
            ke::thread_objects::{self, Client},
            ob::handles,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("PsDisableImpersonation", disable),
    routine("PsImpersonateClient", impersonate),
    routine("PsReferenceImpersonationToken", reference),
    routine("PsRestoreImpersonation", restore),
    routine("PsRevertToSelf", revert),
    routine("SeCreateClientSecurity", create),
    routine("SeCreateClientSecurityFromSubjectContext", create_from_subject),
    routine("SeImpersonateClient", impersonate_context_and_ignore),
    routine("SeImpersonateClientEx", impersonate_context),
];

/// Returns the client that a thread impersonates.
pub fn of_thread(context: &Context, thread: u64) -> Option<Client> {
    thread_objects::with(context, thread, |thread| thread.client)
}

/// Returns the client that the current thread impersonates.
pub fn current(context: &Context) -> Option<Client> {
    of_thread(context, thread_objects::current(context).0)
}

/// Sets the client of a thread, and returns the one before, whose reference the caller receives.
fn change(context: &Context, thread: u64, client: Option<Client>) -> Option<Client> {
    thread_objects::with(context, thread, |thread| std::mem::replace(&mut thread.client, client))
}

/// Releases the references of threads that ended while they impersonated a client.
pub fn release_left(context: &Context) {
    for token in thread_objects::take_left_tokens(context) {
        handles::dereference(context, At::new(token));
    }
}

fn release(context: &Context, client: Option<Client>) {
    if let Some(client) = client {
        handles::dereference(context, At::new(client.token));
    }
}

/// Lets a thread impersonate the user of a token, or no longer impersonate a client if the token is null.
fn impersonate(
    context: &Context,
    thread: At<KernelThread>,
    token: At<AccessToken>,
    copies: bool,
    is_effective: bool,
    level: i32,
) -> NtStatus {
    let client = (!token.is_null()).then(|| {
        token_objects::at(context, token.0);
        handles::reference(context, token.cast());
        Client { token: token.0, level, copies, is_effective }
    });
    let before = change(context, thread.0, client);
    release(context, before);
    NtStatus::SUCCESS
}

fn revert(context: &Context) {
    let before = change(context, thread_objects::current(context).0, None);
    release(context, before);
}

/// Returns a reference to the token with which a thread impersonates a client, or null.
fn reference(
    context: &Context,
    thread: At<KernelThread>,
    copies: At<u8>,
    is_effective: At<u8>,
    level: At<i32>,
) -> At<AccessToken> {
    let Some(client) = of_thread(context, thread.0) else {
        return At::NULL;
    };
    copies.write(context, client.copies.into());
    is_effective.write(context, client.is_effective.into());
    level.write(context, client.level);
    handles::reference(context, At::new(client.token));
    At::new(client.token)
}

/// Stops a thread's impersonation, and stores what [`restore`] needs to go on with it.
fn disable(context: &Context, thread: At<KernelThread>, state: At<ImpersonationState>) -> bool {
    let client = change(context, thread.0, None);
    let stored = client.map_or([0, 0], |client| {
        let flags = u64::from(client.copies) | u64::from(client.is_effective) << 8;
        [client.token, flags | u64::from(client.level.cast_unsigned()) << 32]
    });
    context.write(state.0, &stored);
    client.is_some()
}

fn restore(context: &Context, thread: At<KernelThread>, state: At<ImpersonationState>) {
    let [token, rest]: [u64; 2] = context.read(state.0);
    let level = u32::try_from(rest >> 32).unwrap_or(0).cast_signed();
    let (copies, is_effective) = (rest & 0xFF != 0, rest >> 8 & 0xFF != 0);
    let client = (token != 0).then_some(Client { token, level, copies, is_effective });
    let before = change(context, thread.0, client);
    release(context, before);
}

/// A `SECURITY_QUALITY_OF_SERVICE`.
struct Quality {
    level: i32,
    is_dynamic: bool,
    is_effective: bool,
}

fn quality_at(context: &Context, at: u64) -> Quality {
    let [_, level, modes]: [u32; 3] = context.read(at);
    Quality {
        level: level.cast_signed(),
        is_dynamic: modes & 0xFF != 0,
        is_effective: modes >> 8 & 0xFF != 0,
    }
}

/// Fills in a client's security context: with a reference to the client's token if it is tracked
/// dynamically, or with a copy. `client` is set for a token that a thread impersonates a client with.
fn fill(
    context: &Context,
    token: u64,
    client: Option<(i32, bool)>,
    quality: At<SecurityQuality>,
    is_remote: bool,
    to: At<SecurityClientContext>,
) -> NtResult {
    /// The offsets of the token, of the flags after it, and of the ids in the token's control data.
    const TOKEN: u64 = 16;
    const FLAGS: u64 = 24;
    const CONTROL: u64 = 28;
    let wanted = quality_at(context, quality.0);
    if let Some((held, _)) = client {
        // A server cannot pass on a client that it can only identify, nor a remote one without delegation.
        let needed = if is_remote { DELEGATES } else { IMPERSONATES };
        if held < needed || wanted.level > held {
            return Err(BAD_IMPERSONATION_LEVEL);
        }
    }
    let is_effective = wanted.is_effective || client.is_some_and(|(_, is_effective)| is_effective);
    let stored = if wanted.is_dynamic {
        handles::reference(context, At::new(token));
        token
    } else {
        let new = token_objects::at(context, token);
        token_objects::add(context, new.duplicated(IMPERSONATION, wanted.level, is_effective))
    };
    let bytes = context.bytes(quality.0, 12);
    context.write_bytes(to.0, &bytes);
    context.write(to.0.wrapping_add(TOKEN), &stored);
    let direct = u8::from(wanted.is_dynamic);
    let flags = [direct, direct & u8::from(is_effective), u8::from(is_remote), 0];
    context.write(to.0.wrapping_add(FLAGS), &flags);
    context.write(to.0.wrapping_add(CONTROL), &[0_u32; 10]);
    Ok(())
}

fn create(
    context: &Context,
    thread: At<KernelThread>,
    quality: At<SecurityQuality>,
    is_remote: bool,
    to: At<SecurityClientContext>,
) -> NtResult {
    let client = of_thread(context, thread.0);
    let process = || thread_objects::with(context, thread.0, |thread| thread.identity.process);
    let token = client.map_or_else(|| tokens::of_process(process()), |client| client.token);
    let client = client.map(|client| (client.level, client.is_effective));
    fill(context, token, client, quality, is_remote, to)
}

fn create_from_subject(
    context: &Context,
    subject: At<SecuritySubjectContext>,
    quality: At<SecurityQuality>,
    is_remote: bool,
    to: At<SecurityClientContext>,
) -> NtResult {
    let [client, level, primary, _]: [u64; 4] = context.read(subject.0);
    let level = i32::try_from(level & 0xFFFF_FFFF).unwrap_or(0);
    let (token, client) =
        if client == 0 { (primary, None) } else { (client, Some((level, false))) };
    fill(context, token, client, quality, is_remote, to)
}

/// Lets a thread, or the current one, impersonate the client of a security context.
fn impersonate_context(
    context: &Context,
    client: At<SecurityClientContext>,
    thread: At<KernelThread>,
) -> NtStatus {
    let quality = quality_at(context, client.0);
    let token: u64 = context.read(client.0.wrapping_add(16));
    let [is_direct, is_effective]: [u8; 2] = context.read(client.0.wrapping_add(24));
    let is_effective = if is_direct == 0 { quality.is_effective } else { is_effective != 0 };
    let thread = if thread.is_null() { thread_objects::current(context) } else { thread };
    impersonate(context, thread, At::new(token), true, is_effective, quality.level)
}

fn impersonate_context_and_ignore(
    context: &Context,
    client: At<SecurityClientContext>,
    thread: At<KernelThread>,
) {
    impersonate_context(context, client, thread);
}
