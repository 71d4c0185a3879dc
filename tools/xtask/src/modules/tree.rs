//! A crate's modules, according to its source files.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::files;
use syn::{
    Attribute, Item, ItemUse, Meta, UseTree, Visibility, parse::Parser as _, spanned::Spanned,
};

/// The index of a module in [`Crate::modules`].
pub type Id = usize;

/// The crate's root module.
pub const ROOT: Id = 0;

/// A crate's modules except test modules; the first is the root.
#[derive(Default)]
pub struct Crate {
    /// The modules.
    pub modules: Vec<Module>,
    /// The modules whose names each module's globs import; computed on demand.
    pub(super) globs: OnceCell<Vec<Vec<Id>>>,
    /// True while the globs are being resolved.
    pub(super) is_resolving: Cell<bool>,
}

/// A module, in a separate file or inside another module.
#[derive(Default)]
pub struct Module {
    /// The path: `crate::etw::session`.
    pub path: String,
    /// The module that declares this module.
    pub parent: Option<Id>,
    /// The previous module with the same path, if `cfg` selects one of them.
    pub twin_of: Option<Id>,
    /// The file, relative to the repository's root.
    pub file: String,
    /// The modules that this module declares.
    pub children: BTreeMap<String, Id>,
    /// The other names that the module defines or imports.
    pub names: BTreeMap<String, Name>,
    /// The paths of the module's glob imports (`use …::*`).
    pub globs: Vec<Import>,
    /// The items, except for modules and test code.
    pub items: Vec<Item>,
}

/// A name in a module.
pub enum Name {
    /// The module defines the name.
    Own,
    /// The module imports the name.
    Imported(Import),
}

/// A path from which a module imports a name.
pub struct Import {
    /// The path.
    pub path: Vec<String>,
    /// True if other modules can import the name from this module.
    pub is_reexport: bool,
}

/// A path in a `use` and the name that it imports; a glob has no name.
pub struct Used {
    /// The path.
    pub path: Vec<String>,
    /// The imported name.
    pub name: Option<String>,
    /// The line number.
    pub line: usize,
}

impl Crate {
    /// Reads a crate from its root file; file names are relative to folder `root`.
    pub fn read(file: &Path, root: &Path) -> Result<Self> {
        let folder =
            file.parent().with_context(|| format!("{} has no parent folder", file.display()))?;
        Self::build(file, folder, root, &|path| files::read_to_string(path))
    }

    /// Reads a crate whose root file is `lib.rs`, from its files' contents by path.
    #[cfg(test)]
    pub fn of_texts(files: &[(&str, &str)]) -> Self {
        let text = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found
                .map(|(_, text)| (*text).to_owned())
                .with_context(|| format!("no {}", path.display()))
        };
        Self::build(Path::new("lib.rs"), Path::new(""), Path::new(""), &text).unwrap()
    }

    fn build(
        file: &Path,
        folder: &Path,
        root: &Path,
        text: &dyn Fn(&Path) -> Result<String>,
    ) -> Result<Self> {
        let mut reader = Reader { root, text, made: Self::default() };
        let id = reader.made.add("crate".to_owned(), None, reader.name(file));
        reader.file(id, file, folder)?;
        Ok(reader.made)
    }

    fn add(&mut self, path: String, parent: Option<Id>, file: String) -> Id {
        self.modules.push(Module { path, parent, file, ..Module::default() });
        self.modules.len() - 1
    }

    /// Adds a module to its parent's children.
    fn declare(&mut self, parent: Id, name: String, id: Id) {
        let first = *self.modules[parent].children.entry(name).or_insert(id);
        if first != id {
            self.modules[id].twin_of = Some(first);
        }
    }
}

struct Reader<'a> {
    root: &'a Path,
    text: &'a dyn Fn(&Path) -> Result<String>,
    made: Crate,
}

impl Reader<'_> {
    fn name(&self, file: &Path) -> String {
        let name = file.strip_prefix(self.root).unwrap_or(file);
        name.display().to_string().replace('\\', "/")
    }

    /// Reads a module's file; its child modules' files are in `folder`.
    fn file(&mut self, id: Id, file: &Path, folder: &Path) -> Result<()> {
        let parsed = syn::parse_file(&(self.text)(file)?).map_err(|error| {
            let start = error.span().start();
            anyhow::anyhow!("{}:{}: {error}", self.name(file), start.line)
        })?;
        if is_for_tests(&parsed.attrs) {
            return Ok(());
        }
        self.items(id, parsed.items, file, folder)
    }

    fn items(&mut self, id: Id, items: Vec<Item>, file: &Path, folder: &Path) -> Result<()> {
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(module) => self.module(id, module, file, folder)?,
                Item::Use(item) => {
                    self.import(id, &item);
                    self.made.modules[id].items.push(Item::Use(item));
                }
                item => {
                    for name in defined(&item) {
                        self.made.modules[id].names.insert(name, Name::Own);
                    }
                    self.export(id, &item);
                    self.made.modules[id].items.push(item);
                }
            }
        }
        Ok(())
    }

    fn module(
        &mut self,
        parent: Id,
        module: syn::ItemMod,
        file: &Path,
        folder: &Path,
    ) -> Result<()> {
        let name = module.ident.to_string();
        let path = format!("{}::{name}", self.made.modules[parent].path);
        let inner = folder.join(&name);
        let named = named_file(&module.attrs)?;
        if let Some((_, items)) = module.content {
            let id = self.made.add(path, Some(parent), self.name(file));
            self.made.declare(parent, name, id);
            return self.items(id, items, file, &inner);
        }
        let candidates = named.map_or_else(
            || vec![folder.join(format!("{name}.rs")), inner.join("mod.rs")],
            |named| {
                let beside = file.parent().unwrap_or(folder);
                vec![beside.join(named)]
            },
        );
        let found = candidates.iter().find(|candidate| (self.text)(candidate).is_ok());
        let Some(found) = found else {
            bail!("{} declares {path}, which has no file", self.name(file));
        };
        let id = self.made.add(path, Some(parent), self.name(found));
        self.made.declare(parent, name, id);
        self.file(id, found, &inner)
    }

    fn import(&mut self, id: Id, item: &ItemUse) {
        let import =
            |path| Import { path, is_reexport: !matches!(item.vis, Visibility::Inherited) };
        let module = &mut self.made.modules[id];
        for used in used(item) {
            match used.name {
                Some(name) if name == "_" => {}
                // `pub use name;` makes a macro reachable by path.
                Some(name) if used.path == [name.as_str()] => {}
                Some(name) => {
                    module.names.insert(name, Name::Imported(import(used.path)));
                }
                None => module.globs.push(import(used.path)),
            }
        }
    }

    /// Adds an exported macro to the names of the crate's root.
    fn export(&mut self, id: Id, item: &Item) {
        let Item::Macro(item) = item else { return };
        let is_exported = has_attribute(&item.attrs, "macro_export");
        let Some(name) = item.ident.as_ref().filter(|_| is_exported && id != ROOT) else {
            return;
        };
        let mut path: Vec<String> =
            self.made.modules[id].path.split("::").map(str::to_owned).collect();
        path.push(name.to_string());
        let import = Import { path, is_reexport: true };
        self.made.modules[ROOT].names.insert(name.to_string(), Name::Imported(import));
    }
}

/// Returns the paths in a `use`.
pub fn used(item: &ItemUse) -> Vec<Used> {
    fn walk(tree: &UseTree, before: &[String], found: &mut Vec<Used>) {
        let line = tree.span().start().line;
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            if name != "self" || before.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(tree) => walk(&tree.tree, &with(&tree.ident), found),
            UseTree::Name(tree) => {
                let path = with(&tree.ident);
                found.push(Used { name: path.last().cloned(), path, line });
            }
            UseTree::Rename(tree) => found.push(Used {
                name: Some(tree.rename.to_string()),
                path: with(&tree.ident),
                line,
            }),
            UseTree::Glob(_) => found.push(Used { name: None, path: before.to_vec(), line }),
            UseTree::Group(tree) => {
                for tree in &tree.items {
                    walk(tree, before, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    // `use ::name` refers to another crate.
    if item.leading_colon.is_none() {
        walk(&item.tree, &[], &mut found);
    }
    found
}

/// Returns true for attributes that restrict an item to tests.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || path.is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|predicate| needs_test(&predicate))
    })
}

/// Returns true for a `cfg` predicate that holds only in tests.
fn needs_test(predicate: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated
            .parse2(list.tokens.clone())
            .map(|parts| parts.into_iter().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    match predicate {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

/// Returns the file in `#[path = "…"]`.
fn named_file(attributes: &[Attribute]) -> Result<Option<PathBuf>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("path"))
    else {
        return Ok(None);
    };
    let value = &attribute.meta.require_name_value()?.value;
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else {
        bail!("the attribute `path` of a module is not a string");
    };
    ensure!(!text.value().is_empty(), "the path of a module is empty");
    Ok(Some(PathBuf::from(text.value())))
}

/// Returns the names that an item defines in its module.
pub fn defined(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => return item.ident.iter().map(ToString::to_string).collect(),
        Item::ForeignMod(item) => {
            return item
                .items
                .iter()
                .filter_map(|item| match item {
                    syn::ForeignItem::Fn(item) => Some(item.sig.ident.to_string()),
                    syn::ForeignItem::Static(item) => Some(item.ident.to_string()),
                    syn::ForeignItem::Type(item) => Some(item.ident.to_string()),
                    _ => None,
                })
                .collect();
        }
        _ => return Vec::new(),
    };
    vec![name.to_string()]
}

/// Returns true if the attributes include one with this name.
pub fn has_attribute(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// Returns an item's attributes.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
