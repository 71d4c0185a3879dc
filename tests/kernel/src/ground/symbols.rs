//! The names of addresses in an image, from the PDB file beside it.

use std::{fs::File, path::Path};

use pdb_addr2line::ContextPdbData;

/// Returns the function and source line of the code at an offset in the image, such as
/// `etw_sample_driver::queue::read (queue.rs:42)`, or `None` if there is no PDB or it does not
/// have the place.
pub fn symbolize(image_path: &Path, offset: u32) -> Option<String> {
    let file = File::open(image_path.with_extension("pdb")).ok()?;
    let data = ContextPdbData::try_from_pdb(pdb_addr2line::pdb::PDB::open(file).ok()?).ok()?;
    let context = data.make_context().ok()?;
    let frames = context.find_frames(offset).ok()??;
    // An inlined function of the library says less than its caller.
    let is_the_librarys = |name: &str| name.starts_with("core::") || name.starts_with("alloc::");
    let frame = frames
        .frames
        .iter()
        .find(|frame| !frame.function.as_deref().is_none_or(is_the_librarys))
        .or_else(|| frames.frames.first())?;
    let function = frame.function.as_deref()?;
    let place = match (frame.file.as_deref(), frame.line) {
        (Some(file), Some(line)) => {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            format!(" ({name}:{line})")
        }
        _ => String::new(),
    };
    Some(format!("{function}{place}"))
}
