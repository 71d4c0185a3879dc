//! Tests of INF files: what is written, and the rules.

mod autologger;
mod helpers;
mod inf;
mod modes;
mod primitive;
