//! The benchmark's image and its loops.

use std::{hint::black_box, mem, path::Path};

use anyhow::{Context, Result, ensure};
use standin_kernel::timing::MappedImage;

use crate::ntoskrnl::{self, Registration};

/// The event's string.
const TEXT: &str = r"\Device\0001";

/// The image's entry point.
type Entry = unsafe extern "win64" fn(usize, usize) -> u32;

/// A loop that writes a number of events.
type Writes = unsafe extern "win64" fn(u64, *const u8, usize);

/// A loop over an array.
type Array = unsafe extern "win64" fn(*const u64, usize, *const u8, usize) -> u64;

/// The image, with its providers registered.
pub struct Image {
    mapped: MappedImage,
    registrations: Vec<Registration>,
}

impl Image {
    /// Maps the image, binds its writes to `write`, and registers its providers.
    pub fn load(path: &Path, write: extern "win64" fn() -> u32) -> Result<Self> {
        let mapped = MappedImage::load(path, &|_, name| Some(ntoskrnl::routine(name, write)))?;
        let entry = mapped.entry() as *const ();
        // SAFETY: the loader has checked that the entry point is in the image's code, and the image
        // defines it with this type.
        let entry = unsafe { mem::transmute::<*const (), Entry>(entry) };
        // SAFETY: the image is mapped, and its entry point ignores its parameters.
        let status = unsafe { entry(0, 0) };
        ensure!(
            status == 0,
            "{}: the entry point failed with the status 0x{status:08X}",
            path.display()
        );
        Ok(Self { mapped, registrations: ntoskrnl::take_registrations() })
    }

    /// Notifies all providers that sessions want all their events, or none.
    pub fn notify(&self, enabled: bool) {
        for registration in &self.registrations {
            // SAFETY: the image is mapped while `self` exists.
            unsafe { registration.notify(enabled) };
        }
    }

    fn export(&self, name: &str) -> Result<*const ()> {
        let address = self.mapped.export(name).with_context(|| {
            format!("the image has no function `{name}`; build it with the feature `timing`")
        })?;
        Ok(address as *const ())
    }

    /// Returns the loop that writes events in one way.
    pub fn writes<'image>(&'image self, way: &str) -> Result<impl Fn(u64) + Sync + use<'image>> {
        let function = self.export(&format!("{way}_writes"))?;
        // SAFETY: the image defines its functions of this name with this type.
        let function = unsafe { mem::transmute::<*const (), Writes>(function) };
        Ok(move |count| {
            // SAFETY: the closure borrows the image, so the code is mapped; the text outlives the
            // call.
            unsafe { function(count, TEXT.as_ptr(), TEXT.len()) };
        })
    }

    /// Returns the loop over an array with the event written in one way. The loop's parameters are
    /// the array and the number of passes.
    pub fn array<'image>(
        &'image self,
        way: &str,
        name: &str,
    ) -> Result<impl Fn(&[u64], u64) -> u64 + Sync + use<'image>> {
        let function = self.export(&format!("{way}_{name}"))?;
        // SAFETY: the image defines its functions of this name with this type.
        let function = unsafe { mem::transmute::<*const (), Array>(function) };
        Ok(move |values: &[u64], times| {
            let mut result = 0;
            for _ in 0..times {
                // SAFETY: the closure borrows the image, so the code is mapped; the array and the
                // text outlive the call.
                result = black_box(unsafe {
                    function(values.as_ptr(), values.len(), TEXT.as_ptr(), TEXT.len())
                });
            }
            result
        })
    }
}
