//! The sharing modes of opens, which a driver keeps for each of its files (`SHARE_ACCESS`).

use zerocopy::FromZeros;

use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        abi::{FileObject, ShareAccess},
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("IoSetShareAccess", set),
    routine("IoCheckShareAccess", check),
    routine("IoUpdateShareAccess", update),
    routine("IoRemoveShareAccess", remove),
];

const SHARING_VIOLATION: NtStatus = NtStatus::from_bits(0xC000_0043);

/// Stores what an open requests in its file object, and returns the object. The sharing mode counts
/// only for an open that reads, writes or deletes.
fn store(context: &Context, access: u32, share: u32, file: At<FileObject>) -> FileObject {
    /// `FILE_READ_DATA | FILE_EXECUTE`, `FILE_WRITE_DATA | FILE_APPEND_DATA`, and `DELETE`.
    const ACCESS: [u32; 3] = [0x21, 0x6, 0x1_0000];
    /// `FILE_SHARE_READ`, `FILE_SHARE_WRITE` and `FILE_SHARE_DELETE`.
    const SHARE: [u32; 3] = [1, 2, 4];
    let mut value = file.read(context);
    [value.read_access, value.write_access, value.delete_access] =
        ACCESS.map(|bits| u8::from(access & bits != 0));
    if counts(&value) {
        [value.shared_read, value.shared_write, value.shared_delete] =
            SHARE.map(|bit| u8::from(share & bit != 0));
    }
    file.write(context, value);
    value
}

/// Returns whether an open counts: whether it reads, writes or deletes.
const fn counts(file: &FileObject) -> bool {
    file.read_access | file.write_access | file.delete_access != 0
}

/// Adds an open to the counts, or removes it.
fn count(
    context: &Context,
    file: &FileObject,
    opens: At<ShareAccess>,
    change: fn(u32, u32) -> u32,
) {
    if !counts(file) {
        return;
    }
    let mut all = opens.read(context);
    for (count, by) in [
        (&mut all.open_count, 1),
        (&mut all.readers, file.read_access),
        (&mut all.writers, file.write_access),
        (&mut all.deleters, file.delete_access),
        (&mut all.shared_read, file.shared_read),
        (&mut all.shared_write, file.shared_write),
        (&mut all.shared_delete, file.shared_delete),
    ] {
        *count = change(*count, by.into());
    }
    opens.write(context, all);
}

/// Stores the first open of a file.
fn set(context: &Context, access: u32, share: u32, file: At<FileObject>, opens: At<ShareAccess>) {
    let file = store(context, access, share, file);
    opens.write(context, ShareAccess::new_zeroed());
    count(context, &file, opens, u32::wrapping_add);
}

/// Fails if an open conflicts with the others. Otherwise adds it if `adds` is set.
fn check(
    context: &Context,
    access: u32,
    share: u32,
    file: At<FileObject>,
    opens: At<ShareAccess>,
    adds: bool,
) -> NtResult {
    let file = store(context, access, share, file);
    let all = opens.read(context);
    let conflicts = [
        (file.read_access, all.shared_read, all.readers, file.shared_read),
        (file.write_access, all.shared_write, all.writers, file.shared_write),
        (file.delete_access, all.shared_delete, all.deleters, file.shared_delete),
    ]
    .into_iter()
    .any(|(wants, sharers, users, shares)| {
        (wants != 0 && sharers < all.open_count) || (users != 0 && shares == 0)
    });
    if counts(&file) && conflicts {
        return Err(SHARING_VIOLATION);
    }
    if adds {
        count(context, &file, opens, u32::wrapping_add);
    }
    Ok(())
}

fn update(context: &Context, file: At<FileObject>, opens: At<ShareAccess>) {
    count(context, &file.read(context), opens, u32::wrapping_add);
}

fn remove(context: &Context, file: At<FileObject>, opens: At<ShareAccess>) {
    count(context, &file.read(context), opens, u32::wrapping_sub);
}
