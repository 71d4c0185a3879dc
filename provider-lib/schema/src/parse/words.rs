//! Parsers of the words and numbers after `=` in arguments, whose errors name the accepted forms.

use proc_macro2::Span;
use syn::{
    Expr, ExprLit, Ident, Lit, LitInt, LitStr, Token,
    parse::{Parse, ParseStream},
};

use crate::{Guid, attribute};

/// Parses `= value`.
pub fn value<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Returns true for an argument without `=`, and refuses a value.
pub fn alone(word: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    if input.peek(Token![=]) {
        let text = format!("the argument `{word}` has no value; write the word alone");
        return Err(syn::Error::new(word.span(), text));
    }
    Ok(true)
}

/// Parses the text of a GUID.
pub fn guid(text: &LitStr) -> syn::Result<Guid> {
    let parsed = text.value().parse::<Guid>();
    parsed.map_err(|error| {
        syn::Error::new(text.span(), format!("`{}` is not a GUID: {error}", text.value()))
    })
}

/// Parses the name of a declared item.
///
/// `form` shows the item's declaration and its use.
pub fn item(input: ParseStream<'_>, what: &str, form: &str) -> syn::Result<Ident> {
    let refuse = |span| syn::Error::new(span, format!("expected the name of {what}; {form}"));
    let word: Ident = input.parse().map_err(|_| refuse(input.span()))?;
    if input.peek(Token![::]) {
        return Err(syn::Error::new(
            word.span(),
            format!("{what} must be named without a path; {form}"),
        ));
    }
    Ok(attribute::plain(&word))
}

/// Parses a number of type `T`.
pub fn number<T: std::str::FromStr>(
    input: ParseStream<'_>,
    expected: &str,
) -> syn::Result<(T, Span)>
where
    T::Err: std::fmt::Display,
{
    let refuse = |span| syn::Error::new(span, format!("expected {expected}"));
    let number = LitInt::parse(input).map_err(|_| refuse(input.span()))?;
    let value = number.base10_parse().map_err(|_| refuse(number.span()))?;
    Ok((value, number.span()))
}

/// The arguments that an attribute or a macro received. Each can be given only once.
#[derive(Default)]
pub struct Given(Vec<Ident>);

impl Given {
    /// Adds an argument.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument was already given.
    pub fn once(&mut self, word: &Ident) -> syn::Result<()> {
        if self.0.contains(word) {
            return Err(twice(word));
        }
        self.0.push(word.clone());
        Ok(())
    }
}

fn twice(word: &Ident) -> syn::Error {
    syn::Error::new(word.span(), format!("`{word}` is given twice; remove one of them"))
}

/// Returns the value of an integer literal, a left shift or product of literals, or several such
/// terms joined by `|`. `named` returns a name's value.
pub fn constant_of(expression: &Expr, named: &dyn Fn(&Ident) -> Option<u64>) -> Option<u64> {
    match attribute::ungrouped(expression) {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Binary(binary) => {
            let (left, right) =
                (constant_of(&binary.left, named)?, constant_of(&binary.right, named)?);
            match binary.op {
                syn::BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                syn::BinOp::BitOr(_) => Some(left | right),
                syn::BinOp::Mul(_) => left.checked_mul(right),
                _ => None,
            }
        }
        Expr::Path(path) => named(&attribute::plain(path.path.get_ident()?)),
        _ => None,
    }
}
