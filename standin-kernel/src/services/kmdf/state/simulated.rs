//! Devices that a test simulates. A closure answers their requests, immediately or later.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{
    device_object::Object,
    framework::{Context, Framework},
    operation::{Completion, IoRequest, RequestKind},
};
use crate::ground::NtStatus;

/// A request that reached a simulated device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// The number of the request, which is unique in the kernel.
    pub number: u64,
    /// The requested operation.
    pub kind: RequestKind,
    /// The bytes to write, or the control code's input.
    pub input: Vec<u8>,
    /// The size of the sender's output buffer in bytes.
    pub output_length: usize,
    /// The position on the device of a read or write.
    pub offset: u64,
    /// The arguments of an internal device control that passes pointers instead of buffers.
    pub arguments: Option<[u64; 3]>,
}

/// A simulated device's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestAction {
    /// The request is completed immediately.
    Complete(Completion),
    /// The request stays pending, and the test completes it later. If the sender cancels the
    /// request, it is completed with `STATUS_CANCELLED`.
    Keep,
    /// The request stays pending, and cancellation has no effect.
    KeepUncancelable,
}

/// The closure that answers requests.
pub type RequestHandler = Arc<Mutex<dyn FnMut(&SimulatedRequest) -> RequestAction + Send>>;

/// A pending request of a simulated device.
pub struct Kept {
    /// The request.
    pub request: SimulatedRequest,
    /// The sender's request object.
    pub upper: u64,
    is_cancelable: bool,
    /// Set if the sender canceled the request.
    pub is_cancelled: bool,
}

/// A device that a test simulates.
struct Simulated {
    names: Vec<String>,
    object: Object,
    answer: RequestHandler,
    kept: Vec<Kept>,
}

/// The simulated devices.
#[derive(Default)]
pub struct SimulatedDevices {
    devices: HashMap<u64, Simulated>,
    issued: u64,
    requests: u64,
}

impl SimulatedDevices {
    /// Adds a device and returns its number.
    pub fn add(&mut self, object: Object, name: Option<String>, answer: RequestHandler) -> u64 {
        self.issued += 1;
        self.devices.insert(
            self.issued,
            Simulated { names: name.into_iter().collect(), object, answer, kept: Vec::new() },
        );
        self.issued
    }

    /// Returns a device's pending requests, oldest first, and whether the sender has canceled each
    /// request.
    pub fn kept(&self, device: u64) -> Vec<(SimulatedRequest, bool)> {
        self.devices.get(&device).map_or_else(Vec::new, |device| {
            let kept = device.kept.iter();
            kept.map(|kept| (kept.request.clone(), kept.is_cancelled)).collect()
        })
    }

    /// Removes a device's pending request, and returns the sender's request object.
    pub fn take(&mut self, device: u64, request: u64) -> Option<u64> {
        let kept = &mut self.devices.get_mut(&device)?.kept;
        let at = kept.iter().position(|kept| kept.request.number == request)?;
        Some(kept.remove(at).upper)
    }

    /// Returns the devices' names.
    pub fn names(&self) -> impl Iterator<Item = (u64, &str)> {
        self.devices.iter().flat_map(|(number, device)| {
            let names = device.names.iter();
            names.map(|name| (*number, name.as_str()))
        })
    }

    /// Returns the address of a device's `DEVICE_OBJECT`, or 0.
    pub fn object_of(&self, device: u64) -> u64 {
        let device = self.devices.get(&device);
        device.map_or(0, |device| device.object.address())
    }

    /// Returns the device with this `DEVICE_OBJECT`.
    pub fn of_object(&self, object: u64) -> Option<u64> {
        self.devices
            .iter()
            .find(|(_, device)| device.object.address() == object)
            .map(|(number, _)| *number)
    }
}

/// Returns the address of a device's `DEVICE_OBJECT`, or 0.
pub fn object(context: &Context, device: u64) -> u64 {
    context.framework().part::<SimulatedDevices>().object_of(device)
}

/// The outcome of passing a request to a simulated device.
pub enum Given {
    /// The device answered the request.
    Answered(Completion),
    /// The request is pending under this number.
    Kept(u64),
}

/// Passes a sender's request to a device, and returns its answer.
pub fn give(context: &Context, device: u64, upper: u64, request: IoRequest) -> Given {
    let (number, answer) = {
        let mut framework = context.framework();
        let devices = framework.part::<SimulatedDevices>();
        devices.requests += 1;
        let number = devices.requests;
        match devices.devices.get(&device) {
            Some(device) => (number, Arc::clone(&device.answer)),
            None => {
                return Given::Answered(Completion::failure(NtStatus::NO_SUCH_DEVICE));
            }
        }
    };
    let request = SimulatedRequest {
        number,
        kind: request.kind,
        input: request.input,
        output_length: request.output_length,
        offset: request.offset,
        arguments: request.others,
    };
    let is_cancelable = match (answer.lock())(&request) {
        RequestAction::Complete(completion) => return Given::Answered(completion),
        RequestAction::Keep => true,
        RequestAction::KeepUncancelable => false,
    };
    let mut framework = context.framework();
    if let Some(device) = kept_of(&mut framework, device) {
        device.push(Kept { request, upper, is_cancelable, is_cancelled: false });
    }
    Given::Kept(number)
}

fn kept_of(framework: &mut Framework, device: u64) -> Option<&mut Vec<Kept>> {
    let devices = &mut framework.part::<SimulatedDevices>().devices;
    devices.get_mut(&device).map(|device| &mut device.kept)
}

/// Cancels a device's pending request. Returns whether the request was pending and, if the
/// cancellation ends it, the sender's request object.
pub fn cancel(context: &Context, device: u64, request: u64) -> (bool, Option<u64>) {
    let mut framework = context.framework();
    let Some(all) = kept_of(&mut framework, device) else {
        return (false, None);
    };
    let Some(at) = all.iter().position(|kept| kept.request.number == request) else {
        return (false, None);
    };
    if all[at].is_cancelable {
        (true, Some(all.remove(at).upper))
    } else {
        all[at].is_cancelled = true;
        (false, None)
    }
}
