//! The passages of Rust source that readers see: comments and string literals.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

use super::passage::{Kind, Passage};

/// Returns the comments and string literals of a file. Line comments on consecutive lines make one
/// passage, since a sentence can span several lines.
pub(super) fn passages(source: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut line = 1;
    let mut rest = source;
    // The passage that the next line comment continues.
    let mut open = false;
    for token in tokenize(source, FrontmatterAllowed::No) {
        let length = usize::try_from(token.len).unwrap_or(rest.len());
        let Some((text, after)) = rest.split_at_checked(length) else {
            break;
        };
        rest = after;
        match token.kind {
            TokenKind::LineComment { .. } => {
                let text = text.trim_start_matches('/').trim_start_matches('!');
                match passages.last_mut().filter(|_| open) {
                    Some(passage) => {
                        passage.text.push('\n');
                        passage.text.push_str(text);
                    }
                    None => {
                        passages.push(Passage { line, kind: Kind::Comment, text: text.to_owned() });
                    }
                }
                open = true;
            }
            TokenKind::BlockComment { .. } => {
                passages.push(Passage { line, kind: Kind::Comment, text: text.to_owned() });
                open = false;
            }
            TokenKind::Literal { kind, .. } => {
                if let Some(text) = inner(kind, text) {
                    passages.push(Passage { line, kind: Kind::Literal, text: text.to_owned() });
                }
                open = false;
            }
            TokenKind::Whitespace => open &= text.matches('\n').count() <= 1,
            _ => open = false,
        }
        line += text.matches('\n').count();
    }
    passages
}

/// Returns a string literal's text, between its quotation marks.
fn inner(kind: LiteralKind, text: &str) -> Option<&str> {
    match kind {
        LiteralKind::Str { .. } | LiteralKind::RawStr { .. } => {
            let text = text.trim_start_matches('r').trim_matches('#');
            Some(text.trim_matches('"'))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::passages;
    use crate::citations::passage::Kind::{Comment, Literal};

    #[test]
    fn comments_and_strings_are_read() {
        let source = "//! One\n//! two\n\n// three\nfn f<'a>() { g('\"', \"four\"); } // five\n\
                      // six\nconst S: &str = r#\"// \"seven\"\"#; /* eight\n */ /// nine\n";
        let read: Vec<_> = passages(source)
            .into_iter()
            .map(|passage| (passage.line, passage.kind, passage.text))
            .collect();
        let expected = [
            (1, Comment, " One\n two"),
            (4, Comment, " three"),
            (5, Literal, "four"),
            (5, Comment, " five\n six"),
            (7, Literal, "// \"seven"),
            (7, Comment, "/* eight\n */"),
            (8, Comment, " nine"),
        ];
        let expected: Vec<_> =
            expected.map(|(line, kind, text)| (line, kind, text.to_owned())).into();
        assert_eq!(read, expected);
    }
}
