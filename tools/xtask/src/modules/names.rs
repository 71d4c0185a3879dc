//! Resolves a path to the module that defines its target.

use super::tree::{Crate, Id, Name, ROOT};

/// The maximum number of re-exports that a name is followed through.
const MAX_STEPS: usize = 32;

/// The target of a path: an item of a module, or the module itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The module.
    pub module: Id,
    /// The item's name there.
    pub item: Option<String>,
}

impl Crate {
    /// Returns the target of a path in a module, or `None` for names of other crates and of the
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
        Some(Found {
            module: at,
            item: None,
        })
    }

    /// Resolves a name in a module and then the rest of the path. Where `is_there` is true, a name
    /// that the module does not visibly define counts as its own, defined by a macro.
    fn find(
        &self,
        at: Id,
        name: &str,
        rest: &[String],
        steps: usize,
        is_there: bool,
    ) -> Option<Found> {
        let module = &self.modules[at];
        let own = || Found {
            module: at,
            item: Some(name.to_owned()),
        };
        if let Some(child) = module.children.get(name) {
            let Some((next, after)) = rest.split_first() else {
                return Some(Found {
                    module: *child,
                    item: None,
                });
            };
            return self.find(*child, next, after, steps.checked_sub(1)?, true);
        }
        match module.names.get(name) {
            Some(Name::Own) => return Some(own()),
            Some(Name::Imported(import)) => {
                let path = [&import.path, rest].concat();
                return self.follow(at, &path, steps);
            }
            None => {}
        }
        for glob in &module.globs {
            let Some(other) = self.follow(at, &glob.path, steps) else {
                continue;
            };
            if other.module != at && self.has(other.module, name, steps) {
                return self.find(other.module, name, rest, steps.checked_sub(1)?, true);
            }
        }
        is_there.then(own)
    }

    /// Returns true if a module defines or imports a name.
    fn has(&self, at: Id, name: &str, steps: usize) -> bool {
        let Some(steps) = steps.checked_sub(1) else {
            return false;
        };
        let module = &self.modules[at];
        module.children.contains_key(name)
            || module.names.contains_key(name)
            || module.globs.iter().any(|glob| {
                let other = self.follow(at, &glob.path, steps);
                other.is_some_and(|other| other.module != at && self.has(other.module, name, steps))
            })
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
