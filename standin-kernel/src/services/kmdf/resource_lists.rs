//! The hardware resources that a test assigns to a device, as lists that the driver reads.

use crate::{
    execution::routine::{Argument, At, Handle, routine},
    ground::{NtResult, NtStatus, arena::Block, memory, opaque::PartialResourceDescriptor},
    services::kmdf::{
        lifetime::create,
        state::{
            device::DeviceData,
            framework::{Context, Data, Entries},
        },
    },
};

/// The size of a `CM_PARTIAL_RESOURCE_DESCRIPTOR`.
pub const DESCRIPTOR: usize = 20;

/// `CmResourceTypePort`, `CmResourceTypeInterrupt` and `CmResourceTypeMemory`.
const PORT: u8 = 1;
const INTERRUPT: u8 = 2;
const MEMORY: u8 = 3;

/// `CM_RESOURCE_INTERRUPT_LATCHED` and `CM_RESOURCE_INTERRUPT_MESSAGE`.
const LATCHED: u16 = 1;
const MESSAGE: u16 = 2;

/// A hardware resource that a test assigns to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Memory-mapped registers: the physical address and the length in bytes.
    Memory {
        /// The physical address.
        start: u64,
        /// The length in bytes.
        length: u32,
    },
    /// I/O ports: the first port and the length in bytes.
    Port {
        /// The first port.
        start: u64,
        /// The length in bytes.
        length: u32,
    },
    /// A line-based, level-triggered interrupt.
    Interrupt {
        /// The vector.
        vector: u32,
    },
    /// Message-signaled interrupts.
    Messages {
        /// The number of messages.
        count: u16,
        /// The first message's vector.
        vector: u32,
    },
}

impl Resource {
    /// Returns the number of interrupts.
    #[must_use]
    pub const fn interrupts(self) -> u16 {
        match self {
            Self::Interrupt { .. } => 1,
            Self::Messages { count, .. } => count,
            Self::Memory { .. } | Self::Port { .. } => 0,
        }
    }

    /// Returns whether an interrupt is message-signaled.
    #[must_use]
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Messages { .. })
    }

    /// Returns the vector of an interrupt.
    #[must_use]
    pub const fn vector(self) -> u32 {
        match self {
            Self::Interrupt { vector } | Self::Messages { vector, .. } => vector,
            Self::Memory { .. } | Self::Port { .. } => 0,
        }
    }

    /// Returns the resource's descriptor. A translated message descriptor has the layout of a line
    /// descriptor. It contains the IRQL at the position at which the raw descriptor contains the
    /// count.
    fn descriptor(self, is_translated: bool) -> [u8; DESCRIPTOR] {
        /// `CmResourceShareDeviceExclusive`.
        const EXCLUSIVE: u8 = 1;
        /// The IRQL of device interrupts.
        const LEVEL: u32 = 3;
        /// The set of processors that a line can interrupt.
        const AFFINITY: u64 = 1;
        let (kind, flags, first, second) = match self {
            Self::Memory { start, length } => (MEMORY, 0, start, u64::from(length)),
            // CM_RESOURCE_PORT_IO
            Self::Port { start, length } => (PORT, 1, start, u64::from(length)),
            Self::Interrupt { vector } => {
                let words = u64::from(LEVEL) | u64::from(vector) << 32;
                (INTERRUPT, 0, words, AFFINITY)
            }
            Self::Messages { count, vector } => {
                // A raw descriptor contains the group, the number of messages, and the vector.
                let low = if is_translated { LEVEL } else { u32::from(count) << 16 };
                let words = u64::from(low) | u64::from(vector) << 32;
                (INTERRUPT, LATCHED | MESSAGE, words, AFFINITY)
            }
        };
        let mut bytes = [0; DESCRIPTOR];
        let [flags_0, flags_1] = u16::to_le_bytes(flags);
        let head = [kind, EXCLUSIVE, flags_0, flags_1];
        let tail = first.to_le_bytes().into_iter().chain(second.to_le_bytes());
        for (slot, byte) in bytes.iter_mut().zip(head.into_iter().chain(tail)) {
            *slot = byte;
        }
        bytes
    }
}

/// The resources of a device.
#[derive(Default)]
pub struct Resources {
    /// The resources that the test assigned to the device.
    pub given: Vec<Resource>,
    /// The list objects, created when the device starts.
    raw: Option<u64>,
    translated: Option<u64>,
}

/// A list of resources.
pub struct ResourceListData {
    descriptors: Vec<Block>,
}

impl Data for ResourceListData {
    const NAME: &'static str = "WDFCMRESLIST";

    fn is_frameworks(&self) -> bool {
        true
    }
}

pub const ENTRIES: Entries = &[
    routine("WdfCmResourceListGetCount", get_count),
    routine("WdfCmResourceListGetDescriptor", get_descriptor),
    routine("WdfCmResourceListAppendDescriptor", append),
    routine("WdfCmResourceListInsertDescriptor", insert),
    routine("WdfCmResourceListRemove", remove::<u32>),
    routine("WdfCmResourceListRemoveByDescriptor", remove::<At<PartialResourceDescriptor>>),
];

/// Returns a device's lists of raw and translated resources, which are created on the first call.
pub fn lists(context: &Context, device: u64) -> NtResult<[u64; 2]> {
    let (given, raw, translated) = context.with::<DeviceData, _>(device, |device| {
        let resources = device.part::<Resources>();
        (resources.given.clone(), resources.raw, resources.translated)
    });
    if let (Some(raw), Some(translated)) = (raw, translated) {
        return Ok([raw, translated]);
    }
    let list = |is_translated| {
        let descriptors = given.iter().map(|resource| {
            let block = Block::zeroed(DESCRIPTOR);
            let bytes = resource.descriptor(is_translated);
            let written = memory::write_bytes(block.address(), &bytes);
            debug_assert!(written.is_ok(), "the kernel's own memory is writable");
            block
        });
        let descriptors = descriptors.collect();
        create(context, ResourceListData { descriptors }, None, Some(device))
    };
    let made = [list(false)?, list(true)?];
    let [raw, translated] = made;
    context.with::<DeviceData, _>(device, |device| {
        let resources = device.part::<Resources>();
        resources.raw = Some(raw);
        resources.translated = Some(translated);
    });
    Ok(made)
}

/// Returns the index of a descriptor in a device's list of translated resources.
pub fn place_of(context: &Context, device: u64, descriptor: u64) -> Option<usize> {
    let list =
        context.with::<DeviceData, _>(device, |device| device.part::<Resources>().translated)?;
    context.with::<ResourceListData, _>(list, |list| {
        let mut all = list.descriptors.iter();
        all.position(|block| block.address() == descriptor)
    })
}

fn get_count(context: &Context, list: Handle<ResourceListData>) -> u32 {
    let count = list.with(context, |list| list.descriptors.len());
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the address of a descriptor, or 0 past the end of the list.
fn get_descriptor(
    context: &Context,
    list: Handle<ResourceListData>,
    index: u32,
) -> At<PartialResourceDescriptor> {
    let index = index as usize;
    At::new(list.with(context, |list| list.descriptors.get(index).map_or(0, Block::address)))
}

/// Fails to change a list. Drivers may change lists only in callbacks that filter resources, which
/// the stand-in kernel does not call.
fn refuse(context: &Context, list: u64) -> NtStatus {
    context.with::<ResourceListData, _>(list, |_| ());
    context.warn_of_misuse(|| "for a list of resources that the driver may only read".to_owned());
    NtStatus::ACCESS_DENIED
}

fn append(
    context: &Context,
    list: Handle<ResourceListData>,
    descriptor: At<PartialResourceDescriptor>,
) -> NtStatus {
    let _descriptor: [u8; DESCRIPTOR] = context.read(descriptor.0);
    refuse(context, list.0)
}

fn insert(
    context: &Context,
    list: Handle<ResourceListData>,
    descriptor: At<PartialResourceDescriptor>,
    _index: u32,
) -> NtStatus {
    let _descriptor: [u8; DESCRIPTOR] = context.read(descriptor.0);
    refuse(context, list.0)
}

fn remove<W: Argument>(context: &Context, list: Handle<ResourceListData>, _index_or_descriptor: W) {
    refuse(context, list.0);
}
