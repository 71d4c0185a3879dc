//! The service's parameters in the registry.

use core::ptr;

use etw_sample_interface::{TAG_CAPACITY, TAG_PARAMETER};
use wdk_sys::{
    KEY_READ, NT_SUCCESS, UNICODE_STRING, WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER, WDFKEY,
    call_unsafe_wdf_function_binding,
};

use crate::text::utf16;

/// The name of the registry value.
const NAME: &[u16; TAG_PARAMETER.len()] = &utf16(TAG_PARAMETER);

/// The registry string that every event contains in a custom trait; empty by default.
pub struct Tag {
    units: [u16; TAG_CAPACITY],
    length: usize,
}

impl Tag {
    const EMPTY: Self = Self { units: [0; TAG_CAPACITY], length: 0 };

    /// Reads the tag. A value that is missing, too long or not a string counts as empty. IRQL:
    /// `PASSIVE_LEVEL`.
    pub fn read(driver: WDFDRIVER) -> Self {
        let mut key: WDFKEY = ptr::null_mut();
        // SAFETY: the driver is this one, and the out-parameter is a local.
        let opened = unsafe {
            call_unsafe_wdf_function_binding!(
                WdfDriverOpenParametersRegistryKey, driver, KEY_READ, WDF_NO_OBJECT_ATTRIBUTES,
                &raw mut key,
            )
        };
        if !NT_SUCCESS(opened) {
            return Self::EMPTY;
        }
        let tag = Self::query(key).unwrap_or(Self::EMPTY);
        // SAFETY: the key is open and is not used afterwards.
        unsafe { call_unsafe_wdf_function_binding!(WdfRegistryClose, key) };
        tag
    }

    fn query(key: WDFKEY) -> Option<Self> {
        let mut tag = Self::EMPTY;
        let length = size_of_val(NAME) as u16;
        let name = UNICODE_STRING {
            Length: length,
            MaximumLength: length,
            Buffer: NAME.as_ptr().cast_mut(),
        };
        let mut text = UNICODE_STRING {
            Length: 0,
            MaximumLength: size_of_val(&tag.units) as u16,
            Buffer: tag.units.as_mut_ptr(),
        };
        let mut needed = 0;
        // SAFETY: the key is open, and the strings describe valid buffers.
        let status = unsafe {
            call_unsafe_wdf_function_binding!(
                WdfRegistryQueryUnicodeString, key, &raw const name, &raw mut needed,
                &raw mut text,
            )
        };
        tag.length = usize::from(text.Length) / 2;
        NT_SUCCESS(status).then_some(tag)
    }

    /// Returns the UTF-16 units of the tag.
    pub fn units(&self) -> &[u16] {
        self.units.get(..self.length).unwrap_or_default()
    }
}
