//! Finds provider declarations in a library's source.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow};
use driver_build::files;
use syn::{Attribute, Expr, ExprLit, Item, ItemMacro, ItemMod, Lit, LitStr, Meta};
use wdk_etw_schema::parse::can_be_provider;

/// Returns a library's source files that contain modules with wdk-etw's `provider` macro. Follows
/// modules from the library's root file.
///
/// # Errors
///
/// Fails if a module's file is missing or is not valid Rust.
pub fn declarations(root: &Path) -> Result<Vec<PathBuf>> {
    let mut walk = Walk::default();
    let folder = root.parent().unwrap_or_else(|| Path::new("."));
    walk.file(root, folder)?;
    Ok(walk.found)
}

/// A traversal of a library's modules.
#[derive(Default)]
struct Walk {
    visited: BTreeSet<PathBuf>,
    found: Vec<PathBuf>,
}

impl Walk {
    /// Reads a file; `folder` contains the files of its submodules.
    fn file(&mut self, path: &Path, folder: &Path) -> Result<()> {
        let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !self.visited.insert(whole) {
            return Ok(());
        }
        let text = files::read_to_string(path)?;
        let file = syn::parse_file(&text).map_err(|error| {
            let start = error.span().start();
            let (line, column) = (start.line, start.column + 1);
            anyhow!("{}:{line}:{column}: {error}", path.display())
        })?;
        self.items(&file.items, path, folder, false)
    }

    /// Reads items; `inline` is true inside a module with braces.
    fn items(&mut self, items: &[Item], path: &Path, folder: &Path, inline: bool) -> Result<()> {
        for item in items {
            match item {
                Item::Mod(module) => self.module(module, path, folder, inline)?,
                Item::Macro(called) => {
                    if let Some(included) = included(called) {
                        let included = path.parent().unwrap_or(folder).join(included);
                        self.file(&included, folder)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn module(&mut self, module: &ItemMod, path: &Path, folder: &Path, inline: bool) -> Result<()> {
        if module.attrs.iter().any(is_for_tests) {
            return Ok(());
        }
        if can_be_provider(module) {
            let path = path.to_owned();
            if !self.found.contains(&path) {
                self.found.push(path);
            }
            return Ok(());
        }
        let name = module.ident.to_string();
        let name = name.trim_start_matches("r#");
        if let Some((_, items)) = &module.content {
            return self.items(items, path, &folder.join(name), true);
        }
        if let Some(named) = module.attrs.iter().find_map(path_of) {
            let from = if inline { folder } else { path.parent().unwrap_or(folder) };
            let file = from.join(named);
            let folder = file.parent().unwrap_or(from).to_owned();
            return self.file(&file, &folder);
        }
        let flat = folder.join(format!("{name}.rs"));
        let nested = folder.join(name).join("mod.rs");
        if flat.is_file() {
            return self.file(&flat, &folder.join(name));
        }
        if nested.is_file() {
            return self.file(&nested, &folder.join(name));
        }
        // The compiler can omit the module, or find its file through `cfg_attr`.
        let is_conditional =
            |one: &Attribute| one.path().is_ident("cfg") || one.path().is_ident("cfg_attr");
        if module.attrs.iter().any(is_conditional) {
            return Ok(());
        }
        Err(anyhow!(
            "{}:{}: cannot find the file of the module {name}: neither {} nor {} exists",
            path.display(),
            module.ident.span().start().line,
            flat.display(),
            nested.display()
        ))
    }
}

/// Returns whether an attribute is `#[cfg(test)]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string() == "test")
}

/// Returns the path in `#[path = "…"]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if pair.path.is_ident("path") => {
            Some(text.value())
        }
        _ => None,
    }
}

/// Returns the path in `include!("…")`.
fn included(called: &ItemMacro) -> Option<String> {
    if !called.mac.path.is_ident("include") {
        return None;
    }
    // `concat!(env!("OUT_DIR"), …)` refers to a file that a build script generates, which exists
    // only during a build.
    let path: LitStr = syn::parse2(called.mac.tokens.clone()).ok()?;
    Some(path.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn found(folder: &Path) -> Vec<String> {
        let found = declarations(&folder.join("lib.rs")).unwrap();
        let relative = found.iter().map(|path| path.strip_prefix(folder).unwrap());
        relative.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn declarations_are_found_through_every_kind_of_module() {
        const PROVIDER: &str = "#[wdk_etw::provider(name = \"A\")] mod p {}";
        const CONDITIONAL: &str = "#[cfg_attr(windows, wdk_etw::provider(name = \"A\"))] mod p {}";
        let folder = library(&[
            (
                "lib.rs",
                "mod flat; mod nested; #[path = \"odd/name.rs\"] mod odd; mod inline { mod inner; }\n\
                 #[cfg(test)] mod tests; #[cfg(windows)] mod absent; include!(\"included.rs\");",
            ),
            ("flat.rs", "mod below;"),
            ("flat/below.rs", PROVIDER),
            ("nested/mod.rs", "mod r#type;"),
            ("nested/type.rs", PROVIDER),
            ("odd/name.rs", "mod beside;"),
            ("odd/beside.rs", PROVIDER),
            ("inline/inner.rs", CONDITIONAL),
            ("tests.rs", PROVIDER),
            ("included.rs", PROVIDER),
            ("unused.rs", PROVIDER),
        ]);
        assert_eq!(
            found(folder.path()),
            ["flat/below.rs", "nested/type.rs", "odd/beside.rs", "inline/inner.rs", "included.rs"]
        );
    }

    #[test]
    fn a_missing_module_and_a_syntax_error_have_their_places() {
        let folder = library(&[("lib.rs", "\nmod gone;")]);
        let error = declarations(&folder.path().join("lib.rs")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("lib.rs:2: cannot find the file of the module gone"), "{error}");
        let folder = library(&[("lib.rs", "mod a;"), ("a.rs", "fn (")]);
        let error = declarations(&folder.path().join("lib.rs")).unwrap_err();
        assert!(error.to_string().contains("a.rs:1:4: "), "{error}");
    }
}
