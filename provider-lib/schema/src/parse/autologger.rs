//! The argument `autologger` of `#[provider(…)]`.

use etw_wire::autologger::{MAX_FILE_NAME, NEW_FILE, PROVIDER, SESSION, Setting, conflict};
use proc_macro2::Span;
use syn::{
    Expr, ExprLit, Ident, Lit, LitStr, parenthesized, parse::ParseStream, spanned::Spanned as _,
    token,
};

use super::words::{alone, arguments, constant_of, guid, value};
use crate::{
    AutoLogger, Guid, Provider,
    errors::{bail, error, quoted},
};

/// The characters, besides letters and digits, of session names and paths in INF files.
const IN_NAMES: &str = "_-. ()";

/// `autologger`, or `autologger(session = "…", …)`, as it is written.
pub struct Written {
    word: Span,
    session: Option<LitStr>,
    guid: Option<Guid>,
    file: Option<LitStr>,
    values: Vec<(&'static Setting, Ident, Expr)>,
}

fn settings() -> impl Iterator<Item = &'static Setting> {
    SESSION.iter().chain(PROVIDER)
}

impl Written {
    /// Parses the settings after the word `autologger`.
    pub fn parse(word: &Ident, input: ParseStream<'_>) -> syn::Result<Self> {
        let mut written =
            Self { word: word.span(), session: None, guid: None, file: None, values: Vec::new() };
        if !input.peek(token::Paren) {
            alone(word, input)?;
            return Ok(written);
        }
        let inside;
        parenthesized!(inside in input);
        arguments(&inside, |word| {
            let name = word.to_string();
            match name.as_str() {
                "session" => written.session = Some(value(&inside)?),
                "guid" => written.guid = Some(guid(&value(&inside)?)?),
                "file_name" => written.file = Some(value(&inside)?),
                _ => {
                    let known = settings().find(|one| one.ident == Some(name.as_str()));
                    let Some(setting) = known else {
                        let names = quoted(settings().filter_map(|one| one.ident));
                        bail!(
                            word.span(),
                            "unknown setting `{name}` of an autologger; supported: `session`, \
                             `guid`, `file_name`, {names}",
                        );
                    };
                    written.values.push((setting, word.clone(), value(&inside)?));
                }
            }
            Ok(())
        })?;
        Ok(written)
    }

    /// Evaluates the settings. The provider's keywords are known now.
    pub fn resolve(self, provider: &Provider) -> syn::Result<AutoLogger> {
        let session = self.session.as_ref();
        let name = session.map_or_else(|| format!("{}-Boot", provider.name), LitStr::value);
        let at = session.map_or(self.word, LitStr::span);
        if !is_plain(&name, IN_NAMES) {
            bail!(
                at,
                "{name:?} cannot be the name of a session: expected letters of ASCII, digits and \
                 any of `_`, `-`, `.`, space and parentheses, without a space at either end or a \
                 period at the end, as in `autologger(session = \"Contoso-Boot\")`",
            );
        }
        let guid = match self.guid {
            Some(guid) => guid,
            None => Guid::of_name(&name).map_err(|error| error!(at, "{error}"))?,
        };
        if guid == provider.guid {
            bail!(
                at,
                "the session {name} has the GUID of the provider {}, {guid}; name it otherwise, \
                 for example `{name}-Boot`, or give it a GUID of its own: `guid = \"…\"`",
                provider.name,
            );
        }
        if let Some(file) = &self.file {
            check_file(file)?;
        }
        let mut values = vec![("Start", 1)];
        let mut provider_values = vec![("Enabled", 1), ("EnableLevel", 0xFF)];
        for (setting, word, expression) in &self.values {
            let number = number(setting, expression, provider)
                .filter(|number| setting.accepts(*number))
                .ok_or_else(|| refuse(setting, word, expression.span(), provider))?;
            let is_of_session = SESSION.iter().any(|one| one == *setting);
            let list = if is_of_session { &mut values } else { &mut provider_values };
            match list.iter_mut().find(|(key, _)| *key == setting.key) {
                Some((_, known)) => *known = number,
                None => list.push((setting.key, number)),
            }
        }
        let value_of =
            |wanted: &str| values.iter().find(|(key, _)| *key == wanted).map(|(_, it)| *it);
        let file = self.file.map(|file| file.value());
        let begins_files = value_of("LogFileMode").is_some_and(|mode| mode & NEW_FILE != 0);
        let why = if begins_files {
            Some(
                "LogFileMode 0x8 (new files) needs `%d` in the file's name, which `file_name` cannot have; \
                 `file_max` begins a file at each start of the session",
            )
        } else {
            conflict(value_of, file.as_deref())
        };
        if let Some(why) = why {
            bail!(self.word, "the autologger cannot be used: {why}");
        }
        // Providers can share a session, and may declare its values in different orders.
        values.sort_by_key(|(key, _)| SESSION.iter().position(|one| one.key == *key));
        Ok(AutoLogger { session: name, guid, file, values, provider_values })
    }
}

fn is_plain(text: &str, others: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || others.contains(one);
    // INF files drop spaces around a value; Windows drops spaces and periods at the end of a file's name.
    let has_plain_ends = text.trim() == text && !text.ends_with('.');
    !text.is_empty() && text.len() < 256 && has_plain_ends && text.chars().all(is_plain)
}

/// Checks the path of a file below the folder for drivers' data.
fn check_file(file: &LitStr) -> syn::Result<()> {
    let text = file.value();
    if text.len() < MAX_FILE_NAME / 2 && text.split('\\').all(|part| is_plain(part, IN_NAMES)) {
        return Ok(());
    }
    Err(error!(
        file.span(),
        "{text:?} is not a path below %DriverData%, Windows' folder for the files of drivers; \
         write, for example, `file_name = \"Contoso\\\\boot.etl\"`",
    ))
}

/// Returns the value of an expression.
fn number(setting: &Setting, expression: &Expr, provider: &Provider) -> Option<u64> {
    if is_flag(setting) {
        return match expression {
            Expr::Lit(ExprLit { lit: Lit::Bool(flag), .. }) => Some(flag.value.into()),
            _ => None,
        };
    }
    constant_of(expression, &|word| {
        if takes_keywords(setting) {
            let keyword = provider.keywords.iter().find(|keyword| keyword.ident == *word)?;
            return Some(1 << keyword.bit);
        }
        let own = provider.levels.iter().filter(|_| setting.key == "EnableLevel");
        let own = own.map(|level| (level.ident.to_string(), u64::from(level.value)));
        let standard = setting.names.iter().map(|(name, value)| ((*name).to_owned(), *value));
        let found = standard.chain(own).find(|(name, _)| word == name);
        found.map(|(_, value)| value)
    })
}

const fn is_flag(setting: &Setting) -> bool {
    setting.least == 0 && setting.most == 1
}

const fn takes_keywords(setting: &Setting) -> bool {
    setting.most == u64::MAX
}

fn refuse(setting: &Setting, word: &Ident, span: Span, provider: &Provider) -> syn::Error {
    let Setting { least, most, names, .. } = setting;
    let form = if is_flag(setting) {
        "`true` or `false`".to_owned()
    } else if takes_keywords(setting) {
        let names = quoted(provider.keywords.iter().map(|keyword| &keyword.ident));
        let declared = if names.is_empty() { "none is declared" } else { &names };
        format!("a mask, or keywords of the provider ({declared}) joined by `|`")
    } else if names.is_empty() {
        format!("a number from {least} to {most}")
    } else {
        let names = quoted(names.iter().map(|(name, _)| name));
        format!("{names}, or a number from {least} to {most}")
    };
    error!(span, "expected `{word} = …` with {form}")
}
