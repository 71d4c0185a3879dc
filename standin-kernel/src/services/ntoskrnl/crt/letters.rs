//! Upper-case and lower-case forms of UTF-16 characters.

use std::ops::RangeInclusive;

/// Lower-case Greek letters with iota subscript, and the distances to their upper-case letters in
/// Windows' tables. In Unicode, their upper-case forms have two characters.
const WITH_IOTA: [(RangeInclusive<u16>, u16); 6] = [
    (0x1F80..=0x1F87, 8),
    (0x1F90..=0x1F97, 8),
    (0x1FA0..=0x1FA7, 8),
    (0x1FB3..=0x1FB3, 9),
    (0x1FC3..=0x1FC3, 9),
    (0x1FF3..=0x1FF3, 9),
];

/// Returns the upper-case form of a character, if the form is one unit and its lower-case form is
/// that character. Windows' tables contain only such pairs; for example, the micro sign has no
/// upper-case form.
pub fn upcase(unit: u16) -> u16 {
    let mut with_iota = WITH_IOTA.iter();
    if let Some((_, distance)) = with_iota.find(|(small, _)| small.contains(&unit)) {
        return unit + distance;
    }
    let upper = in_unicode(unit, char::to_uppercase);
    if in_unicode(upper, char::to_lowercase) == unit { upper } else { unit }
}

/// Returns the lower-case form of a character, under the same condition as [`upcase`].
pub fn downcase(unit: u16) -> u16 {
    for (small, distance) in &WITH_IOTA {
        let candidate = unit.wrapping_sub(*distance);
        if small.contains(&candidate) {
            return candidate;
        }
    }
    let lower = in_unicode(unit, char::to_lowercase);
    if in_unicode(lower, char::to_uppercase) == unit { lower } else { unit }
}

/// Returns a form of a character, if the form is one unit; otherwise, the character itself.
fn in_unicode<T: Iterator<Item = char>>(unit: u16, form: impl Fn(char) -> T) -> u16 {
    char::from_u32(u32::from(unit)).map_or(unit, |character| one_unit(form(character), unit))
}

fn one_unit(mut characters: impl Iterator<Item = char>, otherwise: u16) -> u16 {
    match (characters.next(), characters.next()) {
        (Some(one), None) => u16::try_from(u32::from(one)).unwrap_or(otherwise),
        _ => otherwise,
    }
}
