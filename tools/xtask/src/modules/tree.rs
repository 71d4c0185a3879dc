//! A crate's modules, according to its source files.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::files;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
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
        let fail = |error: syn::Error| {
            let start = error.span().start();
            anyhow::anyhow!("{}:{}: {error}", self.name(file), start.line)
        };
        let tokens = syn::parse_str::<TokenStream>(&(self.text)(file)?).map_err(fail)?;
        let parsed = syn::parse2::<syn::File>(without_tests(tokens)).map_err(fail)?;
        self.items(id, parsed.items, file, folder)
    }

    fn items(&mut self, id: Id, items: Vec<Item>, file: &Path, folder: &Path) -> Result<()> {
        for item in items {
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
        let is_exported = item.attrs.iter().any(|one| one.path().is_ident("macro_export"));
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

/// Removes what is only for tests: the items, statements, fields, arms and arguments below an attribute that
/// says so, and all of a file or block with an inner one.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    // The place of the first attribute of the current item.
    let mut start = 0;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let inner = tokens
                    .next_if(|one| matches!(one, TokenTree::Punct(mark) if mark.as_char() == '!'));
                let Some(TokenTree::Group(attribute)) = tokens.peek() else {
                    kept.push(TokenTree::Punct(mark));
                    kept.extend(inner);
                    continue;
                };
                if !syn::parse2::<Meta>(attribute.stream()).is_ok_and(|meta| is_for_tests(&meta)) {
                    kept.push(TokenTree::Punct(mark));
                    kept.extend(inner);
                    kept.extend(tokens.next());
                    continue;
                }
                if inner.is_some() {
                    return TokenStream::new();
                }
                kept.truncate(start);
                tokens.next();
                skip_item(&mut tokens);
            }
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), without_tests(group.stream()));
                inside.set_span(group.span());
                kept.push(TokenTree::Group(inside));
            }
            token => kept.push(token),
        }
        start = kept.len();
    }
    kept.into_iter().collect()
}

/// Skips the rest of what an attribute is about: an item ends with its braces or a semicolon; other things also
/// end with a comma.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    const WITH_BRACES: [&str; 7] = ["fn", "mod", "impl", "struct", "enum", "trait", "extern"];
    const WITH_SEMICOLON: [&str; 5] = ["use", "const", "static", "type", "let"];
    let (mut is_item, mut has_semicolon) = (false, false);
    for token in tokens {
        match token {
            TokenTree::Ident(word) if WITH_BRACES.iter().any(|one| word == one) => {
                (is_item, has_semicolon) = (true, false);
            }
            TokenTree::Ident(word) if WITH_SEMICOLON.iter().any(|one| word == one) => {
                (is_item, has_semicolon) = (true, !is_item);
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => return,
            TokenTree::Punct(mark) if mark.as_char() == ',' && !is_item => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !has_semicolon => {
                return;
            }
            _ => {}
        }
    }
}

/// Returns true for an attribute that restricts an item to tests.
fn is_for_tests(attribute: &Meta) -> bool {
    match attribute {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|predicate| needs_test(&predicate))
        }
        other => other.path().is_ident("test"),
    }
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
fn defined(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => return item.ident.iter().map(ToString::to_string).collect(),
        Item::ForeignMod(item) => {
            let name = |item: &syn::ForeignItem| match item {
                syn::ForeignItem::Fn(item) => Some(item.sig.ident.to_string()),
                syn::ForeignItem::Static(item) => Some(item.ident.to_string()),
                syn::ForeignItem::Type(item) => Some(item.ident.to_string()),
                _ => None,
            };
            return item.items.iter().filter_map(name).collect();
        }
        _ => return Vec::new(),
    };
    vec![name.to_string()]
}
