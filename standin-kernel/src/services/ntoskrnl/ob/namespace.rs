//! The object manager's namespace: the names of all objects, the directories, and the symbolic links.

use std::collections::BTreeMap;

use super::{
    handles,
    object_attributes::{Attributes, OPEN_IF},
};
use crate::{
    execution::strings::units,
    ground::{NtResult, NtStatus, arena::Block},
    services::{managers::module_states::ModuleStates, ntoskrnl::context::Context},
};

/// The types of directories and symbolic links. No variable that drivers can import points to them.
pub const DIRECTORY: &str = "ObpDirectoryObjectType";
pub const LINK: &str = "ObpSymbolicLinkObjectType";
pub const CALLBACK: &str = "ExCallbackObjectType";
pub const DRIVER: &str = "IoDriverObjectType";

const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);

/// The directories that every system has, root first.
const DIRECTORIES: [&str; 14] = [
    r"\", r"\ArcName", r"\BaseNamedObjects", r"\Callback", r"\Device", r"\Driver", r"\FileSystem",
    r"\GLOBAL??", r"\KernelObjects", r"\KnownDlls", r"\ObjectTypes", r"\Security", r"\Sessions",
    r"\Windows",
];

/// The links that every system has. An empty target is the root.
const LINKS: [(&str, &str); 4] = [
    (r"\GLOBAL??\C:", r"\Device\HarddiskVolume1"),
    (r"\GLOBAL??\Global", r"\GLOBAL??"),
    (r"\GLOBAL??\GLOBALROOT", ""),
    (r"\SystemRoot", r"\Device\HarddiskVolume1\Windows"),
];

/// The callback objects that every system has.
const CALLBACKS: [&str; 3] =
    [r"\Callback\PowerState", r"\Callback\ProcessorAdd", r"\Callback\SetSystemTime"];

/// The size of an object whose fields drivers do not use.
const OBJECT: usize = 0x40;

/// An object with a name.
#[derive(Clone, Debug)]
pub struct Named {
    pub object: u64,
    /// The name from the root, as spelled when it was created.
    pub name: String,
    /// The name of the variable that points to the object's type.
    pub type_name: &'static str,
}

/// The target of a symbolic link.
#[derive(Clone, Debug)]
pub struct Target {
    /// The target as UTF-16 bytes.
    pub bytes: Vec<u8>,
    /// The size of the string that specified the target.
    pub room: u16,
}

impl Target {
    /// Returns a target with this name.
    pub fn new(name: &str) -> Self {
        let bytes: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let room = u16::try_from(bytes.len() + 2).unwrap_or(u16::MAX);
        Self { bytes, room }
    }

    fn text(&self) -> String {
        String::from_utf16_lossy(&units(&self.bytes))
    }
}

/// A directory, or a link to a target.
struct Node {
    target: Option<Target>,
    /// Set if the object remains after its last handle is closed.
    is_permanent: bool,
    memory: Block,
}

struct Namespace {
    /// The named objects, by names in the form that [`key`] returns.
    names: BTreeMap<String, Named>,
    /// The directories and links, by address.
    nodes: BTreeMap<u64, Node>,
    _callbacks: [Block; 3],
}

impl Default for Namespace {
    fn default() -> Self {
        let callbacks = CALLBACKS.map(|_| Block::zeroed(OBJECT));
        let addresses = callbacks.each_ref().map(Block::address);
        let mut made =
            Self { names: BTreeMap::new(), nodes: BTreeMap::new(), _callbacks: callbacks };
        for name in DIRECTORIES {
            made.create(Some(name), None, true);
        }
        for (name, target) in LINKS {
            made.create(Some(name), Some(Target::new(target)), true);
        }
        for (name, object) in CALLBACKS.into_iter().zip(addresses) {
            made.enter(name, object, CALLBACK);
        }
        made
    }
}

impl Namespace {
    fn enter(&mut self, name: &str, object: u64, type_name: &'static str) {
        let named = Named { object, name: name.to_owned(), type_name };
        self.names.entry(key(name)).or_insert(named);
    }

    fn create(&mut self, name: Option<&str>, target: Option<Target>, is_permanent: bool) -> u64 {
        let type_name = if target.is_some() { LINK } else { DIRECTORY };
        let node = Node { target, is_permanent, memory: Block::zeroed(OBJECT) };
        let object = node.memory.address();
        self.nodes.insert(object, node);
        if let Some(name) = name {
            self.enter(name, object, type_name);
        }
        object
    }

    /// Removes the directories and links that `is_unwanted` selects, their names and the names in them.
    fn delete(&mut self, is_unwanted: impl Fn(u64, &Node) -> bool) {
        let Self { names, nodes, .. } = self;
        for (object, _) in nodes.extract_if(.., |object, node| is_unwanted(*object, node)) {
            let own = names.extract_if(.., |_, one| one.object == object).next();
            if let Some((own, _)) = own {
                let inside = own + r"\";
                names.retain(|key, _| !key.starts_with(&inside));
            }
        }
    }

    /// Resolves a name from the root up to the first link.
    fn walk(&self, name: &str, follows_last: bool) -> NtResult<Walk> {
        let find = |name: &str| self.names.get(&key(name));
        if let Some(root) = find(name).filter(|_| name == r"\") {
            return Ok(Walk::Object(root.clone(), String::new()));
        }
        if !name.starts_with('\\') {
            return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD);
        }
        let ends = name.match_indices('\\').skip(1).map(|(at, _)| at).chain([name.len()]);
        for end in ends {
            let (start, rest) = name.split_at_checked(end).ok_or(OBJECT_NAME_INVALID)?;
            let is_last = rest.is_empty();
            if start.ends_with('\\') {
                return Err(OBJECT_NAME_INVALID);
            }
            match find(start) {
                Some(one) if one.type_name == DIRECTORY && !is_last => {}
                Some(one) if one.type_name == LINK && (follows_last || !is_last) => {
                    let target = self.nodes.get(&one.object).and_then(|link| link.target.as_ref());
                    let target = target.map(Target::text).unwrap_or_default();
                    let whole = target + rest;
                    return Ok(Walk::Link(if whole.is_empty() { r"\".to_owned() } else { whole }));
                }
                Some(one) => return Ok(Walk::Object(one.clone(), rest.to_owned())),
                None if is_last => break,
                None => return Err(OBJECT_PATH_NOT_FOUND),
            }
        }
        Ok(Walk::Free(name.to_owned()))
    }

    /// Resolves a name, and follows links. If the name ends with a link, `follows_last` selects the
    /// target instead of the link. See [`Self::walk`].
    fn resolve(&self, name: &str, follows_last: bool) -> NtResult<Walk> {
        /// The maximum number of links that the object manager follows.
        const MAX_LINKS: u32 = 32;
        let mut name = name.to_owned();
        for _ in 0..MAX_LINKS {
            match self.walk(&name, follows_last)? {
                Walk::Link(target) => name = target,
                found => return Ok(found),
            }
        }
        Err(NtStatus::OBJECT_NAME_NOT_FOUND)
    }
}

/// The result of resolving a name.
enum Walk {
    /// The object, and the remaining part of the name.
    Object(Named, String),
    /// The name to which a link refers.
    Link(String),
    /// The unused name, in an existing directory.
    Free(String),
}

/// Returns a name in the form used for comparison: in lower case, and with a uniform prefix for the
/// symbolic link directory. After the prefix, each character corresponds to one character of the
/// name.
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

/// Splits the name of an object into the directory and the last component.
pub fn split(name: &str) -> Option<(&str, &str)> {
    let (directory, last) = name.rsplit_once('\\').filter(|(_, last)| !last.is_empty())?;
    Some((if directory.is_empty() { r"\" } else { directory }, last))
}

/// Returns the objects that have names.
pub fn all(context: &Context) -> Vec<Named> {
    context.with_state(|namespace: &mut Namespace| namespace.names.values().cloned().collect())
}

/// Returns the name of an object, if the object has one.
pub fn name_of(context: &Context, object: u64) -> Option<String> {
    context.with_state(|namespace: &mut Namespace| {
        let mut all = namespace.names.values();
        Some(all.find(|one| one.object == object)?.name.clone())
    })
}

/// Returns the target of a link, or `None` if the object is not a link.
pub fn target_of(context: &Context, object: u64) -> Option<Target> {
    context.with_state(|namespace: &mut Namespace| namespace.nodes.get(&object)?.target.clone())
}

/// Gives an object a name, which [`place`] has found to be unused.
pub fn enter(state: &mut ModuleStates, name: &str, object: u64, type_name: &'static str) {
    state.get::<Namespace>().enter(name, object, type_name);
}

/// Creates a permanent link of a device. Returns its address.
///
/// # Errors
///
/// Fails if the name is in use, or if it cannot exist.
pub fn link_device(state: &mut ModuleStates, name: &str, target: Target) -> NtResult<u64> {
    let Place::New(name) = place(state, name, LINK, 0)? else {
        return Err(NtStatus::OBJECT_NAME_COLLISION);
    };
    Ok(create(state, name.as_deref(), Some(target), true))
}

/// Removes the name of an object.
pub fn remove(state: &mut ModuleStates, object: u64) {
    state.get::<Namespace>().names.retain(|_, one| one.object != object);
}

/// Creates a directory, or a link to a target. Unless it is permanent, it exists only while it has
/// handles or references.
pub fn create(
    state: &mut ModuleStates,
    name: Option<&str>,
    target: Option<Target>,
    is_permanent: bool,
) -> u64 {
    state.get::<Namespace>().create(name, target, is_permanent)
}

/// Makes a directory or link temporary, so that it exists only while it has handles or references.
/// Returns whether the object is a directory or link.
pub fn make_temporary(state: &mut ModuleStates, object: u64) -> bool {
    let node = state.get::<Namespace>().nodes.get_mut(&object);
    node.map(|node| node.is_permanent = false).is_some()
}

/// Deletes a directory or link that has neither handles nor references, unless it is permanent.
pub fn delete_temporary(context: &Context, object: u64) {
    context.with_state(|namespace: &mut Namespace| {
        namespace.delete(|one, node| one == object && !node.is_permanent);
    });
}

/// Deletes a link.
pub fn delete_link(state: &mut ModuleStates, link: u64) {
    state.get::<Namespace>().delete(|one, _| one == link);
}

/// Deletes the links with targets that `is_unwanted` selects.
pub fn delete_links(state: &mut ModuleStates, is_unwanted: impl Fn(&str) -> bool) {
    let is_to = |node: &Node| node.target.as_ref().is_some_and(|to| is_unwanted(&to.text()));
    state.get::<Namespace>().delete(|_, node| is_to(node));
}

/// Finds the object with this name. If the name ends with a link, `follows_last` selects its target
/// instead of the link. Returns the object, and the remaining part of the name.
pub fn find(context: &Context, name: &str, follows_last: bool) -> NtResult<(Named, String)> {
    let resolve = |namespace: &mut Namespace| namespace.resolve(name, follows_last);
    match context.with_state(resolve)? {
        Walk::Object(named, rest) => Ok((named, rest)),
        _ => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
    }
}

/// Returns the status with which an absent device fails to open. Of the directories, only those that
/// the system creates count.
pub fn status_of_absent(name: &str) -> NtStatus {
    let has_directory = split(name)
        .is_some_and(|(directory, _)| DIRECTORIES.iter().any(|one| key(one) == key(directory)));
    if has_directory { NtStatus::OBJECT_NAME_NOT_FOUND } else { OBJECT_PATH_NOT_FOUND }
}

/// Finds the object with the name in `attributes`. The object must be of this type.
pub fn open(context: &Context, attributes: &Attributes, type_name: &str) -> NtResult<u64> {
    let name = full_name(context, attributes)?;
    let (found, rest) = find(context, &name, type_name != LINK)?;
    let is_right = found.type_name == type_name && rest.is_empty();
    is_right.then_some(found.object).ok_or(NtStatus::OBJECT_TYPE_MISMATCH)
}

/// The place in the namespace for an object that a driver creates.
pub enum Place {
    /// The object is new, and has this name.
    New(Option<String>),
    /// The driver opens this object, which already has the name.
    Existing(u64),
}

impl Place {
    /// Returns the status of a routine that creates or opens an object.
    pub const fn status(&self) -> NtStatus {
        match self {
            Self::New(_) => NtStatus::SUCCESS,
            Self::Existing(_) => NtStatus::OBJECT_NAME_EXISTS,
        }
    }
}

/// Finds the place for an object of a type, given its full name. If an object of any type already
/// has the name, this is a collision unless the `OBJ_*` flags allow opening that object.
pub fn place(state: &mut ModuleStates, name: &str, type_name: &str, flags: u32) -> NtResult<Place> {
    if name.is_empty() {
        return Ok(Place::New(None));
    }
    match state.get::<Namespace>().resolve(name, type_name != LINK)? {
        Walk::Object(_, rest) if !rest.is_empty() => Err(NtStatus::OBJECT_TYPE_MISMATCH),
        Walk::Object(..) if flags & OPEN_IF == 0 => Err(NtStatus::OBJECT_NAME_COLLISION),
        Walk::Object(found, _) if found.type_name != type_name => {
            Err(NtStatus::OBJECT_TYPE_MISMATCH)
        }
        Walk::Object(found, _) => Ok(Place::Existing(found.object)),
        Walk::Free(name) | Walk::Link(name) => Ok(Place::New(Some(name))),
    }
}

/// Finds the place for an object of a type with these attributes. See [`place`].
pub fn place_for(context: &Context, given: Option<&Attributes>, kind: &str) -> NtResult<Place> {
    let Some(attributes) = given else {
        return Ok(Place::New(None));
    };
    let name = full_name(context, attributes)?;
    place(&mut context.state(), &name, kind, attributes.flags)
}

/// Returns the full name, from the root, that attributes specify, or an empty string.
pub fn full_name(context: &Context, attributes: &Attributes) -> NtResult<String> {
    let name = &attributes.name;
    if attributes.root == 0 {
        return Ok(name.clone());
    }
    let root = handles::target_of(context, attributes.root)?;
    if root.type_name != DIRECTORY {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    if name.starts_with('\\') {
        return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD);
    }
    let directory = name_of(context, root.object).unwrap_or_else(|| {
        context.stop_for_unprovided("for a name relative to a directory without a name")
    });
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
    fn an_object_of_any_type_takes_its_name() {
        const EVENT: &str = "ExEventObjectType";
        let mut state = ModuleStates::default();
        enter(&mut state, r"\KernelObjects\Event", 8, EVENT);
        for (name, type_name, flags, expected) in [
            (r"\KernelObjects\EVENT", EVENT, OPEN_IF, Ok(Some(8))),
            (r"\KernelObjects\Event", EVENT, 0, Err(NtStatus::OBJECT_NAME_COLLISION)),
            (r"\KernelObjects\Event", LINK, 0, Err(NtStatus::OBJECT_NAME_COLLISION)),
            (r"\KernelObjects\Event", DIRECTORY, OPEN_IF, Err(NtStatus::OBJECT_TYPE_MISMATCH)),
            (r"\KernelObjects\Event\X", EVENT, 0, Err(NtStatus::OBJECT_TYPE_MISMATCH)),
            (r"\KernelObjects\Other", EVENT, 0, Ok(None)),
            (r"\GLOBAL??\Global\Other", EVENT, 0, Ok(None)),
            (r"\??\GLOBALROOT\KernelObjects\Event", EVENT, OPEN_IF, Ok(Some(8))),
            (r"\Missing\Event", EVENT, 0, Err(OBJECT_PATH_NOT_FOUND)),
            (r"\KernelObjects\", EVENT, 0, Err(OBJECT_NAME_INVALID)),
            (r"\\Event", EVENT, 0, Err(OBJECT_NAME_INVALID)),
            ("Event", EVENT, 0, Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)),
        ] {
            let found = place(&mut state, name, type_name, flags).map(|place| match place {
                Place::Existing(object) => Some(object),
                Place::New(_) => None,
            });
            assert_eq!(found, expected, "{name} as {type_name}");
        }
    }

    #[test]
    fn a_new_directory_is_empty() {
        const EVENT: &str = "ExEventObjectType";
        let mut state = ModuleStates::default();
        let make = |state: &mut ModuleStates| create(state, Some(r"\A"), None, false);
        let first = make(&mut state);
        enter(&mut state, r"\A\Event", 8, EVENT);
        enter(&mut state, r"\AB", 16, EVENT);
        state.get::<Namespace>().delete(|one, _| one == first);
        make(&mut state);
        let is_new = |state: &mut ModuleStates, name: &str| {
            matches!(place(state, name, EVENT, OPEN_IF), Ok(Place::New(_)))
        };
        assert!(is_new(&mut state, r"\A\Event"));
        assert!(!is_new(&mut state, r"\AB"));
    }

    #[test]
    fn objects_without_names_do_not_collide() {
        let mut state = ModuleStates::default();
        let target = Target { bytes: Vec::new(), room: 2 };
        let made = [(); 2].map(|()| create(&mut state, None, Some(target.clone()), false));
        assert_ne!(made[0], made[1]);
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
