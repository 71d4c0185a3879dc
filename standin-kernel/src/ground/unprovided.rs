//! The imports of an image that the stand-in kernel does not provide.
//!
//! Each import has its own address range in inaccessible pages. A driver that calls the routine or
//! reads the variable faults there, and the address identifies the import.

use std::io;

use super::host::Mapping;

/// The size in bytes of an import's address range. A variable may be a large structure.
const SPACING: usize = 64;

/// The modules of frameworks that the stand-in kernel does not run.
const FRAMEWORKS: [(&str, &str); 15] = [
    ("ataport.sys", "ATA port miniports"),
    ("bdasup.sys", "broadcast driver architecture minidrivers"),
    ("classpnp.sys", "storage class drivers"),
    ("clfs.sys", "the common log file system"),
    ("cng.sys", "kernel-mode cryptography (CNG)"),
    ("fltmgr.sys", "file system minifilters"),
    ("fwpkclnt.sys", "the Windows Filtering Platform"),
    ("ks.sys", "kernel streaming"),
    ("ndis.sys", "NDIS drivers"),
    ("netio.sys", "Winsock Kernel and other network modules"),
    ("portcls.sys", "audio adapters of the port class driver"),
    ("scsiport.sys", "SCSI miniports"),
    ("storport.sys", "storage miniports"),
    ("usbport.sys", "USB miniports"),
    ("videoprt.sys", "video miniports"),
];

/// Returns what the drivers of a module's framework are, if the stand-in kernel runs none of them.
pub fn framework(module: &str) -> Option<&'static str> {
    let found = FRAMEWORKS.iter().find(|(of, _)| of.eq_ignore_ascii_case(module));
    found.map(|(_, what)| *what)
}

/// The sorted imports, and the pages that provide their addresses.
pub struct Unprovided {
    names: Vec<String>,
    pages: Option<Mapping>,
}

impl Unprovided {
    /// Returns the total size in bytes of the address ranges for this number of imports.
    pub const fn size(count: usize) -> usize {
        count * SPACING
    }

    /// Reserves addresses for the imports `names`, which must be sorted, each as `module!name`.
    pub fn new(names: Vec<String>) -> io::Result<Self> {
        let size = Self::size(names.len());
        let pages = if size == 0 { None } else { Some(Mapping::reserve(size)?) };
        Ok(Self { names, pages })
    }

    /// Returns the imports, each as `module!name`, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the first address of the pages.
    fn base(&self) -> Option<u64> {
        self.pages.as_ref().map(Mapping::address)
    }

    /// Returns the address to which an import is bound.
    pub fn address(&self, name: &str) -> Option<u64> {
        let number = self.names.binary_search_by(|known| known.as_str().cmp(name)).ok()?;
        Some(self.base()? + (number * SPACING) as u64)
    }

    /// Returns the import whose range contains an address.
    pub fn name_at(&self, address: u64) -> Option<&str> {
        let offset = usize::try_from(address.checked_sub(self.base()?)?).ok()?;
        self.names.get(offset / SPACING).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_identifies_its_import() {
        let names = ["a.sys!One", "b.sys!One", "b.sys!Two"].map(str::to_owned);
        let unprovided = Unprovided::new(names.to_vec()).unwrap();
        for name in &names {
            let address = unprovided.address(name).unwrap();
            for inside in [address, address + 1, address + 63] {
                assert_eq!(unprovided.name_at(inside), Some(name.as_str()));
            }
        }
        let first = unprovided.address("a.sys!One").unwrap();
        assert_eq!(unprovided.name_at(first - 1), None);
        assert_eq!(unprovided.name_at(first + 3 * 64), None);
        assert_eq!(unprovided.address("c.sys!One"), None);
    }

    #[test]
    fn an_image_without_them_reserves_nothing() {
        let none = Unprovided::new(Vec::new()).unwrap();
        assert_eq!((none.address("a!b"), none.name_at(0)), (None, None));
        assert!(none.pages.is_none());
    }
}
