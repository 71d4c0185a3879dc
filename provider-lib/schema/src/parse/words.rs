//! Parsers of the words and numbers after `=` in arguments, whose errors name the accepted forms.

use proc_macro2::Span;
use syn::{
    Expr, ExprLit, Ident, Lit, LitInt, LitStr, Token,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
};

use crate::{
    Guid, attribute,
    errors::{bail, error},
};

/// Parses `= value`.
pub fn value<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Returns true for an argument without `=`, and refuses a value.
pub fn alone(word: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    if input.peek(Token![=]) {
        bail!(word.span(), "the argument `{word}` has no value; write the word alone");
    }
    Ok(true)
}

/// Parses the text of a GUID.
pub fn guid(text: &LitStr) -> syn::Result<Guid> {
    let parsed = text.value().parse::<Guid>();
    let guid =
        parsed.map_err(|error| error!(text.span(), "`{}` is not a GUID: {error}", text.value()))?;
    if guid.to_bytes() == [0; 16] {
        bail!(
            text.span(),
            "a GUID of zeros identifies nothing; write another, or remove the argument",
        );
    }
    Ok(guid)
}

/// Parses `"…"`. `what` has the text, and `form` shows it.
pub fn literal(input: ParseStream<'_>, what: &str, form: &str) -> syn::Result<LitStr> {
    let span = input.span();
    input.parse().map_err(|_| {
        error!(
            span,
            "{what} must be a string literal, because the macro reads the source and cannot evaluate a \
             constant or a macro; write `{form}`",
        )
    })
}

/// Parses the name of a declared item.
///
/// `form` shows the item's declaration and its use.
pub fn item(input: ParseStream<'_>, what: &str, form: &str) -> syn::Result<Ident> {
    let refuse = |span| error!(span, "expected the name of {what}; {form}");
    let word: Ident = input.parse().map_err(|_| refuse(input.span()))?;
    if input.peek(Token![::]) {
        bail!(word.span(), "{what} must be named without a path; {form}");
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
    let refuse = |span| error!(span, "expected {expected}");
    let start = input.span();
    let number = LitInt::parse(input).map_err(|_| refuse(start))?;
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
            bail!(word.span(), "`{word}` is given twice; remove one of them");
        }
        self.0.push(word.clone());
        Ok(())
    }
}

/// Parses arguments that are separated by commas. `parse` parses the rest of one after its name.
pub fn arguments(
    input: ParseStream<'_>,
    mut parse: impl FnMut(&Ident) -> syn::Result<()>,
) -> syn::Result<()> {
    let mut given = Given::default();
    while !input.is_empty() {
        let keyword = |error| input.call(Ident::parse_any).map_err(|_| error);
        let word = input.parse().or_else(keyword)?;
        given.once(&word)?;
        parse(&word)?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
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
