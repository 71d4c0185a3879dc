//! The source of the services, as the tests read it: the routines, and what each does with its
//! arguments.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

use syn::{
    Expr, FnArg, Item, Lit, Pat, Stmt, Token, Type, UseTree,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// What a routine does with an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// It takes this number of low bits.
    Bits(u32),
    /// It takes the argument as a signed number.
    Signed,
    /// It reads or writes memory there.
    Address,
    /// It reads a value of this Rust type there.
    Value(String),
    /// It takes the argument as a handle of this Rust type's objects.
    Handle(String),
    /// It gives the argument to a function, as the parameter with this number.
    Passed(String, usize),
}

/// A function of the crate.
#[derive(Clone)]
pub struct Function {
    file: String,
    parameters: Vec<String>,
    /// Whether the parameters are the elements of an array. Otherwise the context is the first.
    is_array: bool,
    body: syn::Block,
}

impl Function {
    /// Returns the place among the parameters of a routine's argument.
    pub fn place(&self, argument: usize) -> usize {
        argument + usize::from(!self.is_array)
    }
}

/// The source of the services.
#[derive(Default)]
pub struct Source {
    functions: BTreeMap<String, Vec<Function>>,
    /// The routines by name: the file, the path of the function, and its first generic argument.
    pub routines: BTreeMap<String, (String, Vec<String>, Option<String>)>,
    /// The modules that files import functions from, by the file and the function.
    imports: HashMap<(String, String), String>,
    /// The handle types by the Rust types of the objects' data.
    pub handles: HashMap<String, String>,
    file: String,
}

impl Source {
    pub fn read() -> Self {
        let mut source = Self::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/services");
        source.read_folder(&root);
        source
    }

    fn read_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("the source is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("the source is readable");
                let file = syn::parse_file(&text).expect("the source is Rust");
                self.file = path.to_string_lossy().into_owned();
                for item in &file.items {
                    self.note_item(item);
                }
                self.visit_file(&file);
            }
        }
    }

    fn note_item(&mut self, item: &Item) {
        match item {
            Item::Fn(function) => {
                let elements = elements_of(function);
                let noted = Function {
                    file: self.file.clone(),
                    is_array: elements.is_some(),
                    parameters: elements.unwrap_or_else(|| parameters_of(function)),
                    body: (*function.block).clone(),
                };
                let name = function.sig.ident.to_string();
                self.functions.entry(name).or_default().push(noted);
            }
            Item::Use(item) => self.note_use("", &item.tree),
            Item::Impl(item) => {
                let is_data = item.trait_.as_ref().is_some_and(|(_, path, _)| {
                    path.segments.last().is_some_and(|last| last.ident == "Data")
                });
                let name = item.items.iter().find_map(|item| match item {
                    syn::ImplItem::Const(item) if item.ident == "NAME" => text_of(&item.expr),
                    _ => None,
                });
                if let (true, Some(name), Some(of)) = (is_data, name, type_name(&item.self_ty)) {
                    self.handles.insert(of, name);
                }
            }
            _ => {}
        }
    }

    /// Notes what a file imports from the module `parent`.
    fn note_use(&mut self, parent: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.note_use(&path.ident.to_string(), &path.tree),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_use(parent, tree);
                }
            }
            UseTree::Name(name) => {
                let key = (self.file.clone(), name.ident.to_string());
                self.imports.insert(key, parent.to_owned());
            }
            UseTree::Rename(_) | UseTree::Glob(_) => {}
        }
    }

    /// Returns a function by its name: that of the file or of the module that the file imports it from,
    /// or else the only one.
    pub fn function(&self, file: &str, path: &[String]) -> Option<&Function> {
        let name = path.last()?;
        let all = self.functions.get(name)?;
        let module = path.len().checked_sub(2).and_then(|place| path.get(place));
        let module = module.or_else(|| self.imports.get(&(file.to_owned(), name.clone())));
        let is_in = |one: &Function, module: &String| {
            let endings = [format!("/{module}.rs"), format!("/{module}/mod.rs")];
            endings.iter().any(|ending| one.file.ends_with(ending))
        };
        let is_near =
            |one: &&Function| module.map_or_else(|| one.file == file, |module| is_in(one, module));
        all.iter().find(is_near).or(match all.as_slice() {
            [only] => Some(only),
            _ => None,
        })
    }

    /// Adds what a function does with one of its parameters.
    pub fn uses(
        &self,
        function: &Function,
        parameter: usize,
        generic: Option<&str>,
        depth: u32,
        found: &mut BTreeSet<Use>,
    ) {
        let Some(name) = function.parameters.get(parameter) else {
            return;
        };
        let mut uses = Uses { name, is_shadowed: false, found: Vec::new() };
        uses.visit_block(&function.body);
        for one in uses.found {
            match one {
                Use::Passed(path, place) if depth > 0 => {
                    let path: Vec<String> = path.split("::").map(str::to_owned).collect();
                    if let Some(next) = self.function(&function.file, &path) {
                        self.uses(next, place, None, depth - 1, found);
                    }
                }
                Use::Passed(..) => {}
                Use::Handle(kind) => {
                    let kind = if kind == "T" { generic.unwrap_or("T").to_owned() } else { kind };
                    found.insert(Use::Handle(kind));
                }
                other => {
                    found.insert(other);
                }
            }
        }
    }
}

impl Source {
    /// Notes a row of the services' lists: a name, and a routine.
    fn note_row(&mut self, tuple: &syn::ExprTuple) {
        let name = tuple.elems.first().and_then(text_of);
        if let (Some(name), Some(Expr::Call(call))) = (name, tuple.elems.last())
            && path_of(&call.func)
                .is_some_and(|path| path.first().is_some_and(|is| is == "Routine"))
            && let Some(Expr::Path(path)) = call.args.first()
        {
            let generic = path.path.segments.last().and_then(first_generic);
            let path = path_of(&Expr::Path(path.clone())).unwrap_or_default();
            self.routines.insert(name, (self.file.clone(), path, generic));
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_expr_tuple(&mut self, tuple: &'ast syn::ExprTuple) {
        self.note_row(tuple);
        visit::visit_expr_tuple(self, tuple);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        type Items = Punctuated<Expr, Token![,]>;
        if let Ok(items) = call.parse_body_with(Items::parse_terminated) {
            for item in items {
                if let Expr::Tuple(tuple) = item {
                    self.note_row(&tuple);
                }
            }
        }
    }
}

/// Returns the names of a function's parameters.
fn parameters_of(function: &syn::ItemFn) -> Vec<String> {
    let names = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(ident_of(&input.pat)),
        FnArg::Receiver(_) => None,
    });
    names.collect()
}

/// Returns the names of the elements if a function takes its arguments in an array, as those of routines
/// with more than six do.
fn elements_of(function: &syn::ItemFn) -> Option<Vec<String>> {
    let FnArg::Typed(array) = function.sig.inputs.get(1)? else {
        return None;
    };
    if function.sig.inputs.len() != 2 || !matches!(*array.ty, Type::Array(_)) {
        return None;
    }
    let statements = function.block.stmts.iter();
    let mut first_let = statements.filter_map(|statement| match statement {
        Stmt::Local(local) => Some(&local.pat),
        _ => None,
    });
    let pattern = match &*array.pat {
        Pat::Slice(_) => Some(&*array.pat),
        _ => first_let.next(),
    };
    Some(match pattern {
        Some(Pat::Slice(slice)) => slice.elems.iter().map(ident_of).collect(),
        _ => Vec::new(),
    })
}

fn ident_of(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(ident) => ident.ident.to_string(),
        _ => "_".to_owned(),
    }
}

fn text_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn path_of(expression: &Expr) -> Option<Vec<String>> {
    match expression {
        Expr::Path(path) => {
            let segments = path.path.segments.iter();
            Some(segments.map(|segment| segment.ident.to_string()).collect())
        }
        _ => None,
    }
}

/// Returns the name of a type that has no arguments.
fn type_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

fn first_generic(segment: &syn::PathSegment) -> Option<String> {
    match &segment.arguments {
        syn::PathArguments::AngleBracketed(arguments) => first_type(arguments),
        _ => None,
    }
}

fn first_type(arguments: &syn::AngleBracketedGenericArguments) -> Option<String> {
    match arguments.args.first()? {
        syn::GenericArgument::Type(kind) => type_name(kind),
        _ => None,
    }
}

/// Returns what giving an argument to a function shows, as the function's parameter with a number.
fn given_to(path: &[String], place: usize) -> Option<Use> {
    Some(match path.last().map_or("", String::as_str) {
        "low_half" | "from_register" => Use::Bits(32),
        "low_byte" => Use::Bits(8),
        "with_init" => Use::Handle("DeviceInit".to_owned()),
        _ if path.first().is_some_and(|first| first == "memory") => {
            return (place == 0).then_some(Use::Address);
        }
        _ => Use::Passed(path.join("::"), place),
    })
}

/// Collects what a function does with one of its parameters, until another variable takes its name.
struct Uses<'a> {
    name: &'a str,
    is_shadowed: bool,
    found: Vec<Use>,
}

impl Uses<'_> {
    fn is_it(&self, expression: &Expr) -> bool {
        let is_name = matches!(expression, Expr::Path(path) if path.path.is_ident(self.name));
        is_name && !self.is_shadowed
    }

    fn binds(&self, pattern: &Pat) -> bool {
        struct Binds<'a>(&'a str, bool);
        impl<'ast> Visit<'ast> for Binds<'_> {
            fn visit_pat_ident(&mut self, ident: &'ast syn::PatIdent) {
                self.1 |= ident.ident == self.0;
            }
        }
        let mut binds = Binds(self.name, false);
        binds.visit_pat(pattern);
        binds.1
    }

    /// Returns whether an expression reads a value at the parameter.
    fn reads(&self, expression: &Expr) -> bool {
        match expression {
            Expr::MethodCall(call) => {
                call.method == "read" && call.args.first().is_some_and(|first| self.is_it(first))
            }
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let before = self.is_shadowed;
        visit::visit_block(self, block);
        self.is_shadowed = before;
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (Pat::Type(pattern), Some(init)) = (&local.pat, &local.init)
            && self.reads(&init.expr)
            && let Some(kind) = type_name(&pattern.ty)
        {
            self.found.push(Use::Value(kind));
        }
        visit::visit_local(self, local);
        // This names the elements of the array of arguments, which are the parameters.
        let names_elements = matches!(local.pat, Pat::Slice(_))
            && matches!(&local.init, Some(init) if matches!(*init.expr, Expr::Path(_)));
        self.is_shadowed |= !names_elements && self.binds(&local.pat);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let before = self.is_shadowed;
        self.is_shadowed |= closure.inputs.iter().any(|input| self.binds(input));
        visit::visit_expr_closure(self, closure);
        self.is_shadowed = before;
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let before = self.is_shadowed;
        self.is_shadowed |= self.binds(&arm.pat);
        visit::visit_arm(self, arm);
        self.is_shadowed = before;
    }

    fn visit_expr_let(&mut self, binding: &'ast syn::ExprLet) {
        visit::visit_expr_let(self, binding);
        self.is_shadowed |= self.binds(&binding.pat);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let path = path_of(&call.func).unwrap_or_default();
        for (place, argument) in call.args.iter().enumerate() {
            if self.is_it(argument) {
                self.found.extend(given_to(&path, place));
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let generic = call.turbofish.as_ref().and_then(first_type);
        if call.args.first().is_some_and(|first| self.is_it(first)) {
            match call.method.to_string().as_str() {
                "read" => {
                    self.found.push(Use::Address);
                    self.found.extend(generic.map(Use::Value));
                }
                "bytes" | "read_bytes" | "read_into" | "write" | "write_bytes" => {
                    self.found.push(Use::Address);
                }
                // Unlike `get`, it bugchecks for an object of another kind.
                "with" => self.found.extend(generic.map(Use::Handle)),
                _ => {}
            }
        }
        if let (true, Expr::Array(array), Some(with)) =
            (call.method == "map", &*call.receiver, call.args.first())
            && array.elems.iter().any(|element| self.is_it(element))
        {
            let with = path_of(with).unwrap_or_default();
            self.found.extend(given_to(&with, 0));
        }
        if call.method == "cast_signed" && self.is_it(&call.receiver) {
            self.found.push(Use::Signed);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if matches!(binary.op, syn::BinOp::BitAnd(_))
            && self.is_it(&binary.left)
            && let Expr::Lit(literal) = &*binary.right
            && let Lit::Int(mask) = &literal.lit
        {
            let bits = match mask.base10_parse::<u64>() {
                Ok(0xFF) => Some(8),
                Ok(0xFFFF) => Some(16),
                Ok(0xFFFF_FFFF) => Some(32),
                _ => None,
            };
            self.found.extend(bits.map(Use::Bits));
        }
        visit::visit_expr_binary(self, binary);
    }
}
