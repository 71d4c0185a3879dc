//! Sections: memory that several views share, with the contents of a file if the section has one.
//!
//! All processes share this program's address space, so all views of a section are at the same
//! address. Changes that drivers make are written to a section's file when the section is deleted.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, Write},
};

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{NtResult, NtStatus, abi::ObjectAttributesNt, arena::Block, memory},
    services::ntoskrnl::{
        context::{Context, Entries},
        io::files,
        ob::{
            handles::{self, Opening, Target},
            namespace::{self, Place},
            object_attributes,
        },
        variables::USER_PROBE_ADDRESS,
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwCreateSection", create),
    routine("ZwOpenSection", open),
    routine("ZwMapViewOfSection", map),
    routine("ZwUnmapViewOfSection", unmap),
    routine("MmMapViewInSystemSpace", map_in_system),
    routine("MmUnmapViewInSystemSpace", unmap_in_system),
];

const TYPE: &str = "MmSectionObjectType";

const NOT_MAPPED_VIEW: NtStatus = NtStatus::from_bits(0xC000_0019);
const INVALID_VIEW_SIZE: NtStatus = NtStatus::from_bits(0xC000_001F);
const SECTION_TOO_BIG: NtStatus = NtStatus::from_bits(0xC000_0040);
const INVALID_PAGE_PROTECTION: NtStatus = NtStatus::from_bits(0xC000_0045);
const SECTION_PROTECTION: NtStatus = NtStatus::from_bits(0xC000_004E);
const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);
const INVALID_PARAMETER_6: NtStatus = NtStatus::from_bits(0xC000_00F4);
const INVALID_PARAMETER_8: NtStatus = NtStatus::from_bits(0xC000_00F6);
const MAPPED_FILE_SIZE_ZERO: NtStatus = NtStatus::from_bits(0xC000_011E);
const MAPPED_ALIGNMENT: NtStatus = NtStatus::from_bits(0xC000_0220);

const PAGE: u64 = 4096;
/// The granularity of the start addresses of views.
const GRANULARITY: u64 = 0x1_0000;

/// Page protections.
mod page {
    pub const READONLY: u32 = 0x2;
    pub const READWRITE: u32 = 0x4;
    pub const WRITECOPY: u32 = 0x8;
    pub const EXECUTE: u32 = 0x10;
    pub const EXECUTE_READ: u32 = 0x20;
    pub const EXECUTE_READWRITE: u32 = 0x40;
    pub const EXECUTE_WRITECOPY: u32 = 0x80;
    /// `PAGE_NOACCESS`, `PAGE_GUARD`, `PAGE_NOCACHE` and `PAGE_WRITECOMBINE`, which modify other
    /// protections.
    pub const MODIFIERS: u32 = 0x1 | 0x100 | 0x200 | 0x400;
    pub const ALL: [u32; 7] = [
        READONLY, READWRITE, WRITECOPY, EXECUTE, EXECUTE_READ, EXECUTE_READWRITE, EXECUTE_WRITECOPY,
    ];
    /// The protections that allow reading or copying, writing to the section, and executing.
    pub const READABLE: &[u32] =
        &[READONLY, READWRITE, WRITECOPY, EXECUTE_READ, EXECUTE_READWRITE, EXECUTE_WRITECOPY];
    pub const WRITABLE: &[u32] = &[READWRITE, EXECUTE_READWRITE];
    pub const EXECUTABLE: &[u32] = &[EXECUTE, EXECUTE_READ, EXECUTE_READWRITE, EXECUTE_WRITECOPY];
}

/// The sections, and the addresses at which drivers have mapped them.
#[derive(Default)]
struct Sections {
    all: BTreeMap<u64, Section>,
    /// The views, newest last.
    views: Vec<View>,
}

struct View {
    address: u64,
    size: u64,
    section: u64,
}

struct Section {
    size: u64,
    protection: u32,
    contents: Block,
    /// The file that receives the contents, and the size of the part of the contents that belongs
    /// to the file.
    file: Option<(File, u64)>,
    object: Block,
}

/// Returns a protection without its modifiers, if it is valid.
fn protection_of(given: u32) -> NtResult<u32> {
    let base = given & !page::MODIFIERS;
    if page::ALL.contains(&base) { Ok(base) } else { Err(INVALID_PAGE_PROTECTION) }
}

fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    size: At<i64>,
    protection: u32,
    allocation: u32,
    file: Handle<NtObject>,
) -> NtResult<NtStatus> {
    /// `SEC_IMAGE`, `SEC_RESERVE` and `SEC_COMMIT`. A section requires one of these flags.
    const IMAGE: u32 = 0x0100_0000;
    const KINDS: u32 = IMAGE | 0x0400_0000 | 0x0800_0000;
    /// `SEC_LARGE_PAGES`, and the size of a large page.
    const LARGE_PAGES: u32 = 0x8000_0000;
    const LARGE_PAGE: u64 = 2 << 20;
    let attributes = object_attributes::read_optional(context, attributes.0)?;
    if (allocation & KINDS).count_ones() != 1 {
        return Err(INVALID_PARAMETER_6);
    }
    let protection = protection_of(protection)?;
    if allocation & IMAGE != 0 && file.0 == 0 {
        return Err(files::INVALID_FILE_FOR_SECTION);
    }
    if allocation & IMAGE != 0 {
        context.stop_for_unprovided("for the image of a program (SEC_IMAGE)");
    }
    let size = size.read_optional(context).unwrap_or(0);
    let size = u64::try_from(size).map_err(|_| SECTION_TOO_BIG)?;
    if allocation & LARGE_PAGES != 0 && !size.is_multiple_of(LARGE_PAGE) {
        return Err(INVALID_PARAMETER_4);
    }
    let place = namespace::place_for(context, attributes.as_ref(), TYPE)?;
    let status = place.status();
    let object = match place {
        Place::Existing(object) => object,
        Place::New(name) => {
            let file = if file.0 == 0 { None } else { Some(files::duplicate(context, file.0)?) };
            let section = new_section(size, protection, file)?;
            let object = section.object.address();
            let mut state = context.state();
            state.get::<Sections>().all.insert(object, section);
            if let Some(name) = name {
                namespace::enter(&mut state, &name, object, TYPE);
            }
            drop(state);
            handles::own(context, object, delete);
            object
        }
    };
    let attributes = attributes.map_or(0, |attributes| attributes.flags);
    handle.write(context, open_handle(context, object, Opening { attributes, access }));
    Ok(status)
}

/// Creates a section with the contents of a file, if a file is given.
fn new_section(size: u64, protection: u32, file: Option<File>) -> NtResult<Section> {
    let failed = |error| files::status_of(&error);
    let of_file = file.as_ref().map_or(Ok(0), |file| Ok(file.metadata().map_err(failed)?.len()))?;
    let is_writable = page::WRITABLE.contains(&protection);
    let size = match (size, &file) {
        (0, None) => return Err(INVALID_PARAMETER_4),
        (0, Some(_)) if of_file == 0 => return Err(MAPPED_FILE_SIZE_ZERO),
        (0, Some(_)) => of_file,
        // A section that is larger than its file enlarges the file.
        (size, Some(_)) if size > of_file && !is_writable => return Err(SECTION_TOO_BIG),
        (size, _) => size,
    };
    let whole = size.checked_next_multiple_of(PAGE).and_then(|size| usize::try_from(size).ok());
    let contents = whole.and_then(Block::try_zeroed).ok_or(NtStatus::NO_MEMORY)?;
    let mut bytes = Vec::new();
    if let Some(mut file) = file.as_ref() {
        let read = file.rewind().and_then(|()| file.take(size).read_to_end(&mut bytes));
        read.map_err(failed)?;
    }
    // The block was allocated above.
    let _written = memory::write_bytes(contents.address(), &bytes);
    let file = file.filter(|_| is_writable).map(|file| (file, size));
    Ok(Section { size, protection, contents, file, object: Block::zeroed(0x40) })
}

/// Opens a handle to a section. Closing the last handle removes the name.
fn open_handle(context: &Context, object: u64, opening: Opening) -> u64 {
    let close = |context: &Context, object: u64| {
        if handles::count(context, object) == 0 {
            namespace::remove(&mut context.state(), object);
        }
    };
    let target = Target { type_name: TYPE, object, close, has_reference: false };
    handles::open(context, target, opening)
}

/// Deletes a section that has neither handles nor references. Views also hold references.
fn delete(context: &Context, object: u64) {
    let removed = context.state().get::<Sections>().all.remove(&object);
    let Some(Section { contents, file: Some((mut file, length)), .. }) = removed else {
        return;
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let written = memory::read_bytes(contents.address(), length)
        .map_err(|_| NtStatus::UNSUCCESSFUL)
        .and_then(|bytes| {
            let written = file.rewind().and_then(|()| file.write_all(&bytes));
            written.map_err(|error| files::status_of(&error))
        });
    if let Err(status) = written {
        context.print(format!("The stand-in kernel cannot write a section's file: {status}\n"));
    }
}

fn open(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult {
    let attributes = object_attributes::read(context, attributes.0)?;
    let object = namespace::open(context, &attributes, TYPE)?;
    let opening = Opening { attributes: attributes.flags, access };
    handle.write(context, open_handle(context, object, opening));
    Ok(())
}

/// Maps a part of a section. Returns the view's address and size.
fn view(
    context: &Context,
    section: u64,
    offset: u64,
    size: u64,
    protection: Option<u32>,
) -> NtResult<(u64, u64)> {
    if !offset.is_multiple_of(GRANULARITY) {
        return Err(MAPPED_ALIGNMENT);
    }
    let mapped = context.with_state(|sections: &mut Sections| {
        let known = sections.all.get(&section).ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?;
        let has = |right: &[u32], protection| right.contains(&protection);
        let exceeds = |wanted, right| has(right, wanted) && !has(right, known.protection);
        let rights = [page::READABLE, page::WRITABLE, page::EXECUTABLE];
        if protection.is_some_and(|wanted| rights.iter().any(|right| exceeds(wanted, right))) {
            return Err(SECTION_PROTECTION);
        }
        let left = known.size.checked_sub(offset).filter(|left| *left > 0);
        let left = left.ok_or(INVALID_VIEW_SIZE)?;
        let size = if size == 0 { left } else { size };
        if size > left.next_multiple_of(PAGE) {
            return Err(INVALID_VIEW_SIZE);
        }
        let size = size.next_multiple_of(PAGE);
        let address = known.contents.address().wrapping_add(offset);
        sections.views.push(View { address, size, section });
        Ok((address, size))
    })?;
    handles::reference(context, At::new(section));
    Ok(mapped)
}

fn map(
    context: &Context,
    section: Handle<NtObject>,
    process: Handle<NtObject>,
    base: At<u64>,
    zero_bits: u64,
    _commit: u64,
    offset: At<i64>,
    size: At<u64>,
    inherit: i32,
    _allocation: u32,
    protection: u32,
) -> NtResult {
    /// `STATUS_CONFLICTING_ADDRESSES`.
    const CONFLICTING_ADDRESSES: NtStatus = NtStatus::from_bits(0xC000_0018);
    const INVALID_PARAMETER_3: NtStatus = NtStatus::from_bits(0xC000_00F1);
    /// The maximum number of address bits that can be required to be zero.
    const MAX_ZERO_BITS: u64 = 53;
    if !(1..=2).contains(&inherit) {
        return Err(INVALID_PARAMETER_8);
    }
    if zero_bits > MAX_ZERO_BITS {
        return Err(INVALID_PARAMETER_4);
    }
    let protection = protection_of(protection)?;
    handles::must_be_process(context, process.0)?;
    let target = handles::target_of(context, section.0)?;
    if target.type_name != TYPE {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    match base.read(context) {
        0 => {}
        system if system >= USER_PROBE_ADDRESS => return Err(INVALID_PARAMETER_3),
        unaligned if !unaligned.is_multiple_of(GRANULARITY) => return Err(MAPPED_ALIGNMENT),
        _ => return Err(CONFLICTING_ADDRESSES),
    }
    let from = offset.read_optional(context).unwrap_or(0);
    let from = u64::try_from(from).map_err(|_| INVALID_VIEW_SIZE)?;
    let mapped = view(context, target.object, from, size.read(context), Some(protection))?;
    base.write(context, mapped.0);
    size.write(context, mapped.1);
    Ok(())
}

/// Ends the view that contains an address.
fn end_view(context: &Context, address: u64) -> NtResult {
    let ended = context.with_state(|Sections { views, .. }| {
        let is_in = |view: &View| (view.address..view.address + view.size).contains(&address);
        let at = views.iter().rposition(is_in)?;
        Some(views.remove(at).section)
    });
    handles::dereference(context, At::new(ended.ok_or(NOT_MAPPED_VIEW)?));
    Ok(())
}

fn unmap(context: &Context, process: Handle<NtObject>, address: Memory) -> NtResult {
    handles::must_be_process(context, process.0)?;
    end_view(context, address.0)
}

fn map_in_system(context: &Context, section: Memory, base: At<u64>, size: At<u64>) -> NtResult {
    if !context.state().get::<Sections>().all.contains_key(&section.0) {
        context.stop_for_wrong(section.0, "a section");
    }
    let mapped = view(context, section.0, 0, size.read(context), None)?;
    base.write(context, mapped.0);
    size.write(context, mapped.1);
    Ok(())
}

fn unmap_in_system(context: &Context, address: Memory) -> NtResult {
    end_view(context, address.0)
}
