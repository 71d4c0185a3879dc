//! Memory objects, lookaside lists, strings and collections.

use core::ptr;

use etw_driver_support::made;
use wdk_sys::{
    _POOL_TYPE::{NonPagedPoolNx, PagedPool},
    _WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive,
    NTSTATUS, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_BUFFER_SIZE, STATUS_SUCCESS, UNICODE_STRING,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFMEMORY, WDFSTRING,
};

use super::common::{INVALID_PARAMETER, STATUS_WDF_EXECUTION_LEVEL_INVALID, object, same};
use crate::framework::{attributes, child_of, counted, utf16, wdf};

const NONE: *mut wdk_sys::WDF_OBJECT_ATTRIBUTES = WDF_NO_OBJECT_ATTRIBUTES;

fn allocated(size: usize) -> (NTSTATUS, WDFMEMORY) {
    made(|handle| wdf!(WdfMemoryCreate, NONE, NonPagedPoolNx, 0, size, handle, ptr::null_mut()))
}

pub fn check(device: WDFDEVICE) {
    check_memory();
    check_lookaside();
    check_strings();
    check_collections(device);
}

fn check_memory() {
    same!("memory-of-no-bytes", allocated(0).0, INVALID_PARAMETER);
    let (_, memory) = allocated(8);
    let mut bytes = [7_u8; 16];
    let buffer = bytes.as_mut_ptr().cast();
    let to = |at, length| wdf!(WdfMemoryCopyToBuffer, memory, at, buffer, length);
    let from = |at, length| wdf!(WdfMemoryCopyFromBuffer, memory, at, buffer, length);
    same!("copy-to-no-bytes", to(0, 0), INVALID_PARAMETER);
    same!(
        "copy-to-past-the-end",
        [to(0, 9), to(8, 1), to(1, 7)],
        [STATUS_BUFFER_TOO_SMALL, STATUS_BUFFER_TOO_SMALL, STATUS_SUCCESS]
    );
    same!("copy-from-no-bytes", from(0, 0), INVALID_PARAMETER);
    same!(
        "copy-from-past-the-end",
        [from(0, 9), from(8, 1), from(1, 7)],
        [STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_BUFFER_SIZE, STATUS_SUCCESS]
    );
    wdf!(WdfObjectDelete, memory.cast());
    let preallocated =
        |size| made(|handle| wdf!(WdfMemoryCreatePreallocated, NONE, buffer, size, handle));
    same!("preallocated-no-bytes", preallocated(0).0, INVALID_PARAMETER);
    let (_, memory) = preallocated(16);
    same!("assign-no-bytes", wdf!(WdfMemoryAssignBuffer, memory, buffer, 0), INVALID_PARAMETER);
    let status = wdf!(WdfMemoryAssignBuffer, memory, buffer, 3);
    let mut size = 0;
    let same = wdf!(WdfMemoryGetBuffer, memory, &raw mut size) == buffer;
    same!("assign", (status, same, size), (STATUS_SUCCESS, true, 3));
    wdf!(WdfObjectDelete, memory.cast());
}

fn check_lookaside() {
    let list = |size, memory| {
        made(|handle| wdf!(WdfLookasideListCreate, NONE, size, PagedPool, memory, 0, handle))
    };
    same!("lookaside-of-no-bytes", list(0, NONE).0, INVALID_PARAMETER);
    let mut passive = attributes();
    passive.ExecutionLevel = WdfExecutionLevelPassive;
    let status = list(8, &raw mut passive).0;
    same!("lookaside-memory-attributes", status, STATUS_WDF_EXECUTION_LEVEL_INVALID);
    let (_, lookaside) = list(24, NONE);
    let (status, memory) = made(|handle| wdf!(WdfMemoryCreateFromLookaside, lookaside, handle));
    let mut size = 0;
    let _buffer = wdf!(WdfMemoryGetBuffer, memory, &raw mut size);
    same!("lookaside-size", (status, size), (STATUS_SUCCESS, 24));
    wdf!(WdfObjectDelete, memory.cast());
    wdf!(WdfObjectDelete, lookaside.cast());
}

const TEXT: [u16; 4] = utf16(b"Text");

fn string(of: *const UNICODE_STRING) -> (NTSTATUS, WDFSTRING) {
    made(|handle| wdf!(WdfStringCreate, of, NONE, handle))
}

fn check_strings() {
    let fields = |string| {
        let mut text = UNICODE_STRING::default();
        wdf!(WdfStringGetUnicodeString, string, &raw mut text);
        (text.Length, text.MaximumLength, text.Buffer)
    };
    let (status, empty) = string(ptr::null());
    same!("string-empty", (status, fields(empty)), (STATUS_SUCCESS, (0, 0, ptr::null_mut())));
    let text = counted(&TEXT);
    let (_, copy) = string(&raw const text);
    let (length, room, buffer) = fields(copy);
    let last = buffer.wrapping_add(4);
    // SAFETY: the framework ends the copy with a NUL.
    let last = unsafe { *last };
    same!("string-copy", (length, room, last), (8, 10, 0));
    let status = |text: UNICODE_STRING| string(&raw const text).0;
    same!("string-odd", status(UNICODE_STRING { Length: 7, ..text }), INVALID_PARAMETER);
    same!("string-too-long", status(UNICODE_STRING { Length: 10, ..text }), INVALID_PARAMETER);
    let no_buffer = UNICODE_STRING { Length: 0, Buffer: ptr::null_mut(), ..text };
    same!("string-no-buffer", status(no_buffer), INVALID_PARAMETER);
    wdf!(WdfObjectDelete, empty.cast());
    wdf!(WdfObjectDelete, copy.cast());
}

fn check_collections(device: WDFDEVICE) {
    let mut attributes = child_of(device.cast());
    let (_, items) = made(|handle| wdf!(WdfCollectionCreate, &raw mut attributes, handle));
    same!("collection-empty", wdf!(WdfCollectionGetFirstItem, items).is_null(), true);
    let (_, item) = object(&mut attributes);
    let added = [0, 1].map(|_| wdf!(WdfCollectionAdd, items, item));
    let count = wdf!(WdfCollectionGetCount, items);
    same!("collection-add-twice", (added, count), ([STATUS_SUCCESS; 2], 2));
    // The collection keeps the second item, which is deleted.
    let (_, second) = object(&mut attributes);
    let _status = wdf!(WdfCollectionAdd, items, second);
    wdf!(WdfObjectDelete, second);
    let order = [0, 1, 2].map(|index| wdf!(WdfCollectionGetItem, items, index));
    same!("collection-order", order, [item, item, second]);
    wdf!(WdfCollectionRemove, items, item);
    wdf!(WdfCollectionRemoveItem, items, 1);
    let ends = [wdf!(WdfCollectionGetFirstItem, items), wdf!(WdfCollectionGetLastItem, items)];
    same!("collection-ends", ends, [item; 2]);
    // The framework ignores this call.
    wdf!(WdfCollectionRemoveItem, items, 5);
    let left = (wdf!(WdfCollectionGetCount, items), wdf!(WdfCollectionGetItem, items, 1));
    same!("collection-remove", left, (1, ptr::null_mut()));
    wdf!(WdfObjectDelete, items.cast());
    wdf!(WdfObjectDelete, item);
}
