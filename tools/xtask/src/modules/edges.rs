//! Finds uses between modules.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{
    Arm, Attribute, Expr, ExprMethodCall, Field, FieldValue, ImplItem, Item, ItemImpl, ItemUse,
    Local, Macro, Meta, Path, Stmt, Token, TraitItem, Variant, Visibility, parse::Parser as _,
    punctuated::Punctuated, spanned::Spanned as _, visit, visit::Visit,
};

use super::{
    methods::Methods,
    names::Found,
    tree::{Crate, Id, Name, attributes, is_for_tests, used},
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
                finder.visit_item(item);
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
    fn method(&mut self, call: &ExprMethodCall) {
        let name = call.method.to_string();
        let is_self = match &*call.receiver {
            Expr::Path(receiver) => receiver.path.is_ident("self"),
            Expr::Field(_) => false,
            _ => return,
        };
        let found = match &self.self_type {
            Some(of) if is_self => self.methods.of_type(of, &name),
            Some(_) | None => self.methods.of_any(&name, call.args.len()),
        };
        for module in found {
            self.add(Some(module), call.method.span().start().line);
        }
    }

    /// Adds the modules that the paths in a macro's tokens refer to.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = TokenPath::default();
        // The colons and the dot since the last name.
        let (mut colons, mut after_dot) = (0, false);
        for token in tokens {
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
                    path.names.push(name.to_string());
                    (colons, after_dot) = (0, false);
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Punct(mark) => {
                    self.end(&mut path);
                    // Two dots are a range, and the range's end is a separate name.
                    (colons, after_dot) = (0, mark.as_char() == '.' && !after_dot);
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    // Names in the braces of a `use` are not separate paths.
                    if colons != 2 || group.delimiter() != Delimiter::Brace {
                        self.tokens(group.stream());
                    }
                    (colons, after_dot) = (0, false);
                }
                TokenTree::Literal(_) => {
                    self.end(&mut path);
                    (colons, after_dot) = (0, false);
                }
            }
        }
        self.end(&mut path);
    }

    /// Adds a complete path from a macro's tokens.
    fn end(&mut self, path: &mut TokenPath) {
        let path = std::mem::take(path);
        if !path.is_other {
            self.path(&path.names, path.line);
        }
    }
}

/// Adds the modules of the methods that an expression in a macro calls; paths are found in the
/// tokens.
struct Calls<'f, 'a>(&'f mut Finder<'a>);

impl<'ast> Visit<'ast> for Calls<'_, '_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.0.method(call);
        visit::visit_expr_method_call(self, call);
    }
}

/// A path in a macro's tokens.
#[derive(Default)]
struct TokenPath {
    names: Vec<String>,
    line: usize,
    /// True if the path is a field, a method, or a name in another crate.
    is_other: bool,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
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

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> =
                path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.path(&names, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        self.tokens(invoked.tokens.clone());
        // Tokens that are expressions, like `format!`'s, can call methods.
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        for expression in expressions.parse2(invoked.tokens.clone()).iter().flatten() {
            Calls(self).visit_expr(expression);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let outer = self.self_type.take();
        self.self_type = self.all.type_of(self.id, item);
        visit::visit_item_impl(self, item);
        self.self_type = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.method(call);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.tokens(list.tokens.clone()),
            Meta::Path(_) | Meta::NameValue(_) => {}
        }
    }

    // `pub(in crate::a)` uses nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[Attribute] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            TraitItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        if !is_for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !is_for_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Macro(statement) => &statement.attrs,
            Stmt::Expr(Expr::Call(call), _) => &call.attrs,
            Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            Stmt::Expr(Expr::If(branch), _) => &branch.attrs,
            Stmt::Expr(..) | Stmt::Local(_) | Stmt::Item(_) => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }
}
