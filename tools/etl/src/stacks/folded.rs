//! Folded stacks, the input of flame graph programs: a line for each different stack, with its number.

use std::collections::BTreeMap;
use std::io::{self, Write};

use etl_file::internals::show::Escaped;

use super::by_thread::Stacks;

/// Writes a line `process;thread;frame;…;frame number` for each different stack of each thread, with
/// the outermost frame first.
///
/// # Errors
/// Fails with the output's error.
pub fn write_folded(stacks: &Stacks, out: &mut impl Write) -> io::Result<()> {
    // A semicolon separates frames, and a line ends a stack.
    let shown = |name: &str| Escaped(name).to_string().replace(';', ":");
    let frames: Vec<String> = stacks.frames.iter().map(|name| shown(name)).collect();
    for ([process, thread], samples) in &stacks.threads {
        let (process, thread) = (shown(process), shown(thread));
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for sample in samples {
            *counts.entry(sample.stack).or_default() += 1;
        }
        for (stack, count) in counts {
            write!(out, "{process};{thread}")?;
            for frame in stacks.different.get(stack as usize).iter().flat_map(|stack| stack.iter())
            {
                let frame = frames.get(*frame as usize).map_or("", String::as_str);
                write!(out, ";{frame}")?;
            }
            writeln!(out, " {count}")?;
        }
    }
    Ok(())
}
