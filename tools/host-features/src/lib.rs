//! An empty procedural macro crate: its dependencies ask for the features with which all packages of
//! this workspace compile the parsers of procedural macros.
