//! Finds uses between modules.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Expr, Item, ItemUse, Token, Visibility, parse::Parser as _, punctuated::Punctuated};

use super::{
    methods::Methods,
    names::Found,
    tree::{Crate, Id, Name, used},
};

/// For each module, the modules that it uses, with the location of the first use.
pub type Edges = Vec<BTreeMap<Id, Place>>;

/// A location in a module's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The module.
    pub module: Id,
    /// The line.
    pub line: usize,
}

impl Crate {
    /// Returns the edges between the modules.
    pub fn edges(&self) -> Edges {
        let methods = Methods::collect(self);
        let mut edges = vec![BTreeMap::new(); self.modules.len()];
        for id in 0..self.modules.len() {
            let mut finder = Finder {
                all: self,
                methods: &methods,
                id,
                self_type: None,
                found: BTreeMap::new(),
            };
            for item in &self.modules[id].items {
                finder.item(item);
            }
            // Alternative modules that `cfg` selects from count as one module.
            let id = self.first_of_name(id);
            for (to, place) in finder.found {
                let to = self.first_of_name(to);
                if to != id {
                    edges[id].entry(to).or_insert(place);
                }
            }
        }
        edges
    }

    /// Returns the edges between modules with the same parent, each together with all modules
    /// inside it.
    pub fn edges_of_siblings(&self, edges: &Edges) -> Edges {
        let mut lifted = vec![BTreeMap::new(); self.modules.len()];
        for (from, uses) in edges.iter().enumerate() {
            for (to, place) in uses {
                let (from, to) = (self.ancestors(from), self.ancestors(*to));
                let pair = from.iter().zip(&to).find(|(from, to)| from != to);
                if let Some((from, to)) = pair {
                    lifted[*from].entry(*to).or_insert(*place);
                }
            }
        }
        lifted
    }

    /// Returns the modules from the root to a module.
    fn ancestors(&self, id: Id) -> Vec<Id> {
        let mut found = vec![id];
        let mut at = self.modules[id].parent;
        while let Some(id) = at {
            found.push(id);
            at = self.modules[id].parent;
        }
        found.reverse();
        found
    }
}

/// Collects the modules that one module uses.
struct Finder<'a> {
    all: &'a Crate,
    methods: &'a Methods,
    id: Id,
    /// The type of the current `impl`.
    self_type: Option<Found>,
    found: BTreeMap<Id, Place>,
}

impl Finder<'_> {
    fn add(&mut self, to: Option<Id>, line: usize) {
        if let Some(to) = to.filter(|to| *to != self.id) {
            let place = Place { module: self.id, line };
            let first = self.found.entry(to).or_insert(place);
            *first = place.min(*first);
        }
    }

    /// Adds the module that a path in code refers to.
    fn path(&mut self, path: &[String], line: usize) {
        let Some(first) = path.first() else { return };
        let module = &self.all.modules[self.id];
        let is_use = match first.as_str() {
            // This is a receiver or a visibility.
            "crate" | "self" | "super" => path.len() > 1,
            // A `use` is itself an edge; a re-export is an edge where the name is used.
            name => match module.names.get(name) {
                // The path can go through the imported module to one of its re-exports.
                Some(Name::Imported(import)) => import.is_reexport || path.len() > 1,
                Some(Name::Own) => false,
                None => {
                    path.len() > 1 && module.children.contains_key(name)
                        || self.all.is_in_a_glob(self.id, name)
                }
            },
        };
        if is_use {
            let found = self.all.resolve(self.id, path);
            self.add(found.map(|found| found.module), line);
        }
        self.associated(path, line);
    }

    /// Adds the modules that implement the function or constant in `Type::name`.
    fn associated(&mut self, path: &[String], line: usize) {
        let Some((name, of)) = path.split_last() else {
            return;
        };
        let found = match of {
            [] => return,
            [only] if only == "Self" => self.self_type.clone(),
            of => self.all.resolve(self.id, of),
        };
        if let Some(found) = found {
            for module in self.methods.of_type(&found, name) {
                self.add(Some(module), line);
            }
        }
    }

    /// Adds the modules that implement a method. The types of variables and fields are unknown, so
    /// their methods count only if a single type in the crate has a method with that name.
    fn method(&mut self, is_self: bool, name: &Ident, arguments: TokenStream) {
        let text = name.to_string();
        let found = match &self.self_type {
            Some(of) if is_self => self.methods.of_type(of, &text),
            Some(_) | None => {
                let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(arguments);
                self.methods.of_any(&text, arguments.map_or(0, |all| all.len()))
            }
        };
        for module in found {
            self.add(Some(module), name.span().start().line);
        }
    }

    /// Adds the modules that an item uses.
    fn item(&mut self, item: &Item) {
        match item {
            Item::Use(item) => self.import(item),
            Item::Impl(implementation) => {
                self.self_type = self.all.type_of(self.id, implementation);
                self.tokens(item.to_token_stream());
                self.self_type = None;
            }
            _ => self.tokens(item.to_token_stream()),
        }
    }

    fn import(&mut self, item: &ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        for used in used(item) {
            let found = self.all.resolve(self.id, &used.path);
            let to = found.map(|found| found.module);
            let is_edge = to.is_some_and(|to| !(is_reexport && self.all.is_within(to, self.id)));
            if is_edge {
                self.add(to, used.line);
            }
        }
    }

    /// Adds the modules that the paths and the calls of methods in tokens refer to.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = TokenPath::default();
        // The colons and the dot since the last name, and the name before the dot.
        let (mut colons, mut after_dot, mut receiver) = (0, false, None);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path);
                        path.line = name.span().start().line;
                        path.is_other = after_dot;
                    } else if path.names.is_empty() {
                        // `::name` belongs to another crate.
                        path.is_other = true;
                    }
                    if let (true, Some(of), Some(TokenTree::Group(arguments))) =
                        (after_dot, &receiver, tokens.peek())
                        && arguments.delimiter() == Delimiter::Parenthesis
                    {
                        self.method(*of == "self", &name, arguments.stream());
                        receiver = None;
                    } else {
                        receiver = Some(name.to_string());
                    }
                    path.names.push(name.to_string());
                    (colons, after_dot) = (0, false);
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Punct(mark) => {
                    self.end(&mut path);
                    // Two dots are a range, and the range's end is a separate name.
                    (colons, after_dot) = (0, mark.as_char() == '.' && !after_dot);
                    receiver = receiver.filter(|_| after_dot);
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    // Names in the braces of a `use` are not separate paths, and a visibility uses nothing.
                    let is_visibility = receiver.as_deref() == Some("pub");
                    if !is_visibility && (colons != 2 || group.delimiter() != Delimiter::Brace) {
                        self.tokens(group.stream());
                    }
                    (colons, after_dot, receiver) = (0, false, None);
                }
                TokenTree::Literal(_) => {
                    self.end(&mut path);
                    (colons, after_dot, receiver) = (0, false, None);
                }
            }
        }
        self.end(&mut path);
    }

    /// Adds a complete path.
    fn end(&mut self, path: &mut TokenPath) {
        let path = std::mem::take(path);
        if !path.is_other {
            self.path(&path.names, path.line);
        }
    }
}

/// A path in tokens.
#[derive(Default)]
struct TokenPath {
    names: Vec<String>,
    line: usize,
    /// True if the path is a field, a method, or a name in another crate.
    is_other: bool,
}
