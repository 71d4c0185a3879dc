//! The tests of the `etl` command and of its outputs, by subject.

mod browser;
mod cli;
mod compare;
mod damage;
mod durations;
mod hidden;
mod image;
mod kernel_cli;
mod merge;
mod output;
mod page;
mod pcapng;
mod pdb_fixture;
mod report;
mod run;
mod schemas;
mod several;
mod stacks;
mod symbols;
mod threads;
mod timeline;
mod times;
mod trim;
