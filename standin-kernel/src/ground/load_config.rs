//! The load configuration of an image, and its processing by the loader.
//!
//! Compilers check return addresses against the image's security cookie, and make indirect calls
//! through the image's guard functions. The loader sets both, in variables to which the load
//! configuration points. The directory has grown with Windows versions, and its first field
//! contains its size.

use super::memory_routines;

/// The initial security cookie that the linker stores (x64). The entry code uses it to detect a loader
/// that did not set the cookie.
pub const DEFAULT_COOKIE: u64 = 0x0000_2B99_2DDF_A232;

/// The bits of a cookie on x64. The upper bits are zero, so that no string can contain the cookie.
const COOKIE_BITS: u64 = 0x0000_FFFF_FFFF_FFFF;

/// `IMAGE_GUARD_CF_INSTRUMENTED`: the code checks indirect calls.
const INSTRUMENTED: u32 = 0x100;

/// The offsets of `IMAGE_LOAD_CONFIG_DIRECTORY64` that the loader uses.
const SIZE: usize = 0;
const SECURITY_COOKIE: usize = 0x58;
const GUARD_CHECK_POINTER: usize = 0x70;
const GUARD_DISPATCH_POINTER: usize = 0x78;
const GUARD_FLAGS: usize = 0x90;

/// Sets the cookie and the guard functions of an image relocated to `base`. `directory` is the RVA of
/// the load configuration.
///
/// As on Windows, a variable outside the image and a cookie that does not have its initial value
/// are left unchanged. Identical images receive identical cookies.
pub fn initialize(bytes: &mut [u8], directory: usize, base: u64) {
    let Some(config) = LoadConfig::read(bytes, directory) else {
        return;
    };
    if let Some(at) = config.variable(bytes, SECURITY_COOKIE, base)
        && read::<8>(bytes, at).map(u64::from_le_bytes) == Some(DEFAULT_COOKIE)
    {
        let cookie = cookie(bytes, directory);
        write(bytes, at, cookie);
    }
    let flags = config.field::<4>(bytes, GUARD_FLAGS).map(u32::from_le_bytes);
    if flags.is_some_and(|flags| flags & INSTRUMENTED != 0) {
        let (check, dispatch) = memory_routines::guards();
        for (pointer, routine) in [(GUARD_CHECK_POINTER, check), (GUARD_DISPATCH_POINTER, dispatch)]
        {
            if let Some(at) = config.variable(bytes, pointer, base) {
                write(bytes, at, routine);
            }
        }
    }
}

/// A load configuration: its RVA, and its size in bytes in the image.
struct LoadConfig {
    start: usize,
    length: usize,
}

impl LoadConfig {
    fn read(bytes: &[u8], start: usize) -> Option<Self> {
        let length = u32::from_le_bytes(read(bytes, start.checked_add(SIZE)?)?) as usize;
        Some(Self { start, length })
    }

    /// Returns a field, if the configuration is large enough to contain it.
    fn field<const N: usize>(&self, bytes: &[u8], offset: usize) -> Option<[u8; N]> {
        (offset + N <= self.length).then(|| read(bytes, self.start.checked_add(offset)?)).flatten()
    }

    /// Returns the RVA of the eight-byte variable to which a field points.
    fn variable(&self, bytes: &[u8], offset: usize, base: u64) -> Option<usize> {
        let address = u64::from_le_bytes(self.field(bytes, offset)?);
        let at = usize::try_from(address.checked_sub(base)?).ok()?;
        // A variable cannot be in the headers.
        (at != 0 && at.checked_add(8)? <= bytes.len()).then_some(at)
    }
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Writes a value at an RVA that [`LoadConfig::variable`] has returned.
fn write(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}

/// Returns the cookie of an image. It looks random and depends only on the image's headers, which are
/// not relocated.
fn cookie(bytes: &[u8], directory: usize) -> u64 {
    /// The constants of FNV-1a.
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let headers = bytes.get(..bytes.len().min(0x400)).unwrap_or_default();
    let hash = headers
        .iter()
        .copied()
        .chain(directory.to_le_bytes())
        .fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    match (mixed ^ (mixed >> 32)) & COOKIE_BITS {
        0 | DEFAULT_COOKIE => DEFAULT_COOKIE + 1,
        cookie => cookie,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x2000_0000_0000;
    const CONFIG: usize = 0x100;
    const COOKIE: usize = 0x200;
    const CHECK: usize = 0x210;
    const DISPATCH: usize = 0x218;

    /// Returns an image with a load configuration of the given size.
    fn image(size: u32, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 0x1000];
        write(&mut bytes, CONFIG, u64::from(size));
        for (field, variable) in [
            (SECURITY_COOKIE, COOKIE),
            (GUARD_CHECK_POINTER, CHECK),
            (GUARD_DISPATCH_POINTER, DISPATCH),
        ] {
            write(&mut bytes, CONFIG + field, BASE + variable as u64);
        }
        write(&mut bytes, CONFIG + GUARD_FLAGS, u64::from(flags));
        write(&mut bytes, COOKIE, DEFAULT_COOKIE);
        bytes
    }

    fn value(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(read(bytes, at).unwrap())
    }

    #[test]
    fn the_cookie_is_set_once_and_equal_images_get_equal_ones() {
        let mut one = image(0x140, 0);
        initialize(&mut one, CONFIG, BASE);
        let cookie = value(&one, COOKIE);
        assert!(cookie != 0 && cookie != DEFAULT_COOKIE);
        assert_eq!(cookie >> 48, 0);
        let mut again = image(0x140, 0);
        initialize(&mut again, CONFIG, BASE);
        assert_eq!(value(&again, COOKIE), cookie);
        write(&mut one, COOKIE, 5);
        initialize(&mut one, CONFIG, BASE);
        assert_eq!(value(&one, COOKIE), 5);
    }

    #[test]
    fn only_the_fields_that_a_configuration_has_are_used() {
        let (check, dispatch) = memory_routines::guards();
        for (size, has_cookie, has_guards) in [
            (0, false, false),
            (0x5F, false, false),
            (0x60, true, false),
            (0x70, true, false),
            (0x93, true, false),
            (0x94, true, true),
            (0x148, true, true),
            (u32::MAX, true, true),
        ] {
            let mut bytes = image(size, INSTRUMENTED);
            initialize(&mut bytes, CONFIG, BASE);
            assert_eq!(value(&bytes, COOKIE) != DEFAULT_COOKIE, has_cookie, "{size}");
            let guards = (value(&bytes, CHECK), value(&bytes, DISPATCH));
            let expected = if has_guards { (check, dispatch) } else { (0, 0) };
            assert_eq!(guards, expected, "{size}");
        }
        let mut bytes = image(0x148, 0);
        initialize(&mut bytes, CONFIG, BASE);
        assert_eq!(value(&bytes, CHECK), 0, "the code checks no calls");
    }

    #[test]
    fn variables_outside_the_image_are_ignored() {
        for address in [0, 8, BASE, BASE - 8, BASE + 0xFF9, BASE + 0x1000, u64::MAX] {
            let mut bytes = image(0x148, INSTRUMENTED);
            for field in [SECURITY_COOKIE, GUARD_CHECK_POINTER, GUARD_DISPATCH_POINTER] {
                write(&mut bytes, CONFIG + field, address);
            }
            let before = bytes.clone();
            initialize(&mut bytes, CONFIG, BASE);
            assert_eq!(bytes, before, "{address:X}");
        }
        for directory in [0xFFD, 0x1000, usize::MAX] {
            let mut bytes = image(0x148, INSTRUMENTED);
            let before = bytes.clone();
            initialize(&mut bytes, directory, BASE);
            assert_eq!(bytes, before);
        }
    }
}
