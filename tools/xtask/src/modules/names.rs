//! Resolves a path to the module that defines its target.

use std::collections::BTreeSet;

use super::tree::{Crate, Id, Name, ROOT};

/// The maximum number of re-exports to follow for one name.
const MAX_STEPS: usize = 32;

/// The target of a path: an item in a module, or the module itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The module.
    pub module: Id,
    /// The item's name in the module.
    pub item: Option<String>,
}

impl Crate {
    /// Returns the target of a path in a module, or `None` for names in other crates or in the
    /// language.
    pub fn resolve(&self, from: Id, path: &[String]) -> Option<Found> {
        self.follow(from, path, MAX_STEPS)
    }

    fn follow(&self, from: Id, path: &[String], steps: usize) -> Option<Found> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => ROOT,
            "self" => from,
            "super" => self.modules[from].parent?,
            _ => {
                return self.find(from, first, rest, steps, false);
            }
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                at = self.modules[at].parent?;
                rest = after;
            } else {
                return self.find(at, name, after, steps, true);
            }
        }
        Some(Found { module: at, item: None })
    }

    /// Resolves a name in a module, and then the rest of the path. If `is_there` is true, a name
    /// without a visible definition is assumed to be defined in the module by a macro.
    fn find(
        &self,
        at: Id,
        name: &str,
        rest: &[String],
        steps: usize,
        is_there: bool,
    ) -> Option<Found> {
        let module = &self.modules[at];
        let own = || Found { module: at, item: Some(name.to_owned()) };
        if let Some(child) = module.children.get(name) {
            let Some((next, after)) = rest.split_first() else {
                return Some(Found { module: *child, item: None });
            };
            let steps = steps.checked_sub(1)?;
            let twin = self.modules.iter().position(|module| {
                module.twin_of == Some(*child)
                    && !self.modules[*child].names.contains_key(next)
                    && module.names.contains_key(next)
            });
            return self.find(twin.unwrap_or(*child), next, after, steps, true);
        }
        match module.names.get(name) {
            Some(Name::Own) => return Some(own()),
            Some(Name::Imported(import)) => {
                let path = [&import.path, rest].concat();
                return self.follow(at, &path, steps);
            }
            None => {}
        }
        for other in self.glob_targets(at) {
            if self.has(*other, name, &mut BTreeSet::from([at])) {
                return self.find(*other, name, rest, steps.checked_sub(1)?, true);
            }
        }
        is_there.then(own)
    }

    /// Returns true if one of a module's globs imports a name.
    pub fn is_in_a_glob(&self, at: Id, name: &str) -> bool {
        let mut seen = BTreeSet::from([at]);
        let mut globs = self.glob_targets(at).iter();
        globs.any(|other| self.has(*other, name, &mut seen))
    }

    /// Returns the modules whose names a module's globs import.
    fn glob_targets(&self, at: Id) -> &[Id] {
        if self.globs.get().is_none() {
            // The path of a glob itself is resolved without globs.
            if self.is_resolving.replace(true) {
                return &[];
            }
            let targets = |id: Id| {
                let globs = self.modules[id].globs.iter();
                let found = globs.filter_map(|glob| self.follow(id, &glob.path, MAX_STEPS));
                let other = found.map(|found| found.module).filter(|other| *other != id);
                other.collect()
            };
            let all = (0..self.modules.len()).map(targets).collect();
            let _first = self.globs.set(all);
        }
        let all = self.globs.get();
        all.and_then(|all| all.get(at)).map_or(&[], Vec::as_slice)
    }

    /// Returns the first of the modules with the same path that `cfg` selects from.
    pub fn first_of_name(&self, id: Id) -> Id {
        self.modules[id].twin_of.unwrap_or(id)
    }

    /// Returns true if a module defines or imports a name; `seen` holds modules already known not
    /// to.
    fn has(&self, at: Id, name: &str, seen: &mut BTreeSet<Id>) -> bool {
        if !seen.insert(at) {
            return false;
        }
        let module = &self.modules[at];
        let mut globs = self.glob_targets(at).iter();
        module.children.contains_key(name)
            || module.names.contains_key(name)
            || globs.any(|other| self.has(*other, name, seen))
    }

    /// Returns true if a module is inside another.
    pub fn is_within(&self, inner: Id, outer: Id) -> bool {
        let mut at = self.modules[inner].parent;
        while let Some(id) = at {
            if id == outer {
                return true;
            }
            at = self.modules[id].parent;
        }
        false
    }
}
