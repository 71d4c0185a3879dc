//! Temporary replacement of a cell's value, for the duration of a scope.

use std::cell::Cell;

/// Restores a cell's previous value when it is dropped, even if a panic ends the scope.
#[must_use = "the cell has its new value until this is dropped"]
pub struct RestoreGuard<'a, T: Copy> {
    cell: &'a Cell<T>,
    before: T,
}

impl<'a, T: Copy> RestoreGuard<'a, T> {
    /// Replaces a cell's value.
    pub const fn replace(cell: &'a Cell<T>, value: T) -> Self {
        Self { before: cell.replace(value), cell }
    }
}

impl<T: Copy> Drop for RestoreGuard<'_, T> {
    fn drop(&mut self) {
        self.cell.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, panic};

    use super::RestoreGuard;

    #[test]
    fn a_cell_has_its_previous_value_after_the_scope() {
        let cell = Cell::new(1);
        {
            let _before = RestoreGuard::replace(&cell, 2);
            assert_eq!(cell.get(), 2);
        }
        assert_eq!(cell.get(), 1);
    }

    #[test]
    fn a_cell_has_its_previous_value_after_a_panic() {
        let cell = Cell::new(1);
        let result = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let _before = RestoreGuard::replace(&cell, 2);
            panic!("the scope ends early");
        }));
        assert!(result.is_err());
        assert_eq!(cell.get(), 1);
    }
}
