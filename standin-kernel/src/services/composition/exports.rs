//! The gateways of all routines that the stand-in kernel provides.

use std::sync::OnceLock;

use super::system::System;
use crate::{
    execution::{
        context::Context,
        declarations::Declaration,
        gateway::{Entry, Gateways},
        routine::Routine,
    },
    ground::{irql::Irql, memory_routines},
    services::{
        etw::{self, recorder},
        kmdf::{driver::wdfldr, interrupt, state::framework::FunctionTable, table},
        ntoskrnl::{
            self, context::Ntoskrnl, exports::MODULE as NTOSKRNL, kernel_variables, variables,
        },
        verifier::faults::Fault,
    },
};

/// Returns the process's gateways.
pub fn gateways() -> &'static Gateways {
    static GATEWAYS: OnceLock<Gateways> = OnceLock::new();
    GATEWAYS.get_or_init(|| {
        Gateways::generate(
            entries(),
            memory_routines::routines()
                .into_iter()
                .chain(variables::exports())
                .map(|(name, address)| (NTOSKRNL, name, address))
                .collect(),
            &[NTOSKRNL, wdfldr::MODULE, recorder::MODULE],
        )
    })
}

/// Returns the address to which an import is bound, if the stand-in kernel provides it.
pub fn address_of(module: &str, name: &str) -> Option<u64> {
    /// Since Windows 10 2004, the routines of HAL.dll are in the kernel, and both module names bind. Those
    /// of ksecdd.sys that the kernel provides are in one table with its own.
    const ALSO: [&str; 2] = ["hal.dll", "ksecdd.sys"];
    let is_also = ALSO.iter().any(|also| module.eq_ignore_ascii_case(also));
    let module = if is_also { NTOSKRNL } else { module };
    gateways().find(module, name)
}

/// Returns the address to which an import is bound in this kernel. Some variables differ between
/// kernels. See [`address_of`].
pub fn address_in(nt: &Ntoskrnl, module: &str, name: &str) -> Option<u64> {
    let variable = || {
        let is_ours = module.eq_ignore_ascii_case(NTOSKRNL);
        is_ours.then(|| kernel_variables::address(nt, name)).flatten()
    };
    address_of(module, name).or_else(variable)
}

/// Returns the address of an ntoskrnl.exe routine, if the stand-in kernel provides it.
pub fn kernel_routine(name: &str) -> Option<u64> {
    gateways().find(NTOSKRNL, name)
}

/// Returns the address of the I/O manager's default dispatch routine.
pub fn default_dispatch() -> u64 {
    gateways().of_module(ntoskrnl::exports::INTERNAL).first().copied().unwrap_or(0)
}

/// Returns the gateways that the framework provides to drivers.
pub fn function_table() -> FunctionTable {
    FunctionTable {
        table: gateways().of_module(table::MODULE),
        unload: gateways().of_module(table::INTERNAL).first().copied().unwrap_or(0),
    }
}

/// A routine that the stand-in kernel provides.
#[derive(Clone, Copy, Debug)]
pub struct ProvidedRoutine {
    /// The module that exports it, or `Wdf01000.sys` for the framework's function table.
    pub module: &'static str,
    /// The name.
    pub name: &'static str,
    /// The highest IRQL at which it may be called. For some arguments, the limit is lower.
    pub limit: Irql,
    declaration: &'static Declaration,
}

impl ProvidedRoutine {
    /// Returns all routines that a driver can call, by module, except those that compilers call
    /// implicitly.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let is_provided = |entry: &&Entry| {
            !entry.is_refused
                && ![table::INTERNAL, ntoskrnl::exports::INTERNAL].contains(&entry.module)
        };
        let provided = gateways().entries().iter().filter(is_provided);
        provided
            .map(|Entry { module, declaration, .. }| Self {
                module,
                name: declaration.name,
                limit: declaration.limit,
                declaration,
            })
            .collect()
    }

    /// Returns the names of the routines that compilers call implicitly, such as `memcpy`.
    #[must_use]
    pub fn implicit() -> Vec<&'static str> {
        memory_routines::routines().into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the types and names of the parameters in the WDK's headers, without the driver's
    /// globals, which are the first parameter of every framework function.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let more = self.declaration.is_variadic.then_some("...");
        let all = self.declaration.parameters.iter();
        all.filter_map(|one| one.refusal.split('`').nth(1)).chain(more)
    }
}

impl Fault {
    /// Returns the routines that support fault injection, sorted by name: most routines that return an
    /// `NTSTATUS`, and two that report failure with a null pointer.
    #[must_use]
    pub fn routines() -> Vec<&'static str> {
        let all = gateways().entries().iter();
        let mut names: Vec<&str> = all
            .filter(|entry| Self::is_supported(entry.declaration.name, entry.result))
            .map(|entry| entry.declaration.name)
            .collect();
        names.sort_unstable();
        names
    }
}

/// Returns every routine that a driver can call.
fn entries() -> Vec<Entry> {
    let mut all = entries_for(NTOSKRNL, ntoskrnl::exports::exports(), System::ntoskrnl_context);
    all.extend(entries_for(
        ntoskrnl::exports::INTERNAL,
        ntoskrnl::exports::INTERNAL_ENTRIES.iter().copied(),
        System::ntoskrnl_context,
    ));
    all.extend(entries_for(NTOSKRNL, etw::exports::exports(), System::etw_context));
    all.extend(entries_for(
        NTOSKRNL,
        interrupt::wdm::ENTRIES.iter().copied(),
        System::kmdf_context,
    ));
    all.extend(entries_for(
        recorder::MODULE,
        recorder::ENTRIES.iter().copied(),
        System::etw_context,
    ));
    all.extend(entries_for(wdfldr::MODULE, wdfldr::ENTRIES.iter().copied(), System::kmdf_context));
    all.extend(entries_for(table::MODULE, table::entries(), System::kmdf_context));
    all.extend(entries_for(
        table::INTERNAL,
        table::INTERNAL_ENTRIES.iter().copied(),
        System::kmdf_context,
    ));
    all
}

/// Creates the entries for a service's exports. `context` creates the context that is passed to
/// them.
fn entries_for<C: 'static>(
    module: &'static str,
    exports: impl IntoIterator<Item = Routine<C>>,
    context: fn(Context) -> C,
) -> Vec<Entry> {
    exports
        .into_iter()
        .map(|routine| Entry {
            module,
            declaration: routine.declaration,
            result: routine.result,
            is_refused: routine.is_refused,
            serve: Box::new(move |call, arguments| {
                let fault =
                    System::from_thread(&call).faults.result_of(routine.name(), routine.result);
                fault.unwrap_or_else(|| (routine.call)(&context(call), arguments))
            }),
        })
        .collect()
}
