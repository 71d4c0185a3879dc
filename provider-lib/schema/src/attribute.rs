//! The attributes that several items of a declaration can have.

use syn::{Attribute, Expr, ExprLit, Ident, Item, Lit, LitInt, LitStr, Meta, ext::IdentExt as _};

use crate::errors::{Tokens, bail, error};

/// Keywords of later editions, which `syn` does not know. The declaration's edition determines
/// whether such a name needs `r#`, so the name stays as written.
const KEYWORDS_OF_EDITIONS: &[&str] = &["gen"];

/// Returns an identifier without an unnecessary `r#`, so that `r#Read` and `Read` are equal.
pub fn plain(ident: &Ident) -> Ident {
    let plain = ident.unraw();
    let text = plain.to_string();
    if syn::parse_str::<Ident>(&text).is_ok() && !KEYWORDS_OF_EDITIONS.contains(&text.as_str()) {
        plain
    } else {
        ident.clone()
    }
}

/// Returns an expression without the groups around it. A fragment of `macro_rules!` is a group.
#[must_use]
pub fn ungrouped(expression: &Expr) -> &Expr {
    match expression {
        Expr::Group(group) => ungrouped(&group.expr),
        Expr::Paren(group) => ungrouped(&group.expr),
        other => other,
    }
}

/// Returns the lines of a doc comment.
///
/// # Errors
///
/// Returns an error for another `#[doc]`, which the generated code would not have.
pub fn doc(attribute: &Attribute) -> syn::Result<Vec<String>> {
    if let Meta::NameValue(pair) = &attribute.meta
        && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = ungrouped(&pair.value)
    {
        let (value, source) = (text.value(), text.span().source_text());
        let mut lines: Vec<&str> = value.split('\n').collect();
        if lines.len() > 1 && source.is_none_or(|source| source.starts_with("/*")) {
            remove_frame(&mut lines);
        }
        return Ok(lines.into_iter().map(|line| line.trim().to_owned()).collect());
    }
    Err(error!(
        Tokens(&attribute.meta),
        "the items of a provider declaration support doc comments only, because the macro reads \
         their text; write `/// …`",
    ))
}

/// Removes the frame of a block comment, as rustdoc does, which does not see the comment itself: a first
/// line that is empty or has only stars, a last line of stars, and the star before each line. The first
/// line needs no star, because it follows `/**`.
fn remove_frame(lines: &mut Vec<&str>) {
    let has_only_stars = |line: &str| line.bytes().all(|one| one == b'*');
    if lines.first().is_some_and(|line| has_only_stars(line)) {
        lines.remove(0);
    }
    if lines.last().is_some_and(|line| !line.is_empty() && has_only_stars(line)) {
        lines.pop();
    }
    let has_star = |line: &&str| line.trim_start().starts_with('*');
    let start = usize::from(!lines.first().is_some_and(has_star));
    let is_text = |line: &&str| !line.trim().is_empty();
    let (Some(first), Some(last)) = (
        lines.iter().skip(start).position(is_text).map(|at| start + at),
        lines.iter().rposition(is_text),
    ) else {
        return;
    };
    let Some(lines) = lines.get_mut(first..=last) else { return };
    let margin = |line: &&str| line.split_once('*').map(|(margin, _)| margin.to_owned());
    let Some(common) = lines.first().and_then(margin) else { return };
    let is_framed = |line: &&str| margin(line).as_ref() == Some(&common);
    if common.trim_matches([' ', '\t']).is_empty() && lines.iter().all(is_framed) {
        for line in lines {
            let after = line.get(common.len() + 1..).unwrap_or_default();
            if after.is_empty() || after.starts_with([' ', '*']) {
                *line = after;
            }
        }
    }
}

/// Returns the lines of the doc comments in a list of attributes.
///
/// # Errors
///
/// Returns an error for another `#[doc]`.
pub fn docs(attributes: &[Attribute]) -> syn::Result<Vec<String>> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        lines.append(&mut doc(attribute)?);
    }
    Ok(lines)
}

/// Returns an error at the first attribute that is not in `known`, because the macro would not
/// carry it over to the generated code.
pub fn only(attributes: &[Attribute], known: &[&str], what: &str) -> syn::Result<()> {
    for attribute in attributes {
        let path = attribute.path();
        if !known.iter().any(|name| path.is_ident(name)) {
            bail!(
                Tokens(path),
                "{what} in a provider declaration do not support this attribute, because it would \
                 be lost in the generated code; remove the attribute",
            );
        }
    }
    Ok(())
}

/// Returns the attributes of an item.
pub fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the name in `#[name = "…"]`.
pub fn name(attribute: &Attribute) -> syn::Result<String> {
    name_of(literal(attribute)?)
}

/// Returns the text in `#[name = "…"]`, which may be empty.
pub fn text(attribute: &Attribute) -> syn::Result<String> {
    without_nul(literal(attribute)?)
}

fn literal(attribute: &Attribute) -> syn::Result<&LitStr> {
    let value = &attribute.meta.require_name_value()?.value;
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        _ => Err(error!(Tokens(value), "a name must be a string literal: `name = \"…\"`")),
    }
}

/// Checks a name for event metadata or a manifest, and returns it.
pub fn name_of(text: &LitStr) -> syn::Result<String> {
    if text.value().is_empty() {
        bail!(text.span(), "the name is empty; a name needs at least one character");
    }
    without_nul(text)
}

fn without_nul(text: &LitStr) -> syn::Result<String> {
    let name = text.value();
    if name.contains('\0') {
        bail!(text.span(), "the name contains a NUL; remove it");
    }
    printable(text)?;
    Ok(name)
}

/// Refuses a text with a control character or a noncharacter, which XML and so a manifest cannot contain
/// and a viewer cannot show.
pub fn printable(text: &LitStr) -> syn::Result<()> {
    let is_refused = |one: &char| {
        let is_space = matches!(one, '\t' | '\n' | '\r');
        *one < ' ' && !is_space || matches!(one, '\u{FFFE}' | '\u{FFFF}')
    };
    text.value().chars().find(is_refused).map_or(Ok(()), |one| {
        let code = u32::from(one);
        let found = if one.is_control() {
            format!("the control character U+{code:04X}")
        } else {
            format!("U+{code:04X}, which is not a character")
        };
        Err(error!(text.span(), "the text contains {found}; remove it"))
    })
}

/// Returns the tag in `#[tag = 0x…]`.
pub fn tag(attribute: &Attribute) -> syn::Result<u32> {
    let value = &attribute.meta.require_name_value()?.value;
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => tag_of(number),
        _ => Err(error!(Tokens(value), "{TAG_RANGE}")),
    }
}

/// Returns the value of a tag, which must fit in 28 bits.
pub fn tag_of(number: &LitInt) -> syn::Result<u32> {
    match number.base10_parse() {
        Ok(tag) if tag < 1 << 28 => Ok(tag),
        _ => Err(error!(number.span(), "{TAG_RANGE}")),
    }
}

/// The error message for a tag that is not a number or does not fit in 28 bits.
const TAG_RANGE: &str = "a tag must be an integer from 0 to 0xFFFFFFF (28 bits)";

/// Converts `snake_case` and `SCREAMING_CASE` to `PascalCase`, the usual case of names in traces.
/// Leaves a name that consists only of underscores unchanged.
pub fn pascal_case(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    if name.chars().all(|letter| letter == '_') {
        return name.to_owned();
    }
    let shouting = name.chars().all(|letter| !letter.is_lowercase());
    let mut pascal = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        pascal.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        for letter in letters {
            if shouting {
                pascal.extend(letter.to_lowercase());
            } else {
                pascal.push(letter);
            }
        }
    }
    pascal
}

#[cfg(test)]
mod tests {
    use super::pascal_case;

    #[test]
    fn names_are_in_pascal_case() {
        for (name, pascal) in [
            ("read_complete", "ReadComplete"),
            ("REQUEST", "Request"),
            ("POWER_STATE", "PowerState"),
            ("r#type", "Type"),
            ("d0_exit", "D0Exit"),
            ("Already", "Already"),
            ("_private", "Private"),
            ("__", "__"),
        ] {
            assert_eq!(pascal_case(name), pascal);
        }
    }
}
