//! The information that a create request passes to a driver: the requested access, the options, and the
//! security context.

use zerocopy::{FromZeros, IntoBytes};

use super::tokens;
use crate::ground::{
    abi::{AccessState, IoSecurityContext},
    arena::Block,
    memory,
};

/// The parameters of a create request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateParameters {
    /// `ACCESS_MASK`, without generic rights.
    pub access: u32,
    /// The create options, with the disposition in the highest byte.
    pub options: u32,
    /// `FILE_ATTRIBUTE_*`.
    pub attributes: u16,
    /// `FILE_SHARE_*`.
    pub share: u16,
}

impl CreateParameters {
    /// The parameters of a `CreateFile` call for a device with `GENERIC_READ | GENERIC_WRITE`,
    /// shared for both, with `OPEN_EXISTING` and `FILE_FLAG_OVERLAPPED`. The disposition is
    /// `FILE_OPEN`, the option is `FILE_NON_DIRECTORY_FILE`, and the attribute is
    /// `FILE_ATTRIBUTE_NORMAL`.
    pub const OF_PROCESS: Self = Self::new(0xC000_0000, [1, 0x40], 0x80, 3);

    /// The parameters of the same call without `FILE_FLAG_OVERLAPPED`, which adds the option
    /// `FILE_SYNCHRONOUS_IO_NONALERT`.
    pub const OF_SYNCHRONOUS_PROCESS: Self = Self::new(0xC000_0000, [1, 0x60], 0x80, 3);

    /// Returns whether the file is open for synchronous requests, that is, with the option
    /// `FILE_SYNCHRONOUS_IO_ALERT` or `FILE_SYNCHRONOUS_IO_NONALERT`.
    pub const fn is_synchronous(self) -> bool {
        self.options & 0x30 != 0
    }

    /// Returns the parameters of an open given generic rights, which are converted to file rights,
    /// and a disposition and create options as in `ZwCreateFile`.
    pub const fn new(
        access: u32,
        [disposition, options]: [u32; 2],
        attributes: u32,
        share: u32,
    ) -> Self {
        /// The generic rights, and the corresponding file rights.
        const GENERIC: [(u32, u32); 4] = [
            (0x8000_0000, 0x0012_0089),
            (0x4000_0000, 0x0012_0116),
            (0x2000_0000, 0x0012_00A0),
            (0x1000_0000, 0x001F_01FF),
        ];
        let mut mapped = access & 0x0FFF_FFFF;
        let mut at = 0;
        while at < GENERIC.len() {
            let (generic, rights) = GENERIC[at];
            if access & generic != 0 {
                mapped |= rights;
            }
            at += 1;
        }
        Self {
            access: mapped,
            options: disposition << 24 | options & 0x00FF_FFFF,
            attributes: (attributes & 0xFFFF) as u16,
            share: (share & 0xFFFF) as u16,
        }
    }
}

/// `FO_SYNCHRONOUS_IO`: the flag of a file object that is open for synchronous requests.
pub const SYNCHRONOUS_IO: u32 = 2;

/// The memory of a create request's security context: the `IO_SECURITY_CONTEXT`, and the `ACCESS_STATE`
/// to which it points. It is readable until the value is dropped.
pub struct SecurityContext {
    memory: Block,
    parameters: CreateParameters,
}

impl SecurityContext {
    /// Creates the structures for an open by a process to which the access check has already
    /// granted access.
    pub fn new(parameters: CreateParameters, process: u32) -> Self {
        let size = size_of::<IoSecurityContext>() + size_of::<AccessState>();
        let memory = Block::zeroed(size);
        let state = memory.address() + size_of::<IoSecurityContext>() as u64;
        let mut security = IoSecurityContext::new_zeroed();
        security.access_state = state;
        security.desired_access = parameters.access;
        security.full_create_options = parameters.options;
        let mut access = AccessState::new_zeroed();
        access.previously_granted_access = parameters.access;
        access.original_desired_access = parameters.access;
        access.subject_security_context = [0, 0, tokens::of_process(process), u64::from(process)];
        let bytes = [security.as_bytes(), access.as_bytes()].concat();
        let written = memory::write_bytes(memory.address(), &bytes);
        debug_assert!(written.is_ok(), "the kernel's own memory is writable");
        Self { memory, parameters }
    }

    /// Returns the four words of `Parameters.Create`, which a stack location and a
    /// `WDF_REQUEST_PARAMETERS` contain.
    pub fn words(&self) -> [u64; 4] {
        let given = self.parameters;
        [
            self.memory.address(),
            u64::from(given.options),
            u64::from(given.attributes) | u64::from(given.share) << 16,
            0,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_rights_become_those_of_files() {
        let of_process = CreateParameters::OF_PROCESS;
        assert_eq!((of_process.access, of_process.options), (0x12_019F, 0x0100_0040));
        assert_eq!(CreateParameters::new(0x10_0001, [1, 0], 0, 0).access, 0x10_0001);
        assert_eq!(CreateParameters::new(0x1000_0000, [1, 0], 0, 0).access, 0x1F_01FF);
    }
}
