//! Which module defines what a path names.

use super::tree::{Crate, Id, Name, ROOT};

/// The most re-exports that a name is followed through.
const MAX_STEPS: usize = 32;

/// What a path names: an item of a module, or the module itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The module.
    pub module: Id,
    /// The item's name there.
    pub item: Option<String>,
}

impl Crate {
    /// Returns what a path names in a module; nothing for names of other crates and of the
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

    /// Finds a name in a module, and what the rest of the path names there. A name that the
    /// module does not visibly have is its own, made by a macro, where `is_there` says so.
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

    /// Returns true if a module has a name.
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

    /// Returns true if a module lies in another.
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
