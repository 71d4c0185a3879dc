//! The security descriptors of objects.

use std::collections::HashMap;

use super::security_descriptors::{
    DACL, DACL_PRESENT, GROUP, OWNER, SACL, SACL_PRESENT, self_relative,
};
use crate::services::ntoskrnl::{context::Context, well_known};

/// The parts that `SECURITY_INFORMATION` selects: the bit, and the part's index.
pub const SELECTED: [(u32, usize); 4] = [(1, OWNER), (2, GROUP), (4, DACL), (8, SACL)];

/// A stored descriptor: the parts, and the control bits for the lists that are present.
#[derive(Clone)]
pub struct Kept {
    pub control: u16,
    pub parts: [Vec<u8>; 4],
}

impl Kept {
    /// Returns a device's default descriptor: the system and administrators have all rights, and
    /// other users can read and write.
    fn default_of_objects() -> Self {
        /// `FILE_ALL_ACCESS`, and the rights to read, write and execute.
        const ALL: u32 = 0x001F_01FF;
        const LIMITED: u32 = 0x0012_01BF;
        let system = well_known::identifier(5, &[18]);
        let administrators = well_known::identifier(5, &[32, 544]);
        let world = well_known::identifier(1, &[0]);
        let entry = |mask: u32, sid: &[u8]| {
            let size = u16::try_from(8 + sid.len()).unwrap_or(0);
            let mut bytes = vec![0, 0];
            bytes.extend(size.to_le_bytes());
            bytes.extend(mask.to_le_bytes());
            bytes.extend(sid);
            bytes
        };
        let entries =
            [entry(ALL, &system), entry(ALL, &administrators), entry(LIMITED, &world)].concat();
        let size = u16::try_from(8 + entries.len()).unwrap_or(0);
        let mut list = vec![2, 0];
        list.extend(size.to_le_bytes());
        list.extend([3, 0, 0, 0]);
        list.extend(entries);
        Self { control: DACL_PRESENT, parts: [administrators, system, Vec::new(), list] }
    }

    /// Returns the descriptor with the parts that `information` selects.
    pub fn selected(&self, information: u32) -> Vec<u8> {
        let mut chosen: [Vec<u8>; 4] = Default::default();
        let mut control = 0;
        for (bit, part) in SELECTED {
            if information & bit != 0
                && let (Some(to), Some(from)) = (chosen.get_mut(part), self.parts.get(part))
            {
                to.clone_from(from);
                control |= self.control & present(part);
            }
        }
        self_relative(control, &chosen)
    }
}

/// Returns the control bit that is set if a list is present.
pub const fn present(part: usize) -> u16 {
    match part {
        DACL => DACL_PRESENT,
        SACL => SACL_PRESENT,
        _ => 0,
    }
}

/// The descriptors that were set, by object.
#[derive(Default)]
struct Descriptors(HashMap<u64, Kept>);

/// Returns the descriptor of an object.
pub fn kept(context: &Context, object: u64) -> Kept {
    let found = context.state().get::<Descriptors>().0.get(&object).cloned();
    found.unwrap_or_else(Kept::default_of_objects)
}

/// Stores the descriptor of an object.
pub fn keep(context: &Context, object: u64, kept: Kept) {
    context.state().get::<Descriptors>().0.insert(object, kept);
}

/// Removes the descriptor of a deleted object, because a new object can have its address.
pub fn forget(context: &Context, object: u64) {
    context.state().get::<Descriptors>().0.remove(&object);
}
