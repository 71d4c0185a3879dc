//! The files of a new driver.

use anyhow::{Result, ensure};
use etw_wire::Guid;

use super::{names::Names, source::Source};

/// The files' names and their templates.
const FILES: &[(&str, &str)] = &[
    (".cargo/config.toml", include_str!("templates/config.toml.in")),
    (".github/workflows/driver.yml", include_str!("templates/workflow.yml.in")),
    (".gitignore", include_str!("templates/gitignore.in")),
    ("Cargo.toml", include_str!("templates/workspace.toml.in")),
    ("Makefile.toml", include_str!("templates/Makefile.toml.in")),
    ("README.md", include_str!("templates/README.md.in")),
    ("driver/Cargo.toml", include_str!("templates/driver.toml.in")),
    ("driver/build.rs", include_str!("templates/build.rs.in")),
    ("driver/src/device.rs", include_str!("templates/device.rs.in")),
    ("driver/src/lib.rs", include_str!("templates/lib.rs.in")),
    ("driver/src/queue.rs", include_str!("templates/queue.rs.in")),
    ("driver/src/trace.rs", include_str!("templates/trace.rs.in")),
    ("driver/{{image}}.inx", include_str!("templates/inx.in")),
    ("tests/Cargo.toml", include_str!("templates/tests.toml.in")),
    ("tests/driver.rs", include_str!("templates/driver_test.rs.in")),
];

/// The crates in wdk-etw's repository that a new driver and its test depend on, and their folders.
const CRATES: [(&str, &str); 4] = [
    ("etl-file", "formats/etl-file"),
    ("standin-kernel", "standin-kernel"),
    ("wdk-etw", "provider-lib"),
    ("wdk-etw-build", "provider-lib/build"),
];

/// The device's security descriptor, which the driver and the INF file share: full access for the
/// system and administrators (`SDDL_DEVOBJ_SYS_ALL_ADM_ALL`).
const SDDL: &str = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";

/// Returns the names and contents of a new driver's files.
pub fn files(names: &Names, source: &Source) -> Result<Vec<(String, String)>> {
    let mut values = vec![
        ("company", names.company.clone()),
        ("guid", names.guid.to_string()),
        ("hardware-id", names.hardware_id.clone()),
        ("image", names.image.clone()),
        ("install", source.install()),
        ("interface", names.interface.to_string()),
        ("package", names.package.clone()),
        ("provider", names.provider.clone()),
        ("sddl", SDDL.to_owned()),
    ];
    let fields = ["interface-1", "interface-2", "interface-3", "interface-4"];
    values.extend(fields.into_iter().zip(rust_fields(names.interface)));
    for (name, folder) in CRATES {
        values.push((name, source.dependency(folder)?));
    }
    let mut files = Vec::new();
    for (name, template) in FILES {
        files.push((fill(name, &values)?, fill(template, &values)?));
    }
    Ok(files)
}

/// Replaces each `{{name}}` in a template with its value. `${{ … }}`, with spaces, belongs to
/// GitHub.
fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    let left = text.match_indices("{{").find(|(at, _)| {
        !text[..*at].ends_with('$') && text[at + 2..].starts_with(|next: char| next.is_alphabetic())
    });
    ensure!(left.is_none(), "a template must not have a placeholder without a value");
    Ok(text)
}

/// Returns the four fields of a GUID as Rust literals.
fn rust_fields(guid: Guid) -> [String; 4] {
    // The text form of a GUID has the digits in field order.
    let digits = guid.to_string().replace('-', "");
    let field = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let last: Vec<String> =
        (16..32).step_by(2).map(|from| format!("0x{}", field(from, from + 2))).collect();
    [
        format!("0x{}_{}", field(0, 4), field(4, 8)),
        format!("0x{}", field(8, 12)),
        format!("0x{}", field(12, 16)),
        format!("[{}]", last.join(", ")),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_placeholder_has_a_value() {
        let names = Names::new("contoso-sensor", None).unwrap();
        let source = Source::Path(PathBuf::from("/etw"));
        let files = files(&names, &source).unwrap();
        for (name, text) in &files {
            assert!(!text.replace("${{ ", "").contains("{{"), "{name}:\n{text}");
        }
        let inx = files.iter().find(|(name, _)| name == "driver/contoso_sensor.inx");
        let provider = format!("AddEventProvider = {{{}}},", names.guid);
        assert!(inx.unwrap().1.contains(&provider));
        assert!(fill("a {{b}}", &[]).is_err());
    }

    #[test]
    fn a_guid_is_written_as_its_fields() {
        let guid: Guid = "0bc69c6d-8ee2-4d42-a33f-fd6a69354dd8".parse().unwrap();
        assert_eq!(
            rust_fields(guid),
            ["0x0bc6_9c6d", "0x8ee2", "0x4d42", "[0xa3, 0x3f, 0xfd, 0x6a, 0x69, 0x35, 0x4d, 0xd8]"]
        );
    }
}
