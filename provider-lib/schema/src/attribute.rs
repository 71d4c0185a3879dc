//! Attributes that several parts of a declaration have.

use syn::{Attribute, Expr, ExprLit, Lit, LitInt, LitStr};

/// The text of a doc comment's line.
pub fn doc(attribute: &Attribute) -> Option<String> {
    let value = &attribute.meta.require_name_value().ok()?.value;
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = value
    else {
        return None;
    };
    Some(text.value().trim().to_owned())
}

/// The lines of the doc comments among attributes.
pub fn docs(attributes: &[Attribute]) -> Vec<String> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(doc)
        .collect()
}

/// Refuses attributes that would be lost without a word.
pub fn only(attributes: &[Attribute], known: &[&str], what: &str) -> syn::Result<()> {
    for attribute in attributes {
        let path = attribute.path();
        if !known.iter().any(|name| path.is_ident(name)) {
            return Err(syn::Error::new_spanned(
                path,
                format!(
                    "{what} has no such attribute here; what the macro makes of it would not \
                     have it"
                ),
            ));
        }
    }
    Ok(())
}

/// The name in `#[name = "…"]`.
pub fn name(attribute: &Attribute) -> syn::Result<String> {
    let value = &attribute.meta.require_name_value()?.value;
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => name_of(text),
        _ => Err(syn::Error::new_spanned(
            value,
            "a name is a text: `name = \"…\"`",
        )),
    }
}

/// A name that an event's description can have.
pub fn name_of(text: &LitStr) -> syn::Result<String> {
    let name = text.value();
    if name.is_empty() {
        return Err(syn::Error::new(
            text.span(),
            "a name has one character at least",
        ));
    }
    if name.contains('\0') {
        return Err(syn::Error::new(
            text.span(),
            "a name ends at its first NUL; remove the NUL",
        ));
    }
    Ok(name)
}

/// The tag in `#[tag = 0x…]`.
pub fn tag(attribute: &Attribute) -> syn::Result<u32> {
    let value = &attribute.meta.require_name_value()?.value;
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => tag_of(number),
        _ => Err(syn::Error::new_spanned(
            value,
            "a tag is a number of 28 bits",
        )),
    }
}

/// A tag: 28 bits.
pub fn tag_of(number: &LitInt) -> syn::Result<u32> {
    match number.base10_parse() {
        Ok(tag) if tag < 1 << 28 => Ok(tag),
        _ => Err(syn::Error::new(
            number.span(),
            "a tag is a number of 28 bits",
        )),
    }
}

/// `snake_case` or `SCREAMING_CASE` as `PascalCase`, as names in traces are written.
pub fn pascal_case(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
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
        ] {
            assert_eq!(pascal_case(name), pascal);
        }
    }
}
