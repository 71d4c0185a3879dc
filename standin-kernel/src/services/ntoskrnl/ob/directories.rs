//! The directories of the object manager's namespace.

use std::collections::BTreeMap;

use super::{handles, object_attributes::Attributes};
use crate::{
    ground::{NtResult, NtStatus, arena::Block},
    services::{ntoskrnl::context::Context, parts::Parts},
};

/// The type of a directory. No variable that drivers can import points to it.
pub const TYPE: &str = "ObpDirectoryObjectType";

/// The directories that every system has, root first.
const PREDEFINED: [&str; 14] = [
    r"\", r"\ArcName", r"\BaseNamedObjects", r"\Callback", r"\Device", r"\Driver", r"\FileSystem",
    r"\GLOBAL??", r"\KernelObjects", r"\KnownDlls", r"\ObjectTypes", r"\Security", r"\Sessions",
    r"\Windows",
];

/// The directories, by names in the form that [`key`] returns.
struct Directories(BTreeMap<String, Directory>);

struct Directory {
    name: String,
    /// Set if the directory remains after its last handle is closed.
    is_permanent: bool,
    memory: Block,
}

impl Directory {
    fn new(name: &str, is_permanent: bool) -> Self {
        Self { name: name.to_owned(), is_permanent, memory: Block::zeroed(0x40) }
    }
}

impl Default for Directories {
    fn default() -> Self {
        let all = PREDEFINED.iter().map(|name| (key(name), Directory::new(name, true)));
        Self(all.collect())
    }
}

/// Returns a name in the form used for comparison: in lower case, and with a uniform prefix for the
/// symbolic link directory. After the prefix, each character corresponds to one of the name.
pub fn key(name: &str) -> String {
    let lower = |character: char| {
        let mut all = character.to_lowercase();
        let first = all.next().filter(|_| all.next().is_none());
        first.unwrap_or(character)
    };
    let name: String = name.chars().map(lower).collect();
    for prefix in [r"\dosdevices", r"\??", r"\\.", r"\\?"] {
        if let Some(rest) = name.strip_prefix(prefix)
            && (rest.is_empty() || rest.starts_with('\\'))
        {
            return format!(r"\global??{rest}");
        }
    }
    name
}

/// Splits a name into the directory and the last component.
pub fn split(name: &str) -> NtResult<(&str, &str)> {
    const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
    let (directory, last) = name.rsplit_once('\\').ok_or(NtStatus::OBJECT_PATH_SYNTAX_BAD)?;
    if !name.starts_with('\\') {
        return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD);
    }
    if last.is_empty() || name.contains(r"\\") {
        return Err(OBJECT_NAME_INVALID);
    }
    Ok((if directory.is_empty() { r"\" } else { directory }, last))
}

/// Returns whether a directory exists.
pub fn exists(context: &Context, name: &str) -> bool {
    context.state().get::<Directories>().0.contains_key(&key(name))
}

/// Returns the directories with their names.
pub fn all(context: &Context) -> Vec<(u64, String)> {
    let mut state = context.state();
    let all = state.get::<Directories>().0.values();
    all.map(|one| (one.memory.address(), one.name.clone())).collect()
}

/// Creates a directory. Unless it is permanent, it exists only while it has handles or references.
pub fn create(context: &Context, name: &str, is_permanent: bool) -> u64 {
    let mut state = context.state();
    let directories = &mut state.get::<Directories>().0;
    let new = Directory::new(name, is_permanent);
    let address = new.memory.address();
    // An unnamed directory cannot be found by this key.
    let key = if name.is_empty() { format!("{address:X}") } else { key(name) };
    directories.entry(key).or_insert(new).memory.address()
}

/// Makes a directory temporary, so that it exists only while it has handles or references. Returns
/// whether the object is a directory.
pub fn make_temporary(state: &mut Parts, object: u64) -> bool {
    let mut all = state.get::<Directories>().0.values_mut();
    let Some(directory) = all.find(|one| one.memory.address() == object) else {
        return false;
    };
    directory.is_permanent = false;
    true
}

/// Deletes a directory that has neither handles nor references.
pub fn delete_temporary(context: &Context, object: u64) {
    let mut state = context.state();
    let all = &mut state.get::<Directories>().0;
    all.retain(|_, one| one.is_permanent || one.memory.address() != object);
}

/// Returns the full name, from the root, that attributes specify, or an empty name.
pub fn full_name(context: &Context, attributes: &Attributes) -> NtResult<String> {
    let name = &attributes.name;
    if attributes.root == 0 {
        return Ok(name.clone());
    }
    let root = handles::target_of(context, attributes.root)?;
    let mut directories = all(context).into_iter();
    let found = directories.find(|(object, _)| *object == root.object);
    let (_, directory) = found.ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?;
    if name.starts_with('\\') {
        return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD);
    }
    Ok(match (name.as_str(), directory.as_str()) {
        ("", _) => directory,
        (_, r"\") => format!(r"\{name}"),
        _ => format!(r"{directory}\{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_start_at_the_root_and_end_with_a_part() {
        const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
        for (name, expected) in [
            (r"\X", Ok((r"\", "X"))),
            (r"\BaseNamedObjects\Event", Ok((r"\BaseNamedObjects", "Event"))),
            ("Event", Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)),
            (r"Device\Event", Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)),
            (r"\KernelObjects\", Err(OBJECT_NAME_INVALID)),
            (r"\\Event", Err(OBJECT_NAME_INVALID)),
        ] {
            assert_eq!(split(name), expected, "{name}");
        }
    }

    #[test]
    fn links_have_one_folder() {
        for name in [r"\??\COM1", r"\DosDevices\com1", r"\GLOBAL??\Com1", r"\\.\COM1"] {
            assert_eq!(key(name), r"\global??\com1", "{name}");
        }
        assert_eq!(key(r"\DosDevices"), r"\global??");
        assert_eq!(key(r"\Device\DosDevices"), r"\device\dosdevices");
    }
}
