//! The services of one kernel and their connections.

use std::{any::Any, cell::Cell, rc::Rc, sync::Arc, time::Duration};

use crate::{
    execution::{
        call::Call,
        context::Context,
        environment::Environment,
        thread::{Host, Thread},
        traps::DPC_WATCHDOG_VIOLATION,
    },
    ground::{
        access::AddressError, clock::Clock, irql::Irql, restore_guard::RestoreGuard, rule::Rule,
        shared_data::SharedData,
    },
    services::{
        etw::service::{
            Context as EtwContext, EtwConfig, EtwRuntime, OfThread as EtwOfThread, Uses,
        },
        kmdf::{
            deferred::timer,
            device::wmi as providers,
            state::framework::{Context as KmdfContext, FunctionTable, Kmdf},
            work,
            work::Next,
        },
        managers::{
            nodes::Nodes, plug_and_play::Every, pool::Pool, registry::store::Registry,
            thread_objects::ThreadObjects, wmi_events::WmiEvents,
        },
        ntoskrnl::{
            context::{Context as NtContext, Ntoskrnl, SystemRoutines, Uses as NtUses},
            io::wmi,
            ke::{apcs, dpc, thread_objects as objects, threads, timers as nt_timer},
        },
        verifier::{addresses::Addresses, borrowed::Borrowed, faults::Faults, warnings::Verifier},
    },
};

/// The services of a kernel. This structure creates the services, which do not depend on it. Each
/// call finds its service through it.
pub struct System {
    /// The environment of the threads.
    pub environment: Arc<Environment>,
    /// The clock.
    pub clock: Arc<Clock>,
    /// The verifier.
    pub verifier: Arc<Verifier>,
    /// The injected faults.
    pub faults: Arc<Faults>,
    /// The pool.
    pub pool: Arc<Pool>,
    /// The registry.
    pub registry: Arc<Registry>,
    /// The framework.
    pub kmdf: Arc<Kmdf>,
    /// The routines of ntoskrnl.exe.
    pub ntoskrnl: Arc<Ntoskrnl>,
    /// The ETW runtime.
    pub etw: Arc<EtwRuntime>,
    addresses: Arc<Addresses>,
    thread_objects: Arc<ThreadObjects>,
    wmi_events: Arc<WmiEvents>,
    processors: u16,
}

/// The optional checks and limits of a kernel.
#[derive(Clone, Copy)]
pub struct Checks {
    /// Set to guard every block of non-paged pool.
    pub special_pool: bool,
    /// Set to record notes about style.
    pub notes: bool,
    /// The processor time that driver code may use without calling the kernel.
    pub time_limit: Duration,
}

impl System {
    /// Creates the services.
    pub fn new(
        clock: Clock,
        checks: Checks,
        etw: EtwConfig,
        functions: FunctionTable,
        find_routine: fn(&str) -> Option<u64>,
    ) -> Arc<Self> {
        let hidden: &[&str] = if etw.unspecified_behaviour.activity_id_control_kernel {
            &[]
        } else {
            &["EtwActivityIdControlKernel"]
        };
        let environment = Arc::new(Environment::new(checks.time_limit));
        let clock = Arc::new(clock);
        let verifier = Arc::new(Verifier::new(Arc::clone(&clock), checks.notes));
        let faults = Arc::new(Faults::default());
        let pool = Arc::new(Pool::new(Arc::clone(&environment), checks.special_pool));
        let borrowed = Arc::new(Borrowed::default());
        let addresses = Arc::new(Addresses::new(
            Arc::clone(&environment),
            Arc::clone(&pool),
            Arc::clone(&borrowed),
        ));
        let registry = Arc::new(Registry::new(Arc::clone(&clock)));
        let wmi_events = Arc::new(WmiEvents::default());
        let of_modules = Arc::default();
        let kmdf = Arc::new(Kmdf::new(
            Arc::clone(&clock),
            Arc::clone(&verifier),
            Arc::clone(&registry),
            Arc::clone(&wmi_events),
            Arc::clone(&of_modules),
            functions,
        ));
        let thread_objects = Arc::new(ThreadObjects::default());
        let nodes = Arc::new(Nodes::default());
        let of_framework: Arc<Kmdf> = Arc::clone(&kmdf);
        let of_others: Arc<Nodes> = Arc::clone(&nodes);
        let devices = Arc::new(Every(vec![of_framework, of_others]));
        let ntoskrnl = Arc::new(Ntoskrnl::new(
            NtUses {
                pool: Arc::clone(&pool),
                faults: Arc::clone(&faults),
                clock: Arc::clone(&clock),
                registry: Arc::clone(&registry),
                devices,
                nodes,
                thread_objects: Arc::clone(&thread_objects),
                wmi_events: Arc::clone(&wmi_events),
            },
            of_modules,
            SystemRoutines { find: find_routine, hidden },
            etw.processors,
        ));
        let uses = Uses {
            clock: Arc::clone(&clock),
            verifier: Arc::clone(&verifier),
            faults: Arc::clone(&faults),
            addresses: Arc::clone(&addresses),
            borrowed,
            wmi_events: Arc::clone(&wmi_events),
        };
        let processors = etw.processors;
        Arc::new(Self {
            processors,
            environment,
            clock,
            verifier,
            faults,
            pool,
            registry,
            kmdf,
            ntoskrnl,
            etw: Arc::new(EtwRuntime::new(etw, uses)),
            addresses,
            thread_objects,
            wmi_events,
        })
    }

    /// Returns the services of a thread's kernel.
    pub fn from_thread(thread: &Thread) -> &Self {
        let host: &dyn Any = &**thread.host();
        host.downcast_ref().unwrap_or_else(|| {
            unreachable!("every kernel thread has the kernel's services as its host")
        })
    }

    /// Returns the framework's context for a call or job.
    pub fn kmdf_context(context: Context) -> KmdfContext {
        let kmdf = Arc::clone(&Self::from_thread(&context).kmdf);
        KmdfContext::new(kmdf, context)
    }

    /// Returns the ETW runtime's context for a call or job.
    pub fn etw_context(context: Context) -> EtwContext {
        let services = context.services().downcast_ref::<OfThread>();
        let Some(OfThread { etw }) = services else {
            unreachable!("every kernel thread has the state that the kernel's services made for it")
        };
        EtwContext::new(Rc::clone(etw), context)
    }

    /// Returns the context of ntoskrnl.exe's routines for a call.
    pub fn ntoskrnl_context(context: Context) -> NtContext {
        let nt = Arc::clone(&Self::from_thread(&context).ntoskrnl);
        NtContext::new(nt, context)
    }
}

/// The services' state for a thread.
struct OfThread {
    etw: Rc<EtwOfThread>,
}

/// Set while a thread runs DPCs. DPCs that are queued during that time run after the current one,
/// not inside it.
#[derive(Default)]
struct Draining {
    dpcs: Cell<bool>,
    threaded: Cell<bool>,
}

/// The number of consecutive DPCs that count as endless.
const MAX_DPCS: u32 = 50_000;

/// The first parameter of `DPC_WATCHDOG_VIOLATION` for the cumulative time of several DPCs.
const CUMULATIVE: u64 = 1;

impl System {
    /// Returns whether a DPC is waiting for a lower IRQL.
    fn has_dpc(&self) -> bool {
        timer::is_dpc_pending(&self.kmdf) || dpc::is_pending(&self.ntoskrnl, false)
    }

    /// Runs the waiting DPCs, and the DPCs that they queue.
    fn run_dpcs(context: &Context) {
        let kmdf = Self::kmdf_context(context.clone());
        let nt = Self::ntoskrnl_context(context.clone());
        let mut last = None;
        for _ in 0..MAX_DPCS {
            let of_framework = timer::run_one_dpc(&kmdf).is_some();
            let routine = dpc::run_one(&nt, false);
            if !of_framework && routine.is_none() {
                return;
            }
            last = routine.or(last);
        }
        let last = last.map_or_else(String::new, |routine| {
            let function = context.environment().images.function(routine);
            format!("; the last one is {function}")
        });
        context.bugcheck(
            DPC_WATCHDOG_VIOLATION,
            [CUMULATIVE, 0, 0, 0],
            format!(
                "{MAX_DPCS} DPCs ran one after the other, and the IRQL never fell below \
                 DISPATCH_LEVEL: a DPC, or a timer whose time has passed, was queued again in its own \
                 routine each time{last}"
            ),
            &context.backtrace(),
        );
    }
}

impl System {
    /// Notifies the framework's providers of a WMI data block that its events are enabled or
    /// disabled, on kernel threads. Returns `false` if nothing has changed.
    fn tell_provider(&self, framework: &KmdfContext, nt: &NtContext) -> bool {
        if framework.irql() > Irql::PASSIVE_LEVEL {
            return false;
        }
        let Some(guid) = self.wmi_events.take_changed() else {
            return false;
        };
        for (provider, callback) in providers::to_tell(framework, guid) {
            let kmdf = Arc::clone(&self.kmdf);
            threads::queue_body(nt, callback, move |context| {
                let context = KmdfContext::new(kmdf, Context::clone(context));
                providers::tell(&context, provider, callback);
            });
        }
        true
    }
}

impl Host for System {
    fn of_thread(&self) -> Box<dyn Any> {
        let etw = Rc::new(EtwOfThread::new(Arc::clone(&self.etw)));
        Box::new(OfThread { etw })
    }

    fn address_error(&self, address: u64) -> Option<AddressError> {
        let of_thread = || self.thread_objects.address_error(address);
        self.addresses.address_error(address).or_else(of_thread)
    }

    fn shared_data(&self) -> SharedData {
        let uptime = self.clock.counter();
        SharedData {
            uptime,
            last_interrupt: self.clock.last_interrupt(uptime),
            boot_time: self.clock.boot_time(),
            processors: self.processors,
        }
    }

    fn thread_object(&self, thread: &Rc<Thread>) -> u64 {
        // Routines with a thread object as a parameter accept only addresses that drivers have
        // received.
        objects::current(&Self::ntoskrnl_context(Context::of_job(thread))).0
    }

    fn warn(&self, thread: &Rc<Thread>, call: Call, rule: Rule, sentence: &str) {
        let context = Context::new(Rc::clone(thread), call);
        self.verifier.warn(&context, rule, || sentence.to_owned());
    }

    fn warn_once(&self, rule: Rule, sentence: &str) {
        self.verifier.warn_once(rule, || sentence.to_owned());
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn run_work(&self, thread: &Rc<Thread>, call: Call) -> bool {
        let context = Context::new(Rc::clone(thread), call);
        let nt = Self::ntoskrnl_context(context.clone());
        let framework = Self::kmdf_context(context);
        match work::run_one(&framework) {
            Next::Ran => true,
            Next::None => {
                self.tell_provider(&framework, &nt)
                    || wmi::deliver_one(&nt)
                    || threads::run_one(&nt)
            }
            Next::OfDriver(work) => {
                let kmdf = Arc::clone(&self.kmdf);
                threads::queue_body(&nt, work.routine, move |context| {
                    let context = KmdfContext::new(kmdf, Context::clone(context));
                    (work.run)(&context, work.handle);
                });
                true
            }
        }
    }

    fn next_due(&self) -> Option<i64> {
        let nt = [nt_timer::next_due(&self.ntoskrnl), threads::next_due(&self.ntoskrnl)];
        let all = nt.into_iter().chain([timer::next_due(&self.kmdf)]);
        all.flatten().min()
    }

    fn fire_timers(&self, thread: &Rc<Thread>, call: Call, until: i64) {
        let context = Context::new(Rc::clone(thread), call);
        let kmdf = Self::kmdf_context(context.clone());
        let nt = Self::ntoskrnl_context(context);
        while let Some(due) = nt_timer::next_due(&self.ntoskrnl).filter(|due| *due <= until) {
            // Timers of the framework that are due earlier come first.
            timer::run_timers(&kmdf, due);
            nt_timer::fire_next(&nt, due);
        }
        timer::run_timers(&kmdf, until);
    }

    fn irql_lowered(&self, thread: &Rc<Thread>, call: Call) {
        let draining = thread.local::<Draining>();
        let context = Context::new(Rc::clone(thread), call);
        if !draining.dpcs.get() {
            let _before = RestoreGuard::replace(&draining.dpcs, true);
            while self.has_dpc() {
                context.as_dpc(|| Self::run_dpcs(&context));
            }
        }
        let can_run =
            || thread.irql() == Irql::PASSIVE_LEVEL && dpc::is_pending(&self.ntoskrnl, true);
        let nt = Self::ntoskrnl_context(context);
        if can_run() && !draining.dpcs.get() && !draining.threaded.get() {
            let _before = RestoreGuard::replace(&draining.threaded, true);
            while can_run() && dpc::run_one(&nt, true).is_some() {}
        }
        if thread.irql() < Irql::APC_LEVEL && apcs::is_any(&self.ntoskrnl) {
            apcs::deliver(&nt);
        }
    }

    fn driver_entered(&self, thread: &Thread) -> u128 {
        let activity = self.etw.activities().current(thread.identity().thread);
        u128::from_le_bytes(activity.to_bytes())
    }

    fn driver_left(&self, thread: &Thread, what: &str, before: u128) {
        if self.driver_entered(thread) != before {
            self.verifier.warn_once(Rule::ActivityNotRestored, || {
                format!(
                    "{what} returned with a different activity id than at its call; the \
                     thread's later events will carry it"
                )
            });
        }
    }
}
