//! CD images that xorriso writes.

use std::{fs, thread, time::Duration};

use etw_vm::iso::{self, Files};

#[test]
#[ignore = "needs xorriso; `cargo xtask test` runs it"]
fn equal_files_give_equal_images_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::from([("agent/agent.cmd".to_owned(), b"@exit /b 0\r\n".to_vec())]);
    let [first, second] = ["first.iso", "second.iso"].map(|name| folder.path().join(name));
    iso::write(&first, "KIT", &files).unwrap();
    // Dates on images have seconds.
    thread::sleep(Duration::from_secs(2));
    iso::write(&second, "KIT", &files).unwrap();
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap());
}
