//! The structures for Plug and Play and power management, in addition to [`abi`](super::abi).

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::{DispatcherHeader, abi};

abi! {
    /// `DEVICE_CAPABILITIES`.
    DeviceCapabilities as "_DEVICE_CAPABILITIES" {
        size as "Size": u16,
        version as "Version": u16,
        flags as "_bitfield_1": u32,
        address as "Address": u32,
        number as "UINumber": u32,
        /// The device's power state in each system state.
        states as "DeviceState": [u32; 7],
        system_wake as "SystemWake": u32,
        device_wake as "DeviceWake": u32,
        latency_1 as "D1Latency": u32,
        latency_2 as "D2Latency": u32,
        latency_3 as "D3Latency": u32,
    }
    /// `DEVICE_RELATIONS`. More objects can follow it.
    DeviceRelations as "_DEVICE_RELATIONS" {
        count as "Count": u32,
        reserved: u32,
        objects as "Objects": [u64; 1],
    }
    /// `IO_REMOVE_LOCK_COMMON_BLOCK`, the first member of `IO_REMOVE_LOCK`.
    RemoveLock as "_IO_REMOVE_LOCK_COMMON_BLOCK" {
        removed as "Removed": u8,
        reserved as "Reserved": [u8; 3],
        /// 1 for the device, plus 1 for each acquisition.
        count as "IoCount": i32,
        event as "RemoveEvent": DispatcherHeader,
    }
    /// `IO_CSQ`: a driver's cancel-safe queue of requests.
    CancelSafeQueue as "_IO_CSQ" {
        kind as "Type": u32,
        reserved: u32,
        insert as "CsqInsertIrp": u64,
        remove as "CsqRemoveIrp": u64,
        peek as "CsqPeekNextIrp": u64,
        acquire as "CsqAcquireLock": u64,
        release as "CsqReleaseLock": u64,
        complete_cancelled as "CsqCompleteCanceledIrp": u64,
        reserve as "ReservePointer": u64,
    }
    /// `IO_CSQ_IRP_CONTEXT`: identifies one request in a queue.
    CancelSafeContext as "_IO_CSQ_IRP_CONTEXT" {
        kind as "Type": u32,
        reserved: u32,
        irp as "Irp": u64,
        queue as "Csq": u64,
    }
    /// `RTL_BITMAP`.
    Bitmap as "_RTL_BITMAP" {
        /// The number of bits.
        size as "SizeOfBitMap": u32,
        reserved: u32,
        buffer as "Buffer": u64,
    }
    /// `ERESOURCE`.
    ResourceLock as "_ERESOURCE" {
        list as "SystemResourcesList": [u64; 2],
        owners as "OwnerTable": u64,
        /// The number of threads that own the resource.
        active as "ActiveCount": i16,
        flag: u16,
        reserved: u32,
        shared_waiters as "SharedWaiters": u64,
        exclusive_waiters as "ExclusiveWaiters": u64,
        owner as "OwnerEntry": [u64; 2],
        active_entries as "ActiveEntries": u32,
        contention as "ContentionCount": u32,
        shared_count as "NumberOfSharedWaiters": u32,
        exclusive_count as "NumberOfExclusiveWaiters": u32,
        reserved_2 as "Reserved2": u64,
        address: u64,
        lock as "SpinLock": u64,
    }
}
