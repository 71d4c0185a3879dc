//! Provider traits and their validation.
//!
//! `wdk-etw` implements traits separately (`provider-lib/src/traits.rs`). Tests compare the two
//! implementations, so neither uses the other.

#![cfg_attr(
    feature = "fuzzing",
    allow(
        clippy::missing_errors_doc,
        clippy::must_use_candidate,
        reason = "the fuzz targets are not users of a documented interface"
    )
)]

use etl_file::Guid;

use crate::ground::rule::Rule;

/// The result of checking a well-formed traits blob.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckedTraits {
    /// The provider group that the traits name.
    pub group: Option<Guid>,
    /// The violations that do not make the call fail. Each has a phrase that follows "traits" in
    /// the warning.
    pub doubtful: Vec<(Rule, String)>,
}

/// Checks a traits blob (R-T1, R-T2, R-T5). An error contains the broken rule, and a phrase that follows
/// "traits" in the warning.
pub fn check_traits(blob: &[u8]) -> Result<CheckedTraits, (Rule, String)> {
    const GROUP: u8 = 1;
    /// The recommended maximum: every event carries a copy of the traits (ETW-4.3.4).
    const ADVISED: usize = 255;
    let malformed = |what: String| Err((Rule::MalformedTraits, what));
    let Some((size, rest)) = blob.split_first_chunk::<2>() else {
        return malformed(format!("of {} bytes, too few for the size field", blob.len()));
    };
    let stated = usize::from(u16::from_le_bytes(*size));
    if stated != blob.len() {
        return malformed(format!("of {} bytes whose size field is {stated}", blob.len()));
    }
    let Some(end) = rest.iter().position(|byte| *byte == 0) else {
        return malformed("whose provider name has no terminator".to_owned());
    };
    let (name, rest) = rest.split_at(end);
    if std::str::from_utf8(name).is_err() {
        return malformed("whose provider name is not UTF-8".to_owned());
    }
    let mut doubtful = Vec::new();
    if blob.len() > ADVISED {
        doubtful.push((
            Rule::LargeTraits,
            format!("of {} bytes; more than {ADVISED} make every event large", blob.len()),
        ));
    }
    let mut rest = rest.get(1..).unwrap_or_default();
    let mut group = None;
    while !rest.is_empty() {
        let at = blob.len() - rest.len();
        let size = rest.first_chunk::<2>().copied().map(u16::from_le_bytes);
        let one = size
            .and_then(|size| rest.get(..usize::from(size)))
            .and_then(|one| one.get(2..)?.split_first());
        let Some((kind, data)) = one else {
            return malformed(format!("in which the trait at offset {at} is cut off"));
        };
        match *kind {
            GROUP => {
                let Ok(bytes) = <[u8; 16]>::try_from(data) else {
                    let what = format!("whose group is {} bytes long, not 16", data.len());
                    return Err((Rule::GroupTrait, what));
                };
                if group.replace(Guid::from_bytes(bytes)).is_some() {
                    return Err((Rule::GroupTrait, "with two provider groups".to_owned()));
                }
            }
            0 | 2..=127 => doubtful.push((
                Rule::ReservedTrait,
                format!("with a trait of type {kind}, which is reserved"),
            )),
            _ => {}
        }
        rest = rest.get(data.len() + 3..).unwrap_or_default();
    }
    Ok(CheckedTraits { group, doubtful })
}

/// Returns the provider's name, which follows the size at the start of the traits.
pub fn provider_name(traits: &[u8]) -> Option<String> {
    let name = traits.get(2..)?.split(|byte| *byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the example in the documentation of traits: name, group, custom trait 128.
    fn example() -> Vec<u8> {
        let mut blob = vec![0x2B, 0];
        blob.extend_from_slice(b"Contoso.Sample\0\x13\0\x01");
        blob.extend_from_slice(&[
            0x61, 0x2F, 0xAF, 0xFA, 0x26, 0x9B, 0x91, 0x45, 0x9B, 0xB1, 0xB9, 0xB8, 0xBA, 0xE2,
            0xD3, 0x4C,
        ]);
        blob.extend_from_slice(&[7, 0, 0x80, 1, 2, 3, 4]);
        blob
    }

    // R-T1, R-T2, R-T5
    #[test]
    fn traits_are_checked_and_the_group_found() {
        let checked = check_traits(&example()).expect("well-formed");
        assert_eq!(checked.doubtful, []);
        let group = checked.group.expect("a group");
        assert_eq!(group.to_string(), "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
        assert_eq!(
            check_traits(b"\x05\0ab\0"),
            Ok(CheckedTraits { group: None, doubtful: Vec::new() })
        );
    }

    #[test]
    fn malformed_traits_are_refused_at_every_length() {
        let good = example();
        for length in 0..good.len() {
            let mut cut = good[..length].to_vec();
            assert!(check_traits(&cut).is_err(), "the size field is larger");
            if length >= 2 {
                cut[..2].copy_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
                // Only a blob that ends between traits is complete.
                assert_eq!(check_traits(&cut).is_ok(), [17, 36].contains(&length), "{length}");
            }
        }
    }
}
