//! The addresses that drivers pass: what lies there, and whether they may pass it.

use crate::{
    arena::Arena,
    irql::Irql,
    machine::Shared,
    memory::{self, BadAddress},
    thread::Thread,
    verifier::Rule,
};

/// What is wrong with an address.
struct Finding {
    rule: Option<Rule>,
    /// Completes "which ...".
    what: String,
}

impl Shared {
    /// What is wrong with an address that cannot be accessed, where more than that is
    /// known: completes "which ...".
    pub fn about(&self, address: u64) -> Option<String> {
        self.finding(address).map(|finding| {
            let number = finding.rule.map_or("", Rule::number);
            if number.is_empty() {
                finding.what
            } else {
                format!("{} [{number}]", finding.what)
            }
        })
    }

    fn finding(&self, address: u64) -> Option<Finding> {
        if self.is_pageable(address) {
            return Some(Finding {
                rule: Some(Rule::PageableData),
                what: "is in pageable memory, which cannot be accessed at DISPATCH_LEVEL or above"
                    .to_owned(),
            });
        }
        if self.lent().held(address) {
            return Some(Finding {
                rule: Some(Rule::LoanKept),
                what: "was lent to an enable callback that has returned".to_owned(),
            });
        }
        if self.lent().is_behind(address) {
            return Some(Finding {
                rule: Some(Rule::FilterOverrun),
                what: "is past the end of the filter data that an enable callback was given"
                    .to_owned(),
            });
        }
        self.gone(address)
    }

    /// Whether an address was good once: in a section that was discarded, or a block that
    /// was freed. Completes "which ...".
    pub fn about_what_is_gone(&self, address: u64) -> Option<String> {
        self.gone(address).map(|finding| finding.what)
    }

    fn gone(&self, address: u64) -> Option<Finding> {
        if let Some(image) = self
            .images()
            .iter()
            .find(|image| image.is_discarded(address))
        {
            return Some(Finding {
                rule: Some(Rule::DiscardedCode),
                what: format!(
                    "is in a section of {} that was discarded when the driver had started",
                    image.name()
                ),
            });
        }
        let freed = self.pool().freed_at(address);
        freed.map(|freed| Finding {
            rule: Some(Rule::FreedData),
            what: format!(
                "is in a block with the tag {} that {} freed from {}",
                freed.tag,
                freed.by.name(),
                self.place(freed.by.return_address)
            ),
        })
    }

    /// Whether an address is in paged pool or a pageable section.
    pub fn is_pageable(&self, address: u64) -> bool {
        self.paged.contains(address) || self.images().iter().any(|image| image.is_pageable(address))
    }
}

impl Thread {
    /// Fills `buffer` with bytes that the driver passed the address of; a bad address stops
    /// the machine.
    pub fn read_into(&self, address: u64, buffer: &mut [u8]) {
        if let Err(error) = memory::read_into(address, buffer) {
            self.stop_for_address(error);
        }
    }

    /// Reads a structure that the driver passed; a bad address stops the machine.
    pub fn read<T: zerocopy::FromBytes + zerocopy::IntoBytes>(&self, address: u64) -> T {
        match memory::read(address) {
            Ok(value) => value,
            Err(error) => self.stop_for_address(error),
        }
    }

    /// Writes a result where the driver asked for it.
    pub fn write<T: zerocopy::IntoBytes + zerocopy::Immutable>(&self, address: u64, value: &T) {
        if let Err(error) = memory::write(address, value) {
            self.stop_for_address(error);
        }
    }

    /// Stops the machine for an address that cannot be accessed.
    pub fn stop_for_address(&self, error: BadAddress) -> ! {
        let call = self.call();
        let finding = self.shared().finding(error.address);
        let (rule, what) = match finding {
            Some(finding) => (
                finding.rule.unwrap_or(Rule::BadAddress),
                format!(", which {}", finding.what),
            ),
            None => (self.rule_for_addresses(), String::new()),
        };
        self.stop(
            rule,
            format!(
                "{} was called at {} from {} with a bad pointer: {error}{what}",
                call.name(),
                call.irql,
                self.shared().place(call.return_address)
            ),
        )
    }

    /// The rule that a bad pointer to the present call breaks.
    fn rule_for_addresses(&self) -> Rule {
        match self.call().name() {
            "EtwRegister" => Rule::RegisterPointer,
            "EtwActivityIdControl" => Rule::ActivityPointer,
            name if name.starts_with("EtwWrite") => Rule::UserSpaceData,
            _ => Rule::BadAddress,
        }
    }

    /// Checks an address that a driver passes to ETW, which can be accessed by luck and be
    /// wrong all the same (V40, V41, V54).
    pub fn check_address(&self, what: &str, address: u64, length: u64) {
        let complain = |rule: Rule, why: &str| {
            let call = self.call();
            self.stop(
                rule,
                format!(
                    "{} was called at {} from {} with {what} at 0x{address:016X}, which {why}",
                    call.name(),
                    call.irql,
                    self.shared().place(call.return_address)
                ),
            )
        };
        if length == 0 {
            return;
        }
        if self.stack().contains(address) {
            if address < self.call().stack {
                complain(
                    Rule::FreedData,
                    "is below the stack pointer: what was there has gone out of scope",
                );
            }
            return;
        }
        let shared = self.shared();
        if Arena::non_paged().contains(address) {
            let freed = shared.pool().freed_at(address);
            if let Some(freed) = freed {
                let why = format!(
                    "is in a block with the tag {} that {} freed from {}",
                    freed.tag,
                    freed.by.name(),
                    shared.place(freed.by.return_address)
                );
                complain(Rule::FreedData, &why);
            }
            return;
        }
        if shared.paged.contains(address) {
            if self.irql() > Irql::APC_LEVEL {
                complain(Rule::PageableData, "is in paged pool");
            }
            return;
        }
        let images = shared.images();
        let image = images.iter().find(|image| image.contains(address));
        let pageable = image.is_some_and(|image| image.is_pageable(address));
        let known = image.is_some();
        drop(images);
        if pageable && self.irql() > Irql::APC_LEVEL {
            complain(Rule::PageableData, "is in a pageable section");
        }
        if !known {
            complain(
                self.rule_for_addresses(),
                "is not in system space: neither in a driver, nor in pool, nor on the stack",
            );
        }
    }
}
