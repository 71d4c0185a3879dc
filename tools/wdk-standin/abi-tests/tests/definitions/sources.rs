//! The definitions in the stand-in's generated sources.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    rc::Rc,
};

use quote::ToTokens;
use syn::{
    Attribute, Expr, Fields, FieldsNamed, ForeignItem, Item, ItemForeignMod, Lit, Meta, UnOp,
    Visibility,
};

use crate::{BASE, compact};

/// The items of each set in a file.
type Sets = BTreeMap<String, Vec<Item>>;

thread_local! {
    /// The files that this thread has read.
    static FILES: RefCell<BTreeMap<String, Rc<Sets>>> = RefCell::default();
}

/// Returns a file's items. If the file is divided into sets, returns only the items of `set`.
fn items(name: &str, set: &str) -> Vec<Item> {
    let sets = FILES.with_borrow_mut(|files| {
        let file = files.entry(name.to_owned());
        Rc::clone(file.or_insert_with(|| Rc::new(read(name))))
    });
    sets.get(set).cloned().unwrap_or_default()
}

fn read(name: &str) -> Sets {
    let path = Path::new(env!("WDK_SYS_SOURCES")).join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // A line names the set of the items after it. A file without such lines contains one set.
    let titled = text.split("\n// Set: ").skip(1).map(|part| part.split_once('\n').expect("items"));
    let mut sets: Vec<_> = titled.collect();
    if sets.is_empty() {
        sets.push((BASE, &text));
    }
    let items = |source| syn::parse_file(source).expect("the sources are Rust").items;
    sets.into_iter().map(|(set, source)| (set.to_owned(), items(source))).collect()
}

fn tokens(part: &impl ToTokens) -> String {
    compact(&part.to_token_stream().to_string())
}

/// Returns the arguments of the first attribute with this name.
fn attribute(attributes: &[Attribute], name: &str) -> Option<String> {
    attributes.iter().find_map(|one| match &one.meta {
        Meta::List(list) if list.path.is_ident(name) => Some(tokens(&list.tokens)),
        _ => None,
    })
}

/// Returns the condition of an item, in brackets.
fn condition(attributes: &[Attribute]) -> String {
    attribute(attributes, "cfg").map_or_else(String::new, |cfg| format!("[{cfg}] "))
}

fn fields(named: &FieldsNamed) -> String {
    let fields: Vec<String> = named
        .named
        .iter()
        .map(|field| {
            let name = field.ident.as_ref().expect("fields have names");
            let visibility = match field.vis {
                Visibility::Public(_) => "pub ",
                _ => "",
            };
            format!("{visibility}{name}:{}", tokens(&field.ty))
        })
        .collect();
    fields.join("; ")
}

/// Returns the lines of an item; none for an import.
fn lines(item: &Item) -> Vec<String> {
    let described = |keyword, name: &syn::Ident, attributes: &[Attribute], named| {
        format!(
            "{}{keyword} {name} repr({}) derive({}) {{{}}}",
            condition(attributes),
            attribute(attributes, "repr").unwrap_or_default(),
            attribute(attributes, "derive").unwrap_or_default(),
            fields(named)
        )
    };
    match item {
        Item::Struct(item) => {
            let Fields::Named(named) = &item.fields else {
                panic!("{} has no named fields", item.ident);
            };
            vec![described("struct", &item.ident, &item.attrs, named)]
        }
        Item::Union(item) => vec![described("union", &item.ident, &item.attrs, &item.fields)],
        Item::Type(item) => {
            vec![format!("{}type {} = {}", condition(&item.attrs), item.ident, tokens(&item.ty))]
        }
        Item::Macro(item) => vec![format!(
            "{}{} {}",
            condition(&item.attrs),
            tokens(&item.mac.path),
            tokens(&item.mac.tokens)
        )],
        Item::Use(item) => match item.vis {
            Visibility::Public(_) => {
                let text = item.tree.to_token_stream().to_string();
                let (path, name) = text.rsplit_once(" as ").expect("a renamed import");
                vec![format!("use {} as {name}", compact(path))]
            }
            _ => Vec::new(),
        },
        Item::Mod(item) => {
            let name = &item.ident;
            let (_, content) = item.content.as_ref().expect("an inline module");
            let lines = content.iter().map(|item| match item {
                Item::Type(item) => {
                    format!("mod {name}: type {} = {}", item.ident, tokens(&item.ty))
                }
                Item::Const(item) => {
                    assert_eq!(tokens(&item.ty), "Type");
                    let value = value(&item.expr);
                    format!("{}{name}::{} = {value}", condition(&item.attrs), item.ident)
                }
                other => panic!("{name} contains {}", tokens(other)),
            });
            lines.collect()
        }
        other => panic!("unexpected: {}", tokens(other)),
    }
}

/// Returns a constant's value in the data's notation.
fn value(expression: &Expr) -> String {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_digits().to_owned(),
            Lit::CStr(text) => {
                serde_json::to_string(text.value().to_str().expect("UTF-8")).expect("a string")
            }
            other => panic!("unexpected literal {}", tokens(other)),
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            format!("-{}", value(&unary.expr))
        }
        Expr::MethodCall(call) if call.method == "cast_signed" => {
            let unsigned: u32 = value(&call.receiver).parse().expect("32 bits");
            unsigned.cast_signed().to_string()
        }
        Expr::Call(call) if tokens(&call.func) == "::core::ptr::null_mut" => "null".to_owned(),
        other => panic!("unexpected value {}", tokens(other)),
    }
}

/// The types of a set.
pub fn types(set: &str) -> BTreeSet<String> {
    let items = items("types.rs", set);
    items.iter().flat_map(lines).collect()
}

/// The enumeration of the framework's functions, and the function pointer types.
pub fn framework() -> BTreeSet<String> {
    items("framework.rs", BASE).iter().flat_map(lines).collect()
}

/// The values of the enumeration of the framework's functions.
pub fn function_indices() -> BTreeMap<String, i64> {
    let lines = framework();
    let values = lines.iter().filter_map(|line| {
        let (name, value) = line.strip_prefix("_WDFFUNCENUM::")?.split_once(" = ")?;
        Some((name.to_owned(), value.parse().expect("a number")))
    });
    values.collect()
}

/// The constants of a set.
pub fn constants(set: &str) -> BTreeSet<String> {
    let items = items("constants.rs", set);
    let constants = items.iter().filter_map(|item| match item {
        Item::Const(item) => Some(format!(
            "{}{}: {} = {}",
            condition(&item.attrs),
            item.ident,
            tokens(&item.ty),
            value(&item.expr)
        )),
        _ => None,
    });
    constants.collect()
}

/// Returns the module from which a block's items are imported.
fn module(block: &ItemForeignMod) -> String {
    let Some(attribute) = attribute(&block.attrs, "cfg_attr") else {
        return String::new();
    };
    assert!(attribute.contains("kind=\"raw-dylib\",modifiers=\"+verbatim\""), "{attribute}");
    let (_, rest) = attribute.split_once("name=\"").expect("a module");
    rest.split('"').next().expect("a module").to_owned()
}

/// Calls `each` with every declaration of foreign items and its module.
fn for_each_declaration(items: Vec<Item>, mut each: impl FnMut(&ForeignItem, &str)) {
    for item in items {
        if let Item::ForeignMod(block) = item {
            let module = module(&block);
            for item in &block.items {
                each(item, &module);
            }
        }
    }
}

/// The variables of a set.
pub fn variables(set: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for_each_declaration(items("constants.rs", set), |item, module| {
        let ForeignItem::Static(item) = item else {
            panic!("unexpected: {}", tokens(item));
        };
        let mutable = match item.mutability {
            syn::StaticMutability::Mut(_) => "mut ",
            _ => "",
        };
        let line = format!("{mutable}{}: {} from {module}", item.ident, tokens(&item.ty));
        if item.attrs.is_empty() {
            lines.insert(line.clone());
        }
        for attribute in &item.attrs {
            let Meta::List(list) = &attribute.meta else {
                panic!("unexpected: {}", tokens(attribute));
            };
            let text = tokens(&list.tokens);
            let (condition, symbol) = text.split_once(",link_name=").expect("a symbol");
            lines.insert(format!("[{condition}] {line} as {}", symbol.trim_matches('"')));
        }
    });
    lines
}

/// The variables that are declared only if the entry code that defines them is compiled out.
pub fn entry_variables() -> BTreeSet<String> {
    let blocks = items("constants.rs", BASE).into_iter();
    let blocks = blocks.filter_map(|item| match item {
        Item::ForeignMod(block) => {
            let condition = condition(&block.attrs);
            (condition == "[feature=\"suppress-wdk-linking\"] ").then_some(block)
        }
        _ => None,
    });
    let variables = blocks.flat_map(|block| block.items).map(|item| match item {
        ForeignItem::Static(item) => item.ident.to_string(),
        other => panic!("unexpected: {}", tokens(&other)),
    });
    variables.collect()
}

/// Returns the items in the module of a set's functions.
fn function_items(set: &str) -> Vec<Item> {
    let wanted = if set == BASE { "ntddk" } else { set };
    items("functions.rs", BASE)
        .into_iter()
        .find_map(|item| match item {
            Item::Mod(module) if module.ident == wanted => module.content.map(|(_, items)| items),
            _ => None,
        })
        .expect("a module for each set")
}

/// The functions of a set.
pub fn functions(set: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for_each_declaration(function_items(set), |item, _| {
        let ForeignItem::Fn(item) = item else {
            panic!("unexpected: {}", tokens(item));
        };
        let must_use = item.attrs.iter().any(|one| one.path().is_ident("must_use"));
        let signature = tokens(&item.sig);
        let signature = signature.strip_prefix("fn").expect("a function");
        let must_use = if must_use { "must_use " } else { "" };
        lines.insert(format!("{must_use}{signature}"));
    });
    lines
}

/// The module from which each function is imported, or an empty name.
pub fn modules() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for set in std::iter::once(BASE).chain(crate::FEATURES) {
        for_each_declaration(function_items(set), |item, module| {
            if let ForeignItem::Fn(item) = item {
                all.insert(item.sig.ident.to_string(), module.to_owned());
            }
        });
    }
    all
}

/// Returns the number of layout assertions in a set with KMDF 1.31.
pub fn assertions(set: &str) -> usize {
    types(set)
        .iter()
        .filter_map(|line| {
            let line = line.strip_prefix("[not(kmdf_1_33)] ").unwrap_or(line);
            // The size, the alignment and each offset are assertions; the name is not.
            line.strip_prefix("layout ").map(|rest| rest.matches(',').count())
        })
        .sum()
}
