//! The project's chores: demo, test, build, doctor.
fn main() {}
