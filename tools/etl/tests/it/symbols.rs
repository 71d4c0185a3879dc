//! Function names in images, from PDBs.

use std::fs;

use crate::pdb_fixture::Pdb;
use etl_file::Guid;
use etl_file::decode::wpp::Formats;
use etl_file::symbols::{SymbolError, SymbolId, Symbols, formats_of};

#[test]
fn a_file_that_is_no_pdb_is_skipped_in_a_folder_and_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.pdb");
    fs::write(&path, b"Microsoft C/C++ MSF 7.00, but no more").unwrap();
    fs::write(folder.path().join("other.txt"), b"text").unwrap();
    let mut symbols = Symbols::new();
    let error = symbols.load(&path).unwrap_err();
    assert!(matches!(error, SymbolError::Malformed { .. }), "{error}");
    let skipped = symbols.load_folder(folder.path()).unwrap();
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    // A symbol store has files three folders deep.
    let mut deep = folder.path().to_owned();
    for (name, found) in [("1", 2), ("2", 3), ("3", 4), ("4", 4)] {
        deep = deep.join(name);
        fs::create_dir(&deep).unwrap();
        fs::write(deep.join("damaged.PDB"), b"no PDB").unwrap();
        let skipped = symbols.load_folder(folder.path()).unwrap();
        assert_eq!(skipped.len(), found, "{skipped:?}");
    }
    let missing = symbols.load_folder(&folder.path().join("missing"));
    assert!(matches!(missing, Err(SymbolError::Io { .. })));
    assert!(symbols.is_empty());
    assert_eq!(symbols.function("damaged.sys", None, 0), None);
}

/// Returns a table whose PDBs are read by a separate process of `etl`.
fn read_by_etl() -> Symbols {
    Symbols::new().read_by(env!("CARGO_BIN_EXE_etl"), ["read-symbols"])
}

#[test]
fn a_process_that_reads_a_pdb_says_why_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.pdb");
    fs::write(&path, b"Microsoft C/C++ MSF 7.00, but no more").unwrap();
    let here = Symbols::new().load(&path).unwrap_err().to_string();
    let there = read_by_etl().load(&path).unwrap_err().to_string();
    assert_eq!(here, there);
    let missing = read_by_etl().load(&folder.path().join("missing.pdb"));
    assert!(matches!(missing, Err(SymbolError::Io { .. })), "{missing:?}");
    let program = folder.path().join("no program");
    let mut nobody = Symbols::new().read_by(program, ["x"]);
    let error = nobody.load(&path).unwrap_err();
    assert!(matches!(error, SymbolError::Reader { .. }), "{error}");
    // A process that ends without an answer, for any reason.
    let mut wrong = Symbols::new().read_by(env!("CARGO_BIN_EXE_etl"), ["no such command"]);
    let error = wrong.load(&path).unwrap_err();
    assert!(matches!(error, SymbolError::Malformed { .. }), "{error}");
    assert!(error.to_string().contains("the file is damaged"), "{error}");
}

/// A PDB with functions, a format of WPP messages and other annotations.
const SAMPLE: Pdb<'_> = Pdb {
    guid: [7; 16],
    ages: [2, 5],
    functions: &[(0x10, 0x20, "first"), (0x30, 8, "ns::second")],
    annotations: &[
        &["TMC:", "anything"],
        &[
            "TMF:",
            "4ed73968-00d8-34f3-557f-85fe0ce17799 Component",
            "#typev a_c1 11 \"text\"",
            "{",
            "}",
        ],
        &[],
        &["TMF:", "damaged"],
        &[
            "TMF:",
            "4ed73968-00d8-34f3-557f-85fe0ce17799 Component",
            "#typev a_c1 12 \"more\"",
            "{",
            "}",
        ],
    ],
};

/// Checks that these are the formats of [`SAMPLE`].
fn check_formats(formats: &Formats) {
    let guid = "4ed73968-00d8-34f3-557f-85fe0ce17799".parse().unwrap();
    let text = |number| formats.find(guid, number).map(|format| format.text.clone());
    assert_eq!(formats.len(), 2);
    assert_eq!(text(11).as_deref(), Some("text"));
    assert_eq!(text(12).as_deref(), Some("more"));
}

#[test]
fn a_pdb_has_functions_without_their_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Driver.pdb");
    fs::write(&path, SAMPLE.file()).unwrap();
    for mut symbols in [Symbols::new(), read_by_etl()] {
        assert!(symbols.is_empty());
        symbols.load(&path).unwrap();
        assert!(!symbols.is_empty());
        let id = |age| SymbolId { guid: Guid::from_bytes([7; 16]), age, pdb: "Driver.pdb".into() };
        let (pdb, image, other) = (id(2), id(5), id(3));
        let at = |id, offset| symbols.function(r"\Driver\driver.sys", id, offset);
        for id in [None, Some(&pdb), Some(&image)] {
            assert_eq!(at(id, 0x100F), None);
            assert_eq!(at(id, 0x1010).as_deref(), Some("first+0x0"));
            assert_eq!(at(id, 0x102F).as_deref(), Some("first+0x1f"));
            assert_eq!(at(id, 0x1031).as_deref(), Some("ns::second+0x1"));
            assert_eq!(at(id, 0x1038), None);
        }
        assert_eq!(at(Some(&other), 0x1010), None);
        check_formats(symbols.formats());
    }
}

#[test]
fn a_pdb_has_the_formats_of_messages_in_its_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("driver.pdb");
    fs::write(&path, SAMPLE.file()).unwrap();
    let (formats, skipped) = formats_of(&path).unwrap();
    check_formats(&formats);
    let [skipped] = skipped.as_slice() else {
        panic!("{skipped:?}");
    };
    let expected = "driver.pdb: cannot read the message 2 of the annotations: no GUID precedes";
    assert!(skipped.to_string().contains(expected), "{skipped}");
    let plain = Pdb { annotations: &[&["TMC:", "anything"]], ..SAMPLE };
    fs::write(&path, plain.file()).unwrap();
    let (formats, skipped) = formats_of(&path).unwrap();
    assert!(formats.is_empty() && skipped.is_empty());
    fs::write(&path, b"no PDB").unwrap();
    let error = formats_of(&path).unwrap_err();
    assert!(matches!(error, SymbolError::Malformed { .. }), "{error}");
    let error = formats_of(&folder.path().join("missing.pdb")).unwrap_err();
    assert!(matches!(error, SymbolError::Io { .. }), "{error}");
}

mod built_drivers {
    use std::panic::catch_unwind;

    use object::read::pe::PeFile64;
    use object::{LittleEndian, Object};

    use super::*;

    #[test]
    #[ignore = "needs built drivers"]
    fn a_pdb_names_the_functions_of_the_image_with_its_identity() {
        let drivers = etw_test_support::drivers("release");
        let image = fs::read(drivers.join("etw_sample_driver.sys")).unwrap();
        let pe = PeFile64::parse(image.as_slice()).unwrap();
        let view = pe.pdb_info().unwrap().unwrap();
        let id = SymbolId {
            guid: Guid::from_bytes(view.guid()),
            age: view.age(),
            pdb: "etw_sample_driver.pdb".into(),
        };
        let header = pe.nt_headers().optional_header;
        let entry = u64::from(header.address_of_entry_point.get(LittleEndian));
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("etw_sample_driver.pdb").join("ID1");
        fs::create_dir_all(&store).unwrap();
        let pdb = store.join("etw_sample_driver.pdb");
        fs::copy(drivers.join("etw_sample_driver.pdb"), &pdb).unwrap();

        let mut symbols = Symbols::new();
        assert!(symbols.load_folder(folder.path()).unwrap().is_empty());
        let name = "etw_sample_driver.sys";
        let function = symbols.function(name, Some(&id), entry).unwrap();
        assert!(function.ends_with("+0x0"), "{function}");
        let inside = symbols.function("renamed.sys", Some(&id), entry + 1);
        assert_eq!(inside, Some(function.replace("+0x0", "+0x1")));
        assert_eq!(symbols.function(name, None, entry), None);
        let other = SymbolId { guid: Guid::from_bytes([1; 16]), ..id.clone() };
        assert_eq!(symbols.function(name, Some(&other), entry), None);
        let older = SymbolId { age: 77, ..id };
        assert_eq!(symbols.function(name, Some(&older), entry), None);
        assert_eq!(symbols.function(name, Some(&other), u64::MAX), None);

        // A PDB that the user specifies is used for images with the same name.
        symbols.load(&pdb).unwrap();
        let named = symbols.function(r"ETW_Sample_Driver.SYS", None, entry);
        assert_eq!(named, Some(function));
        assert_eq!(symbols.function("other.sys", None, entry), None);
    }
    /// Changes some bytes of a PDB, usually in structures that locate its parts.
    fn damaged(pdb: &[u8], seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 16).unwrap() % below
        };
        let mut bytes = pdb.to_vec();
        if random(20) == 0 {
            bytes.truncate(random(pdb.len()));
            return bytes;
        }
        for _ in 0..=random(12) {
            // Pages with few zeros contain many structures.
            let at = match random(3) {
                0 => random(0x1000),
                _ => random(bytes.len()),
            };
            let value = [0x00, 0x01, 0x7F, 0x80, 0xFF, 0xFE][random(6)];
            let length = [1, 2, 4][random(3)];
            for byte in bytes.iter_mut().skip(at).take(length) {
                *byte = value;
            }
        }
        bytes
    }

    #[test]
    #[ignore = "needs built drivers"]
    fn damaged_pdbs_end_no_process_but_that_which_reads_them() {
        const COUNT: u64 = 2000;
        let drivers = etw_test_support::drivers("release");
        let whole = fs::read(drivers.join("etw_minimal_driver.pdb")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut panics = 0;
        let mut refused = 0;
        for seed in 0..COUNT {
            let bytes = damaged(&whole, seed);
            let path = folder.path().join("damaged.pdb");
            fs::write(&path, &bytes).unwrap();
            let read = catch_unwind(|| {
                let mut answer = Vec::new();
                etl_file::symbols::answer(&mut bytes.as_slice(), &mut answer).unwrap();
                answer.starts_with(b"{\"Err\"")
            });
            panics += u64::from(read.is_err());
            refused += u64::from(matches!(read, Ok(true)));
            // A process for each damaged PDB would be slow.
            if read.is_err() || seed.is_multiple_of(50) {
                let found = read_by_etl().load(&path);
                let is_sound = matches!(read, Ok(false));
                assert_eq!(found.is_ok(), is_sound, "{seed}: {found:?}");
                let is_typed = matches!(found, Ok(()) | Err(SymbolError::Malformed { .. }));
                assert!(is_typed, "{seed}: {found:?}");
            }
        }
        println!("{panics} of {COUNT} damaged PDBs made the parser panic, {refused} were refused");
    }
}
