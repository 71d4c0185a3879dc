//! The sample driver's device, and requests to it.

use std::{
    cell::UnsafeCell,
    ptr,
    rc::{Rc, Weak},
};

use etw_sample_interface::{ACTIVITY_SIZE, DEVICE_INTERFACE, traced};
use etw_scenarios::Answer;
use etw_session::{
    error::Win32Error,
    pointer::{start, start_mut},
    wide::{list, wide},
};
use wdk_etw::{ActivityId, NtStatus, emit};
use windows_sys::{
    Wdk::{
        Storage::FileSystem::{NtCancelIoFileEx, NtReadFile, NtWriteFile},
        System::IO::NtDeviceIoControlFile,
    },
    Win32::{
        Devices::DeviceAndDriverInstallation::{
            CM_GET_DEVICE_INTERFACE_LIST_PRESENT, CM_Get_Device_Interface_List_SizeW,
            CM_Get_Device_Interface_ListW, CR_SUCCESS,
        },
        Foundation::{
            CloseHandle, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE, NTSTATUS,
            STATUS_PENDING, WAIT_OBJECT_0,
        },
        Storage::FileSystem::{
            CreateFileW, FILE_FLAG_OVERLAPPED, FILE_SHARE_READ, FILE_SHARE_WRITE, OPEN_EXISTING,
        },
        System::{
            IO::IO_STATUS_BLOCK,
            Threading::{CreateEventW, INFINITE, WaitForSingleObject},
        },
    },
    core::GUID,
};

use crate::{error::Failure, trace};

/// Returns the paths of the sample driver's devices that are present.
pub fn paths() -> Vec<String> {
    paths_of(DEVICE_INTERFACE)
}

/// Returns the paths of the present devices that have an interface of this class. The parameters
/// are the fields of the class's GUID.
fn paths_of((data1, data2, data3, data4): (u32, u16, u16, [u8; 8])) -> Vec<String> {
    let class = GUID { data1, data2, data3, data4 };
    let mut length = 0;
    // SAFETY: the GUID and the out-parameter are locals.
    let found = unsafe {
        CM_Get_Device_Interface_List_SizeW(
            &raw mut length,
            &raw const class,
            ptr::null(),
            CM_GET_DEVICE_INTERFACE_LIST_PRESENT,
        )
    };
    if found != CR_SUCCESS {
        return Vec::new();
    }
    let mut units = vec![0; length as usize];
    // SAFETY: the length is the size of the buffer.
    let found = unsafe {
        CM_Get_Device_Interface_ListW(
            &raw const class,
            ptr::null(),
            units.as_mut_ptr(),
            length,
            CM_GET_DEVICE_INTERFACE_LIST_PRESENT,
        )
    };
    if found == CR_SUCCESS { list(&units) } else { Vec::new() }
}

/// A handle that is closed when this value is dropped.
#[derive(Debug)]
struct OwnHandle(HANDLE);

impl Drop for OwnHandle {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { CloseHandle(self.0) };
    }
}

/// An open file of the device.
#[derive(Debug)]
pub struct Device(Rc<OwnHandle>);

/// The memory that the system accesses while a request is pending. It must not move or be freed
/// until the request completes.
#[derive(Debug)]
struct InFlight {
    status: UnsafeCell<IO_STATUS_BLOCK>,
    event: OwnHandle,
    input: Vec<u8>,
    output: UnsafeCell<Vec<u8>>,
}

/// A sent request.
#[derive(Debug)]
pub struct Request {
    /// The file. Closing it cancels the request.
    file: Weak<OwnHandle>,
    in_flight: Option<Box<InFlight>>,
    /// The status that the call itself returned.
    sent: NTSTATUS,
    /// The control code and the activity of a traced request.
    traced: Option<(u32, ActivityId)>,
}

/// The arguments of the system call that sends a request.
struct Call {
    file: HANDLE,
    event: HANDLE,
    status: *mut IO_STATUS_BLOCK,
    input: *const u8,
    input_length: u32,
    output: *mut u8,
    output_length: u32,
}

impl Device {
    /// Opens the first device of the sample driver.
    pub fn open() -> Result<Self, Failure> {
        let path = paths().into_iter().next().ok_or(Failure::NoDevice)?;
        Self::open_path(&path)
    }

    /// Opens the first device of the probes' driver.
    pub fn open_probes() -> Result<Self, Failure> {
        let paths = paths_of(etw_probes_interface::DEVICE_INTERFACE);
        let path = paths.first().ok_or(Failure::NoProbesDevice)?;
        Self::open_path(path)
    }

    fn open_path(path: &str) -> Result<Self, Failure> {
        let path = wide(path);
        // SAFETY: the path ends with a NUL; the other pointers may be null.
        let handle = unsafe {
            CreateFileW(
                path.as_ptr(),
                GENERIC_READ | GENERIC_WRITE,
                FILE_SHARE_READ | FILE_SHARE_WRITE,
                ptr::null(),
                OPEN_EXISTING,
                FILE_FLAG_OVERLAPPED,
                ptr::null_mut(),
            )
        };
        if handle == INVALID_HANDLE_VALUE {
            return Err(Win32Error::last("CreateFile of the device").into());
        }
        Ok(Self(Rc::new(OwnHandle(handle))))
    }

    /// Sends a request by calling `routine` with the arguments of the system call.
    fn start(
        &self,
        input: &[u8],
        output: usize,
        routine: impl FnOnce(&Call) -> NTSTATUS,
    ) -> Result<Request, Failure> {
        // SAFETY: an event without a name or attributes.
        let event = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        if event.is_null() {
            return Err(Win32Error::last("CreateEvent").into());
        }
        let in_flight = Box::new(InFlight {
            status: UnsafeCell::default(),
            event: OwnHandle(event),
            input: input.to_vec(),
            output: UnsafeCell::new(vec![0; output]),
        });
        let output_buffer = in_flight.output.get();
        // SAFETY: there is no other reference to it, and the request has not been sent yet.
        let output_buffer = unsafe { &mut *output_buffer };
        let sent = routine(&Call {
            file: self.0.0,
            event,
            status: in_flight.status.get(),
            input: start(&in_flight.input),
            input_length: u32::try_from(input.len()).unwrap_or(u32::MAX),
            output: start_mut(output_buffer),
            output_length: u32::try_from(output).unwrap_or(u32::MAX),
        });
        Ok(Request { file: Rc::downgrade(&self.0), in_flight: Some(in_flight), sent, traced: None })
    }

    /// Sends a device control request without waiting for its completion.
    pub fn start_control(
        &self,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Request, Failure> {
        self.start(input, output, |call| {
            // SAFETY: `Request` keeps the buffers and the status block in place until the request
            // completes.
            unsafe {
                NtDeviceIoControlFile(
                    call.file,
                    call.event,
                    None,
                    ptr::null(),
                    call.status,
                    code,
                    call.input.cast(),
                    call.input_length,
                    call.output.cast(),
                    call.output_length,
                )
            }
        })
    }

    /// Sends a traced device control request, without waiting for its completion. Creates an
    /// activity, whose id the request passes to the driver, and returns it with the request.
    pub fn start_traced_control(
        &self,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Request, ActivityId), Failure> {
        // If there is no id, the driver's events have no activity either.
        let activity = ActivityId::create().unwrap_or_default();
        emit!(
            trace::provider::request_sent(code, u32::try_from(input.len()).unwrap_or(u32::MAX)),
            activity = activity
        );
        let input = [&activity.guid().to_bytes()[..], input].concat();
        let output = output.saturating_add(ACTIVITY_SIZE);
        let mut request = self.start_control(traced(code), &input, output)?;
        request.traced = Some((code, activity));
        Ok((request, activity))
    }

    /// Sends a traced device control request and waits for its completion.
    pub fn control(&self, code: u32, input: &[u8], output: usize) -> Result<Answer, Failure> {
        let (request, _) = self.start_traced_control(code, input, output)?;
        request.finish()
    }

    /// Sends a read request and waits for its completion.
    pub fn read(&self, length: usize) -> Result<Answer, Failure> {
        let start = 0;
        let request = self.start(&[], length, |call| {
            // SAFETY: as for a device control; the offset is read before the call returns.
            unsafe {
                NtReadFile(
                    call.file,
                    call.event,
                    None,
                    ptr::null(),
                    call.status,
                    call.output.cast(),
                    call.output_length,
                    &raw const start,
                    ptr::null(),
                )
            }
        })?;
        request.finish()
    }

    /// Sends a write request and waits for its completion.
    pub fn write(&self, bytes: &[u8]) -> Result<Answer, Failure> {
        let start = 0;
        let request = self.start(bytes, 0, |call| {
            // SAFETY: as for a device control; the offset is read before the call returns.
            unsafe {
                NtWriteFile(
                    call.file,
                    call.event,
                    None,
                    ptr::null(),
                    call.status,
                    call.input.cast(),
                    call.input_length,
                    &raw const start,
                    ptr::null(),
                )
            }
        })?;
        request.finish()
    }
}

impl Request {
    /// Cancels the request.
    pub fn cancel(&self) {
        let (Some(in_flight), Some(file)) = (&self.in_flight, self.file.upgrade()) else {
            return;
        };
        let mut status = IO_STATUS_BLOCK::default();
        // The call fails if the request has already completed, which needs no handling.
        // SAFETY: the block names the request; the out-parameter is a local.
        unsafe { NtCancelIoFileEx(file.0, in_flight.status.get(), &raw mut status) };
    }

    /// Returns true if the request has completed.
    pub fn is_over(&self) -> bool {
        let Some(in_flight) = &self.in_flight else {
            return true;
        };
        // SAFETY: the event lives in the request.
        let signalled = unsafe { WaitForSingleObject(in_flight.event.0, 0) };
        self.sent != STATUS_PENDING || signalled == WAIT_OBJECT_0
    }

    /// Waits until the request completes.
    pub fn finish(mut self) -> Result<Answer, Failure> {
        let over = self.wait()?;
        let status = over.status.into_inner();
        // If the call itself failed, the status block is not written.
        let code = if self.sent.cast_unsigned() >> 30 == 3 {
            self.sent
        } else {
            // SAFETY: the request has completed, so the block contains its status.
            unsafe { status.Anonymous.Status }
        };
        let mut output = over.output.into_inner();
        let failed = code.cast_unsigned() >> 30 == 3;
        output.truncate(if failed { 0 } else { status.Information });
        if let Some((control, activity)) = self.traced {
            output.drain(..ACTIVITY_SIZE.min(output.len()));
            let returned = u32::try_from(output.len()).unwrap_or(u32::MAX);
            emit!(
                trace::provider::request_answered(control, returned, NtStatus(code)),
                activity = activity
            );
        }
        Ok(Answer { status: code.cast_unsigned(), output })
    }

    /// Waits until the kernel no longer uses the request's memory.
    fn wait(&mut self) -> Result<Box<InFlight>, Failure> {
        let pending = self.sent == STATUS_PENDING;
        let in_flight = self.in_flight.take().expect("wait is called once per request");
        if pending {
            // SAFETY: the event lives in the request.
            let waited = unsafe { WaitForSingleObject(in_flight.event.0, INFINITE) };
            if waited != WAIT_OBJECT_0 {
                // The kernel may still write to this memory, so it is leaked.
                Box::leak(in_flight);
                return Err(Win32Error::last("WaitForSingleObject").into());
            }
        }
        Ok(in_flight)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.in_flight.is_some() {
            self.cancel();
            if let Err(error) = self.wait() {
                eprintln!("warning: cannot wait for a pending request: {error}");
            }
        }
    }
}
