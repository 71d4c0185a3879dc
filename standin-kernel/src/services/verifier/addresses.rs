//! Checks of the addresses that drivers pass.

use std::sync::Arc;

use super::borrowed::Borrowed;
use crate::{
    execution::{context::Context, environment::Environment},
    ground::{access::AddressError, arena::Arena, irql::Irql, rule::Rule},
    services::managers::pool::{Freed, Pool, SoundAddresses},
};

/// Checks addresses.
pub struct Addresses {
    environment: Arc<Environment>,
    pool: Arc<Pool>,
    borrowed: Arc<Borrowed>,
}

impl Addresses {
    /// Creates the checks from the services that own memory.
    pub const fn new(
        environment: Arc<Environment>,
        pool: Arc<Pool>,
        borrowed: Arc<Borrowed>,
    ) -> Self {
        Self { environment, pool, borrowed }
    }

    /// Returns whether a pool block starts at this address.
    pub fn is_block(&self, address: u64) -> bool {
        self.pool.size(address).is_some()
    }

    /// Returns the reason that an address cannot be accessed, if it is known.
    pub fn address_error(&self, address: u64) -> Option<AddressError> {
        if self.is_pageable(address) {
            return Some(AddressError {
                rule: Some(Rule::PageableData),
                what: "is in pageable memory, which cannot be accessed at DISPATCH_LEVEL or above"
                    .to_owned(),
            });
        }
        if self.borrowed.is_over(address) {
            return Some(AddressError {
                rule: Some(Rule::BorrowedDataKept),
                what: "was borrowed by an enable callback that has returned".to_owned(),
            });
        }
        if self.borrowed.is_behind(address) {
            return Some(AddressError {
                rule: Some(Rule::FilterOverrun),
                what: "is past the end of the filter data passed to an enable callback".to_owned(),
            });
        }
        self.gone(address)
    }

    /// Returns a phrase that completes "which ..." if a previously valid address is in a discarded
    /// section or a freed block.
    pub fn describe_stale(&self, address: u64) -> Option<String> {
        self.gone(address).map(|error| error.what)
    }

    fn gone(&self, address: u64) -> Option<AddressError> {
        let images = &self.environment.images;
        if let Some(image) = images.discarded_at(address) {
            return Some(AddressError {
                rule: Some(Rule::DiscardedCode),
                what: format!(
                    "is in a section of {image} that was discarded after the driver started"
                ),
            });
        }
        self.freed(address).map(|what| AddressError { rule: Some(Rule::FreedData), what })
    }

    /// Returns a phrase that completes "which ..." if an address is in a freed pool block.
    fn freed(&self, address: u64) -> Option<String> {
        let freed = self.pool.freed_at(address)?;
        Some(self.describe_freed(&freed))
    }

    fn describe_freed(&self, freed: &Freed) -> String {
        format!(
            "is in a block with the tag {} that {} freed from {}",
            freed.tag,
            freed.by.name,
            self.environment.images.explain(&freed.backtrace).place
        )
    }

    /// Returns whether an address is in paged pool or a pageable section.
    fn is_pageable(&self, address: u64) -> bool {
        self.environment.paged.contains(address) || self.environment.images.is_pageable(address)
    }

    /// Returns whether a number is an address in memory that drivers can access.
    pub fn is_kernel_address(&self, value: u64) -> bool {
        Arena::non_paged().contains(value)
            || self.environment.paged.contains(value)
            || self.environment.images.contains(value)
    }

    /// Checks an address that a driver passes to ETW. An accessible address can still be wrong
    /// (V40, V41, V54). `sound` belongs to the calling thread.
    pub fn check(
        &self,
        context: &Context,
        sound: &SoundAddresses,
        what: &str,
        address: u64,
        length: u64,
    ) {
        let complain = |rule: Rule, why: &str| {
            let call = context.call();
            context.stop(
                rule,
                format!(
                    "{} was called at {} from {} with {what} at 0x{address:016X}, which {why}",
                    call.name,
                    call.irql,
                    context.caller()
                ),
            )
        };
        if length == 0 {
            return;
        }
        if context.stack().contains(address) {
            if address < context.call().stack {
                complain(
                    Rule::FreedData,
                    "is below the stack pointer: the variable there has gone out of scope",
                );
            }
            return;
        }
        if Arena::non_paged().contains(address) {
            if let Some(freed) = self.pool.freed_at_again(address, sound) {
                let why = self.describe_freed(&freed);
                complain(Rule::FreedData, &why);
            }
            return;
        }
        if self.environment.paged.contains(address) {
            if context.irql() > Irql::APC_LEVEL {
                complain(Rule::PageableData, "is in paged pool");
            }
            return;
        }
        let is_pageable = self.environment.images.pageable_at(address);
        // The address may be on this thread's other stack, or on the stack of a waiting thread. If
        // that thread is running driver code, the extent of its stack is unknown. Only this check
        // uses a lock that all threads share, so it comes last.
        if is_pageable.is_none()
            && let Some(pointer) = self.environment.live_stacks.pointer_at(address)
        {
            if address < pointer && !self.environment.is_parallel() {
                complain(
                    Rule::FreedData,
                    "is below the stack pointer of its thread: the variable there has gone out of scope",
                );
            }
            return;
        }
        match is_pageable {
            Some(true) if context.irql() > Irql::APC_LEVEL => {
                complain(Rule::PageableData, "is in a pageable section");
            }
            Some(_) => {}
            None => complain(
                context.rule_for_addresses(),
                "is not in system space: neither in a driver, nor in pool, nor on a stack",
            ),
        }
    }
}
