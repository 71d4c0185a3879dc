//! Functions of images from PDBs.

use std::fs;

use etl_file::symbols::{SymbolError, Symbols};

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
    let missing = symbols.load_folder(&folder.path().join("missing"));
    assert!(matches!(missing, Err(SymbolError::Io { .. })));
    assert!(symbols.is_empty());
    assert_eq!(symbols.function("damaged.sys", None, 0), None);
}

mod built_drivers {
    use etl_file::Guid;
    use etl_file::symbols::SymbolId;
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
        let other = SymbolId {
            guid: Guid::from_bytes([1; 16]),
            ..id.clone()
        };
        assert_eq!(symbols.function(name, Some(&other), entry), None);
        let older = SymbolId { age: 77, ..id };
        assert_eq!(symbols.function(name, Some(&older), entry), None);
        assert_eq!(symbols.function(name, Some(&other), u64::MAX), None);

        // A PDB that the user names serves images of its name.
        symbols.load(&pdb).unwrap();
        let named = symbols.function(r"ETW_Sample_Driver.SYS", None, entry);
        assert_eq!(named, Some(function));
        assert_eq!(symbols.function("other.sys", None, entry), None);
    }
}
