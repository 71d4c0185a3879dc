//! The results of completed requests, as the drivers that sent them read the results.

use super::ending::set_information_of;
use crate::{
    ground::abi::{CompletionParameters, IoStatusBlock},
    services::kmdf::state::{
        outgoing::{Buffer, Format},
        request::{Completion, RequestData, RequestKind},
    },
};

/// `WDF_REQUEST_TYPE`.
const CREATE: u32 = 0;
const READ: u32 = 3;
const WRITE: u32 = 4;
const DEVICE_CONTROL: u32 = 14;
const INTERNAL_DEVICE_CONTROL: u32 = 15;
const OTHER: u32 = 28;
const NO_FORMAT: u32 = 255;

/// Records a sent request's completion for `WdfRequestGetStatus`, `WdfRequestGetCompletionParams`
/// and the completion routine.
pub fn record(request: &mut RequestData, result: &Completion) {
    set_information_of(request, result.information);
    let outgoing = &mut request.outgoing;
    outgoing.status = Some(result.status);
    outgoing.parameters = Some(parameters(outgoing.format.as_ref(), result));
    // The request must be formatted again before it is sent again.
    outgoing.is_spent = true;
}

/// Returns the handle and the offset of a buffer's memory object.
fn memory(buffer: &Buffer) -> [u64; 2] {
    buffer.memory.map_or([0; 2], <[u64; 2]>::from)
}

fn parameters(format: Option<&Format>, result: &Completion) -> CompletionParameters {
    let length = result.information;
    let (kind, parameters) = match format {
        None => (NO_FORMAT, [0; 6]),
        Some(format) if format.is_current_type => (NO_FORMAT, [0; 6]),
        Some(format) => {
            let [input, input_offset] = memory(&format.input);
            let [output, output_offset] = memory(&format.output);
            match format.kind {
                RequestKind::Create => (CREATE, [0; 6]),
                RequestKind::Read => (READ, [output, length, output_offset, 0, 0, 0]),
                RequestKind::Write => (WRITE, [input, length, input_offset, 0, 0, 0]),
                RequestKind::InternalDeviceControl { .. } if format.others.is_some() => {
                    let others = format.others.unwrap_or_default();
                    let [first, second, fourth] = others.map(|buffer| memory(&buffer)[0]);
                    (OTHER, [first, second, 0, fourth, 0, 0])
                }
                RequestKind::DeviceControl { code } => (
                    DEVICE_CONTROL,
                    [u64::from(code), input, input_offset, output, output_offset, length],
                ),
                RequestKind::InternalDeviceControl { code } => (
                    INTERNAL_DEVICE_CONTROL,
                    [u64::from(code), input, input_offset, output, output_offset, length],
                ),
                RequestKind::Cleanup | RequestKind::Close => (NO_FORMAT, [0; 6]),
            }
        }
    };
    CompletionParameters {
        size: u32::try_from(size_of::<CompletionParameters>()).unwrap_or(u32::MAX),
        kind,
        io_status: IoStatusBlock {
            status: result.status.bits(),
            information: result.information,
            ..Default::default()
        },
        parameters,
    }
}
