//! Writes CD images: ISO 9660 with Joliet names.
//!
//! Windows and Linux prefer the Joliet directory tree, which preserves the case and length of
//! names, so the primary tree is empty. Sources: ECMA-119 (the file system), and Microsoft's 1995
//! Joliet specification (the supplementary descriptor and its names).
//!
//! The answer file is on a CD instead of a FAT disk, because Windows Setup erases disk 0, and no
//! test rules out that a second disk, on USB or not, becomes disk 0. The kit is on a CD so that
//! stages cannot change it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
};

use crate::error::{Error, Result, file};

/// The size of a sector and of a logical block, in bytes.
const SECTOR: usize = 2048;
/// The number of sectors before the first volume descriptor.
const SYSTEM_AREA: usize = 16;
/// The maximum length of a Joliet name, in UTF-16 units.
const MAX_NAME: usize = 64;
/// The maximum depth of a path, including the root (ECMA-119, 6.8.2.1).
const MAX_DEPTH: usize = 8;

/// The files of an image: paths with `/` between folders, and contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A folder in a directory tree. Its number is its position in the path table.
struct Folder {
    /// The path, without a trailing `/`; empty for the root.
    path: String,
    /// The identifier in the parent's directory.
    name: Vec<u8>,
    parent: usize,
    /// The subfolders' identifiers and paths, sorted.
    folders: Vec<(Vec<u8>, String)>,
    /// The files' identifiers and paths, sorted.
    files: Vec<(Vec<u8>, String)>,
}

/// The location of a file or directory on the image.
#[derive(Clone, Copy, Default)]
struct Extent {
    sector: usize,
    bytes: usize,
}

/// Writes an image with these files and this label.
///
/// # Errors
///
/// Fails with [`Error::Iso`] if a file's path does not fit the format, and with [`Error::File`] if
/// the image cannot be written.
pub fn write(image: &Path, label: &str, files: &Files) -> Result<()> {
    check(files)?;
    let bytes = encode(label, files);
    let write = |bytes: &[u8]| -> io::Result<()> {
        let mut output = BufWriter::new(File::create(image)?);
        output.write_all(bytes)?;
        output.into_inner()?.sync_all()
    };
    write(&bytes).map_err(file("write", image))
}

/// Fails if a path cannot be written.
fn check(files: &Files) -> Result<()> {
    let refuse = |name: &str, reason: String| Error::Iso { name: name.to_owned(), reason };
    for (path, contents) in files {
        let parts: Vec<&str> = path.split('/').collect();
        if parts.len() > MAX_DEPTH {
            let reason = format!("it is {} folders deep; at most {MAX_DEPTH} fit", parts.len());
            return Err(refuse(path, reason));
        }
        for part in parts {
            let length = part.encode_utf16().count();
            if part.is_empty() || part == "." || part == ".." {
                return Err(refuse(path, "its path has an empty component".to_owned()));
            }
            if length > MAX_NAME {
                let reason = format!("{part} has {length} characters; at most {MAX_NAME} fit");
                return Err(refuse(path, reason));
            }
            if let Some(bad) = part.chars().find(|one| "*/:;?\\".contains(*one) || one.is_control())
            {
                return Err(refuse(
                    path,
                    format!("the character {bad:?} is not allowed in a name"),
                ));
            }
        }
        if u32::try_from(contents.len()).is_err() {
            return Err(refuse(path, "it is 4 GiB or larger".to_owned()));
        }
        if files.contains_key(path.rsplit_once('/').map_or("", |(folder, _)| folder)) {
            return Err(refuse(path, "its folder has the same name as a file".to_owned()));
        }
    }
    Ok(())
}

/// Encodes text as big-endian UTF-16.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// Returns a tree's folders in path table order: by depth, then by the parent's number, then by
/// name.
fn folders(files: &Files) -> Vec<Folder> {
    let mut children: BTreeMap<String, (BTreeSet<&str>, Vec<&str>)> = BTreeMap::new();
    children.entry(String::new()).or_default();
    for path in files.keys() {
        let mut above = String::new();
        let mut rest = path.as_str();
        while let Some((folder, below)) = rest.split_once('/') {
            children.entry(above.clone()).or_default().0.insert(folder);
            above = join(&above, folder);
            rest = below;
        }
        children.entry(above).or_default().1.push(rest);
    }
    let mut all = vec![(String::new(), vec![0], 0)];
    let mut done = Vec::new();
    while done.len() < all.len() {
        let (path, name, parent) = all[done.len()].clone();
        let (inner, own) = children.remove(&path).unwrap_or_default();
        let mut folders: Vec<_> =
            inner.iter().map(|name| (wide(name), join(&path, name))).collect();
        let mut files: Vec<_> =
            own.iter().map(|name| (wide(&format!("{name};1")), join(&path, name))).collect();
        folders.sort();
        files.sort();
        for (name, path) in &folders {
            all.push((path.clone(), name.clone(), done.len()));
        }
        done.push(Folder { path, name, parent, folders, files });
    }
    done
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

const fn sectors(bytes: usize) -> usize {
    bytes.div_ceil(SECTOR)
}

fn narrow(number: usize) -> u32 {
    // `check` rejects files of 4 GiB or more, and the image is built in memory.
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Appends a 32-bit number in both byte orders.
fn both32(out: &mut Vec<u8>, number: usize) {
    out.extend(narrow(number).to_le_bytes());
    out.extend(narrow(number).to_be_bytes());
}

fn both16(out: &mut Vec<u8>, number: u16) {
    out.extend(number.to_le_bytes());
    out.extend(number.to_be_bytes());
}

/// Returns a directory record (ECMA-119, 9.1).
fn record(name: &[u8], extent: Extent, is_folder: bool) -> Vec<u8> {
    let mut out = vec![0, 0];
    both32(&mut out, extent.sector);
    both32(&mut out, extent.bytes);
    // 1 January 2024, 00:00:00 UTC: equal files result in equal images.
    out.extend([124, 1, 1, 0, 0, 0, 0]);
    out.push(if is_folder { 2 } else { 0 });
    out.extend([0, 0]);
    both16(&mut out, 1);
    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.extend(name);
    if out.len() % 2 == 1 {
        out.push(0);
    }
    out[0] = u8::try_from(out.len()).unwrap_or(u8::MAX);
    out
}

/// Returns the contents of a directory; records do not cross sectors.
fn directory(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        let room = SECTOR - out.len() % SECTOR;
        if record.len() > room {
            out.resize(out.len() + room, 0);
        }
        out.extend(record);
    }
    out.resize(sectors(out.len()) * SECTOR, 0);
    out
}

/// Returns a folder's records, with extents from the function.
fn records(
    folder: &Folder,
    number: usize,
    of_folder: impl Fn(&str) -> Extent,
    of_number: impl Fn(usize) -> Extent,
    of_file: impl Fn(&str) -> Extent,
) -> Vec<Vec<u8>> {
    let mut all =
        vec![record(&[0], of_number(number), true), record(&[1], of_number(folder.parent), true)];
    let folders = folder.folders.iter().map(|one| (one, true));
    let mut entries: Vec<_> = folders.chain(folder.files.iter().map(|one| (one, false))).collect();
    entries.sort();
    for ((name, path), is_folder) in entries {
        let extent = if is_folder { of_folder(path) } else { of_file(path) };
        all.push(record(name, extent, is_folder));
    }
    all
}

/// Returns a path table (ECMA-119, 9.4).
fn path_table(folders: &[Folder], extents: &[Extent], is_little: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (folder, extent) in folders.iter().zip(extents) {
        out.push(u8::try_from(folder.name.len()).unwrap_or(u8::MAX));
        out.push(0);
        let sector = narrow(extent.sector);
        let parent = u16::try_from(folder.parent + 1).unwrap_or(u16::MAX);
        if is_little {
            out.extend(sector.to_le_bytes());
            out.extend(parent.to_le_bytes());
        } else {
            out.extend(sector.to_be_bytes());
            out.extend(parent.to_be_bytes());
        }
        out.extend(&folder.name);
        if folder.name.len() % 2 == 1 {
            out.push(0);
        }
    }
    out
}

/// The contents of a volume descriptor.
struct Volume<'a> {
    is_joliet: bool,
    label: &'a str,
    sectors: usize,
    table_bytes: usize,
    little_table: usize,
    big_table: usize,
    root: Extent,
}

/// Returns a volume descriptor (ECMA-119, 8.4 and 8.5).
fn descriptor(volume: &Volume<'_>) -> Vec<u8> {
    let is_joliet = volume.is_joliet;
    let text = |text: &str, length: usize| -> Vec<u8> {
        let mut bytes = if is_joliet { wide(text) } else { text.as_bytes().to_vec() };
        bytes.truncate(length);
        while bytes.len() < length {
            // A field of odd length ends with half a character.
            bytes.extend(if is_joliet { &[0, b' '][..] } else { &b" "[..] });
        }
        bytes.truncate(length);
        bytes
    };
    let mut out = vec![if is_joliet { 2 } else { 1 }];
    out.extend(b"CD001\x01\0");
    out.extend(text("", 32));
    out.extend(text(volume.label, 32));
    out.extend([0; 8]);
    both32(&mut out, volume.sectors);
    // UCS-2 level 3.
    let mut escapes = if is_joliet { b"%/E".to_vec() } else { Vec::new() };
    escapes.resize(32, 0);
    out.extend(escapes);
    both16(&mut out, 1);
    both16(&mut out, 1);
    both16(&mut out, 2048);
    both32(&mut out, volume.table_bytes);
    out.extend(narrow(volume.little_table).to_le_bytes());
    out.extend([0; 4]);
    out.extend(narrow(volume.big_table).to_be_bytes());
    out.extend([0; 4]);
    out.extend(record(&[0], volume.root, true));
    for length in [128, 128, 128, 128, 37, 37, 37] {
        out.extend(text("", length));
    }
    for _ in 0..2 {
        out.extend(b"2024010100000000\0");
    }
    for _ in 0..2 {
        out.extend(b"0000000000000000\0");
    }
    out.extend([1, 0]);
    out.resize(SECTOR, 0);
    out
}

/// A directory tree and its location on the image.
struct Placed {
    folders: Vec<Folder>,
    extents: Vec<Extent>,
    table_bytes: usize,
    little_table: usize,
    big_table: usize,
}

/// Assigns sectors to each directory of a tree, starting at `next`.
fn place(files: &Files, next: &mut usize) -> Placed {
    let folders = folders(files);
    let blank = vec![Extent::default(); folders.len()];
    let table_bytes = path_table(&folders, &blank, true).len();
    let mut take = |bytes: usize| {
        let sector = *next;
        *next += sectors(bytes);
        Extent { sector, bytes }
    };
    let little_table = take(table_bytes).sector;
    let big_table = take(table_bytes).sector;
    let none = Extent::default();
    let extents = folders
        .iter()
        .enumerate()
        .map(|(number, folder)| {
            let records = records(folder, number, |_| none, |_| none, |_| none);
            take(directory(&records).len())
        })
        .collect();
    Placed { folders, extents, table_bytes, little_table, big_table }
}

/// Returns the bytes of an image.
fn encode(label: &str, files: &Files) -> Vec<u8> {
    let mut next = SYSTEM_AREA + 3;
    let trees = [(false, &Files::new()), (true, files)]
        .map(|(is_joliet, files)| (is_joliet, place(files, &mut next)));
    let mut places: BTreeMap<&str, Extent> = BTreeMap::new();
    for (path, contents) in files {
        let bytes = contents.len();
        let sector = next;
        places.insert(path, Extent { sector, bytes });
        next += sectors(bytes);
    }
    let mut out = vec![0; SYSTEM_AREA * SECTOR];
    for (is_joliet, placed) in &trees {
        out.extend(descriptor(&Volume {
            is_joliet: *is_joliet,
            label,
            sectors: next,
            table_bytes: placed.table_bytes,
            little_table: placed.little_table,
            big_table: placed.big_table,
            root: placed.extents.first().copied().unwrap_or_default(),
        }));
    }
    let mut last = b"\xffCD001\x01".to_vec();
    last.resize(SECTOR, 0);
    out.extend(last);
    let pad = |out: &mut Vec<u8>| out.resize(sectors(out.len()) * SECTOR, 0);
    for (_, placed) in &trees {
        for is_little in [true, false] {
            out.extend(path_table(&placed.folders, &placed.extents, is_little));
            pad(&mut out);
        }
        let numbers: BTreeMap<&str, Extent> = placed
            .folders
            .iter()
            .zip(&placed.extents)
            .map(|(folder, extent)| (folder.path.as_str(), *extent))
            .collect();
        for (number, folder) in placed.folders.iter().enumerate() {
            let records = records(
                folder,
                number,
                |path| numbers.get(path).copied().unwrap_or_default(),
                |number| placed.extents.get(number).copied().unwrap_or_default(),
                |path| places.get(path).copied().unwrap_or_default(),
            );
            out.extend(directory(&records));
        }
    }
    for contents in files.values() {
        out.extend(contents);
        pad(&mut out);
    }
    out
}
