//! The contents of a PDB, as a third-party parser reads them.

use std::io::Cursor;

use pdb_addr2line::pdb::{self, FallibleIterator, PDB, SymbolData};
use pdb_addr2line::{ContextPdbData, TypeFormatterFlags};

use super::pdb::Pdb;

/// The kind of PDB symbol that is an annotation.
const S_ANNOTATION: u16 = 0x1019;

/// Returns the functions and messages of a PDB, or the reason why it cannot be read. Panics if a damaged
/// PDB makes the parser panic.
pub fn functions(bytes: Vec<u8>) -> Result<Pdb, String> {
    read_functions(bytes).map_err(|error| error.to_string())
}

/// Returns the messages of a PDB, as [`functions`] does.
pub fn messages(bytes: Vec<u8>) -> Result<Vec<Vec<Box<str>>>, String> {
    let read = || read_messages(&mut PDB::open(Cursor::new(bytes))?);
    read().map_err(|error: pdb::Error| error.to_string())
}

fn read_functions(bytes: Vec<u8>) -> Result<Pdb, pdb_addr2line::Error> {
    let mut pdb = PDB::open(Cursor::new(bytes))?;
    let information = pdb.pdb_information()?;
    let age = pdb.debug_information()?.age().unwrap_or(information.age);
    let guid = information.guid.to_bytes_le();
    let ages = [information.age, age];
    let messages = read_messages(&mut pdb)?;
    let data = ContextPdbData::try_from_pdb(pdb)?;
    let flags = TypeFormatterFlags::default().union(TypeFormatterFlags::NO_ARGUMENTS);
    let context = data.make_context_with_formatter_flags(flags)?;
    let mut functions: Vec<(u32, u32, Box<str>)> = context
        .functions()
        .filter_map(|function| {
            let name = function.name?.into_boxed_str();
            // A function without a size ends at the start of the next one.
            let end = function.end_rva.unwrap_or(u32::MAX);
            Some((function.start_rva, end, name))
        })
        .collect();
    functions.sort_by_key(|(start, ..)| *start);
    Ok(Pdb { guid, ages, functions, messages })
}

/// Returns the strings of the annotations that contain formats of WPP messages.
fn read_messages(pdb: &mut PDB<'_, Cursor<Vec<u8>>>) -> Result<Vec<Vec<Box<str>>>, pdb::Error> {
    let mut found = Vec::new();
    let information = pdb.debug_information()?;
    let mut modules = information.modules()?;
    while let Some(module) = modules.next()? {
        let Some(module) = pdb.module_info(&module)? else {
            continue;
        };
        let mut symbols = module.symbols()?;
        while let Some(symbol) = symbols.next()? {
            if symbol.raw_kind() != S_ANNOTATION {
                continue;
            }
            let SymbolData::Annotation(annotation) = symbol.parse()? else {
                continue;
            };
            let is_message = annotation.strings.first();
            if is_message.is_some_and(|first| first.as_bytes() == b"TMF:") {
                let strings = annotation.strings.iter();
                found.push(strings.map(|text| text.to_string().into()).collect());
            }
        }
    }
    Ok(found)
}
