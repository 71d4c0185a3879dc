//! The source of wdk-etw for a new driver: a checkout or a git repository.

use std::{
    env, fmt, fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The source that the command line requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The folder of a checkout.
    pub path: Option<PathBuf>,
    /// The URL of a repository.
    pub git: Option<String>,
    /// The commit, tag or branch in the repository.
    pub version: Option<Version>,
}

/// A version in a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// A commit.
    Rev(String),
    /// A tag.
    Tag(String),
    /// A branch.
    Branch(String),
}

impl Version {
    /// Returns the key that dependencies and `cargo install` use for the version, and its value.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Rev(value) => ("rev", value),
            Self::Tag(value) => ("tag", value),
            Self::Branch(value) => ("branch", value),
        }
    }
}

/// The source of wdk-etw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The folder of a checkout: absolute, or relative to the new driver's folder.
    Path(PathBuf),
    /// A repository.
    Git(String, Option<Version>),
}

/// A file that exists in every checkout of wdk-etw.
const MARK: &str = "tools/cargo-etw/Cargo.toml";

impl Source {
    /// Finds the source: from the command line, otherwise from this program's installation,
    /// otherwise from the repository in its package manifest.
    pub fn find(wanted: &Wanted) -> Result<Self> {
        let Wanted { path, git, version } = wanted;
        if let Some(path) = path {
            return Self::of_checkout(path);
        }
        if let Some(url) = git {
            return Ok(Self::Git(url.clone(), version.clone()));
        }
        ensure!(
            version.is_none(),
            "`--rev`, `--tag` and `--branch` need `--git`, the repository that contains them"
        );
        let program = env::current_exe().context("cannot find the path of this program")?;
        if let Some(source) = Self::of_installed(&program) {
            return Ok(source);
        }
        let repository = env!("CARGO_PKG_REPOSITORY");
        if !repository.is_empty() {
            return Ok(Self::Git(repository.to_owned(), None));
        }
        bail!(
            "cannot find the source of wdk-etw, because {} does not record where it was installed \
             from; name a checkout with `--path`, or a repository with `--git`",
            program.display()
        )
    }

    /// Returns the folder of a checkout; a relative path stays relative.
    fn of_checkout(path: &Path) -> Result<Self> {
        ensure!(
            path.join(MARK).is_file(),
            "{} is not a checkout of wdk-etw: it has no {MARK}",
            path.display()
        );
        Ok(Self::Path(path.to_owned()))
    }

    /// Returns the source from which `cargo install` installed a program, or the checkout in which
    /// it was built.
    fn of_installed(program: &Path) -> Option<Self> {
        // cargo stores the list next to the `bin` folder.
        let root = program.parent()?.parent()?;
        if let Ok(list) = fs::read(root.join(".crates2.json"))
            && let Ok(list) = serde_json::from_slice(&list)
            && let Some(source) = Self::of_list(&list)
        {
            return Some(source);
        }
        let checkout = program.ancestors().find(|folder| folder.join(MARK).is_file())?;
        Some(Self::Path(checkout.to_owned()))
    }

    /// Returns the source in cargo's list of installed packages, with entries such as `cargo-etw
    /// 0.1.0 (git+https://…?tag=v1#<commit>)`.
    fn of_list(list: &Value) -> Option<Self> {
        let entries = list["installs"].as_object()?;
        let entry = entries.keys().find(|key| key.starts_with("cargo-etw "))?;
        let (_, source) = entry.split_once('(')?;
        let source = source.strip_suffix(')')?;
        if let Some(url) = source.strip_prefix("git+") {
            let (url, commit) = url.rsplit_once('#')?;
            // The commit is known, so the tag or branch is not needed.
            let url = url.split('?').next().unwrap_or(url);
            let commit = Version::Rev(commit.to_owned());
            return Some(Self::Git(url.to_owned(), Some(commit)));
        }
        let folder = source.strip_prefix("path+file://")?;
        let folder = PathBuf::from(percent_decoded(folder)?);
        let checkout = folder.ancestors().nth(2)?;
        checkout.join(MARK).is_file().then(|| Self::Path(checkout.to_owned()))
    }

    /// Changes a checkout's path from relative to the current folder to relative to `folder`.
    pub fn relative_to(&self, folder: &Path) -> Self {
        match self {
            Self::Path(path) if path.is_relative() => {
                let absolute = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                Self::Path(between(folder, &absolute))
            }
            other => other.clone(),
        }
    }

    /// Returns the dependency on the crate in a folder of the repository, as a TOML value.
    pub fn dependency(&self, folder: &str) -> Result<String> {
        let quoted = |text: &str| Value::from(text).to_string();
        match self {
            Self::Path(path) => {
                let path = path.join(folder);
                let text = path.to_str().with_context(|| {
                    format!("{} is not UTF-8, which Cargo.toml needs", path.display())
                })?;
                Ok(format!("{{ path = {} }}", quoted(&text.replace('\\', "/"))))
            }
            Self::Git(url, version) => {
                let mut text = format!("{{ git = {}", quoted(url));
                if let Some(version) = version {
                    let (key, value) = version.parts();
                    text = format!("{text}, {key} = {}", quoted(value));
                }
                Ok(text + " }")
            }
        }
    }

    /// Returns the command that installs cargo-etw from the source.
    pub fn install(&self) -> String {
        let words = self.install_arguments();
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        format!("cargo install --locked {}", words.join(" "))
    }

    /// Returns the arguments of `cargo install` that specify the source of cargo-etw.
    pub fn install_arguments(&self) -> Vec<String> {
        match self {
            Self::Path(path) => {
                let path = path.join("tools/cargo-etw");
                vec!["--path".to_owned(), path.display().to_string()]
            }
            Self::Git(url, version) => {
                let mut words = vec!["--git".to_owned(), url.clone()];
                if let Some(version) = version {
                    let (key, value) = version.parts();
                    words.extend([format!("--{key}"), value.to_owned()]);
                }
                words.push("cargo-etw".to_owned());
                words
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(out, "the checkout {}", path.display()),
            Self::Git(url, None) => write!(out, "the repository {url}"),
            Self::Git(url, Some(version)) => {
                let (key, value) = version.parts();
                write!(out, "the repository {url} at {key} {value}")
            }
        }
    }
}

/// Returns the path from one absolute folder to another.
fn between(from: &Path, to: &Path) -> PathBuf {
    let mut down = to.components().peekable();
    let mut up = from.components().peekable();
    while let (Some(one), Some(other)) = (up.peek(), down.peek()) {
        if one != other {
            break;
        }
        // On Windows, no relative path can point from one drive to another.
        up.next();
        down.next();
    }
    if up.peek().is_some_and(|part| matches!(part, Component::Prefix(_))) {
        return to.to_owned();
    }
    up.map(|_| Component::ParentDir).chain(down).collect()
}

/// Quotes a word for a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/.:_-+@=,~".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the path of a URL, decoded.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(key: &str) -> Option<Source> {
        Source::of_list(&json!({ "installs": { "etl 1.0.0 (x)": {}, key: {} } }))
    }

    #[test]
    fn the_source_is_that_which_the_program_was_installed_from() {
        let source = listed("cargo-etw 0.1.0 (git+https://example.com/etw.git?tag=v1#abc123)");
        let expected = Source::Git(
            "https://example.com/etw.git".to_owned(),
            Some(Version::Rev("abc123".to_owned())),
        );
        assert_eq!(source, Some(expected));
        let folder = tempfile::tempdir().unwrap();
        let checkout = folder.path().join("a b");
        fs::create_dir_all(checkout.join("tools/cargo-etw")).unwrap();
        let path = checkout.display().to_string().replace(' ', "%20");
        let entry = format!("cargo-etw 0.1.0 (path+file://{path}/tools/cargo-etw)");
        // The checkout has been removed.
        assert_eq!(listed(&entry), None);
        fs::write(checkout.join(MARK), "").unwrap();
        assert_eq!(listed(&entry), Some(Source::Path(checkout.clone())));
        assert_eq!(listed("other 0.1.0 (path+file:///x)"), None);
        assert_eq!(
            Source::of_installed(&checkout.join("target/debug/cargo-etw")),
            Some(Source::Path(checkout))
        );
        assert_eq!(Source::of_installed(Path::new("/usr/bin/cargo-etw")), None);
    }

    #[test]
    fn a_relative_checkout_is_relative_to_the_new_folder() {
        let path = |from: &str, to: &str| between(Path::new(from), Path::new(to));
        assert_eq!(path("/a/b/new", "/a/etw"), Path::new("../../etw"));
        assert_eq!(path("/a/etw/new", "/a/etw"), Path::new(".."));
        let absolute = Source::Path(PathBuf::from("/x"));
        assert_eq!(absolute.relative_to(Path::new("/y")), absolute);
    }

    #[test]
    fn a_version_without_a_repository_and_a_folder_that_is_no_checkout_are_refused() {
        let error = Source::find(&Wanted {
            version: Some(Version::Tag("v1".to_owned())),
            ..Wanted::default()
        });
        assert!(error.unwrap_err().to_string().contains("need `--git`"));
        let error =
            Source::find(&Wanted { path: Some(PathBuf::from("/nowhere")), ..Wanted::default() });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/nowhere is not a checkout of wdk-etw"), "{error}");
    }

    #[test]
    fn dependencies_and_commands_quote_what_they_contain() {
        let source = Source::Path(PathBuf::from("/it's \"a b\""));
        assert_eq!(
            source.dependency("provider-lib").unwrap(),
            r#"{ path = "/it's \"a b\"/provider-lib" }"#
        );
        assert_eq!(
            source.install(),
            r#"cargo install --locked --path '/it'\''s "a b"/tools/cargo-etw'"#
        );
        let source =
            Source::Git("https://example.com/etw".to_owned(), Some(Version::Tag("v1".to_owned())));
        assert_eq!(
            source.dependency("provider-lib").unwrap(),
            r#"{ git = "https://example.com/etw", tag = "v1" }"#
        );
        assert_eq!(
            source.install(),
            "cargo install --locked --git https://example.com/etw --tag v1 cargo-etw"
        );
    }
}
