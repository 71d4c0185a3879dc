//! Finds the WDK crates among a driver's dependencies, and the packages outside its workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    link,
    standin::{CRATES_IO, REPLACED, Replaced, Standin},
};

/// Returns the elements of a JSON array.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the compiler options that map path dependencies outside the workspace to the same folder
/// on every machine.
pub fn outside(metadata: &Value, workspace: &Path, standin: &Path) -> Vec<String> {
    let mut packages: Vec<(&Path, &str)> = list(&metadata["packages"])
        .filter(|package| package["source"].is_null())
        .filter_map(|package| {
            let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
            Some((folder, package["name"].as_str()?))
        })
        // The stand-ins have their own mapping.
        .filter(|(folder, _)| !folder.starts_with(workspace) && !folder.starts_with(standin))
        .collect();
    // rustc uses the last matching option, so a nested package's option comes after the enclosing
    // package's.
    packages.sort_by_key(|(folder, _)| folder.as_os_str().len());
    packages.iter().map(|(folder, name)| link::remap(folder, &format!("packages/{name}"))).collect()
}

/// A WDK crate that a driver depends on and that is not a stand-in.
#[derive(Debug)]
pub struct Other {
    name: String,
    version: String,
    /// The crate's source as in cargo's metadata; `None` for a folder.
    source: Option<String>,
    manifest: PathBuf,
}

impl Other {
    /// Returns the crate's stand-in, and the source in which the stand-in replaces the crate.
    pub fn stand_in(&self) -> Option<(String, Replaced)> {
        let one = Replaced::find(&self.name, &self.version)?;
        let source = self.source.as_deref()?;
        // `git+https://…?rev=…#<commit>`
        let source = source
            .strip_prefix("git+")
            .map_or(CRATES_IO, |url| url.split(['?', '#']).next().unwrap_or(url));
        Some((source.to_owned(), one))
    }

    /// Explains why a driver with this crate cannot be built.
    pub fn refusal(&self, driver: &str) -> String {
        let Self { name, version, .. } = self;
        if self.source.is_none() && Replaced::find(name, version).is_some() {
            return format!(
                "{driver} depends on {name} in the folder {}, which stand-ins cannot replace; \
                 depend on {name} {version} from crates.io or a git repository",
                self.manifest.parent().unwrap_or(&self.manifest).display()
            );
        }
        let all = REPLACED.map(|one| format!("{} {}", one.name, one.version));
        format!(
            "{driver} depends on {name} {version}, which has no stand-in; to build without the WDK, \
             use {} and the versions of wdk, wdk-alloc and wdk-panic that depend on these",
            all.join(", ")
        )
    }
}

/// Returns the WDK crates among a driver's dependencies that are not stand-ins. Fails if the driver
/// uses neither WDK crates nor stand-ins.
pub fn others(
    package: &str,
    manifest: &Path,
    metadata: &Value,
    standin: &Standin,
) -> Result<Vec<Other>> {
    let mut others = Vec::new();
    let mut is_replaced = false;
    for used in used_packages(package, manifest, metadata)? {
        let text = |key: &str| used[key].as_str().unwrap_or_default().to_owned();
        let name = text("name");
        if REPLACED.iter().all(|one| one.name != name) {
            continue;
        }
        let manifest = PathBuf::from(text("manifest_path"));
        if standin.contains(&manifest) {
            is_replaced = true;
            continue;
        }
        others.push(Other {
            name,
            version: text("version"),
            source: used["source"].as_str().map(str::to_owned),
            manifest,
        });
    }
    ensure!(
        is_replaced || !others.is_empty(),
        "{package} depends on neither wdk-sys nor wdk-build; add wdk-sys 0.5 to its dependencies"
    );
    Ok(others)
}

/// Returns the packages that a driver's build uses, including the driver; other members of the
/// workspace can use more.
fn used_packages<'a>(
    package: &str,
    manifest: &Path,
    metadata: &'a Value,
) -> Result<Vec<&'a Value>> {
    let packages = || list(&metadata["packages"]);
    let own = packages().find(|one| one["manifest_path"].as_str().map(Path::new) == Some(manifest));
    let own = own.with_context(|| format!("cargo's metadata has no package {package}"))?;
    let mut reached = vec![&own["id"]];
    let mut at = 0;
    while let Some(&id) = reached.get(at) {
        at += 1;
        let node = list(&metadata["resolve"]["nodes"]).find(|node| node["id"] == *id);
        for dependency in node.into_iter().flat_map(|node| list(&node["deps"])) {
            let is_built = list(&dependency["dep_kinds"]).any(|one| one["kind"] != "dev");
            if is_built && !reached.contains(&&dependency["pkg"]) {
                reached.push(&dependency["pkg"]);
            }
        }
    }
    Ok(packages().filter(|one| reached.contains(&&one["id"])).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str) -> Value {
        json!({ "name": name, "manifest_path": format!("/w/{name}/Cargo.toml") })
    }

    fn others_of(metadata: &Value, standin: &Standin) -> Result<Vec<Other>> {
        others("d", Path::new("/w/d/Cargo.toml"), metadata, standin)
    }

    /// Returns the metadata of a package with these dependencies.
    fn resolved(package: &Value, dependencies: &[Value]) -> Value {
        let mut all: Vec<Value> = dependencies.to_vec();
        all.push(package.clone());
        for one in &mut all {
            one["id"] = one["name"].clone();
        }
        let deps: Vec<Value> = dependencies
            .iter()
            .map(|one| json!({ "pkg": one["name"], "dep_kinds": [{ "kind": null }] }))
            .collect();
        let nodes = json!([{ "id": package["name"], "deps": deps }]);
        json!({ "packages": all, "resolve": { "nodes": nodes } })
    }

    #[test]
    fn the_versions_of_other_members_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let standin = Standin::write(folder.path(), Path::new("none"), false).unwrap();
        let d = package("d");
        let path = folder.path().join("wdk-sys/Cargo.toml");
        let standin_sys = json!({ "name": "wdk-sys", "version": "0.5.2", "manifest_path": path });
        let old = json!({
            "id": "wdk-build", "name": "wdk-build", "version": "0.3.0", "source": "registry+x",
            "manifest_path": "/r/wdk-build/Cargo.toml",
        });
        let sibling = json!({ "id": "s", "name": "s", "manifest_path": "/w/s/Cargo.toml" });
        // An old version that another workspace member uses, or that the driver's tests use.
        let mut metadata = resolved(&d, std::slice::from_ref(&standin_sys));
        let uses_old = |kind: Value| json!({ "pkg": "wdk-build", "dep_kinds": [{ "kind": kind }] });
        if let Some(packages) = metadata["packages"].as_array_mut() {
            packages.extend([old, sibling.clone()]);
        }
        let ours = metadata["resolve"]["nodes"][0]["deps"][0].clone();
        metadata["resolve"]["nodes"][0]["deps"] = json!([ours, uses_old(json!("dev"))]);
        assert!(others_of(&metadata, &standin).unwrap().is_empty());
        metadata["resolve"]["nodes"][0]["deps"][1] = uses_old(json!("build"));
        assert_eq!(others_of(&metadata, &standin).unwrap().len(), 1);
        // A driver without wdk-sys, next to a workspace member with it.
        let mut metadata = resolved(&d, &[standin_sys, sibling]);
        let nodes = &mut metadata["resolve"]["nodes"];
        nodes[0]["deps"] = json!([{ "pkg": "s", "dep_kinds": [{ "kind": "dev" }] }]);
        let error = others_of(&metadata, &standin).unwrap_err().to_string();
        assert!(error.contains("add wdk-sys 0.5"), "{error}");
    }

    #[test]
    fn other_versions_of_the_wdk_crates_are_named_with_those_that_work() {
        let folder = tempfile::tempdir().unwrap();
        let standin = Standin::write(folder.path(), Path::new("none"), false).unwrap();
        let d = package("d");
        let found = |packages: &[Value]| others_of(&resolved(&d, packages), &standin);
        let ours = json!({
            "name": "wdk-sys", "version": "0.5.2", "source": null,
            "manifest_path": folder.path().join("wdk-sys/Cargo.toml"),
        });
        assert!(found(std::slice::from_ref(&ours)).unwrap().is_empty());
        let other = |version: &str, source: Value| {
            let other = json!({
                "name": "wdk-build", "version": version, "source": source,
                "manifest_path": "/w/wdk-build/Cargo.toml",
            });
            found(&[ours.clone(), other]).unwrap().remove(0)
        };
        let old = other("0.2.0", json!("registry+x"));
        assert!(old.stand_in().is_none());
        assert_eq!(
            old.refusal("d"),
            "d depends on wdk-build 0.2.0, which has no stand-in; to build without the WDK, use \
             wdk-build 0.6, wdk-build 0.5, wdk-build 0.4, wdk-build 0.3, wdk-sys 0.5, wdk-sys 0.4, \
             wdk-sys 0.3 and the versions of wdk, wdk-alloc and wdk-panic that depend on these"
        );
        // The versions in Microsoft's template, and crates from a repository, are also replaced.
        let template = other("0.5.1", json!("registry+x")).stand_in().unwrap();
        assert_eq!((template.0.as_str(), template.1.version), ("crates-io", "0.5"));
        let git = other("0.6.2", json!("git+https://example.com/wdk?rev=1#12"));
        let git = git.stand_in().unwrap();
        assert_eq!((git.0.as_str(), git.1.version), ("https://example.com/wdk", "0.6"));
        let path = other("0.6.0", Value::Null);
        assert!(path.stand_in().is_none());
        let refusal = path.refusal("d");
        assert!(refusal.contains("in the folder /w/wdk-build,"), "{refusal}");
        let error = found(&[]).unwrap_err().to_string();
        assert!(error.contains("add wdk-sys 0.5"), "{error}");
    }

    #[test]
    fn packages_outside_the_workspace_have_the_same_folders_everywhere() {
        let package = |name: &str, folder: &str, source: &Value| json!({ "name": name, "manifest_path": format!("{folder}/Cargo.toml"), "source": source });
        let metadata = json!({ "packages": [
            package("inner", "/home/me/lib/inner", &Value::Null),
            package("lib", "/home/me/lib", &Value::Null),
            package("driver", "/home/me/driver", &Value::Null),
            package("wdk-sys", "/tmp/target/etw/standin/wdk-sys", &Value::Null),
            package("syn", "/home/me/.cargo/registry/src/x/syn-2", &json!("registry+x")),
        ] });
        assert_eq!(
            outside(&metadata, Path::new("/home/me/driver"), Path::new("/tmp/target/etw/standin")),
            [
                "--remap-path-prefix=/home/me/lib=packages/lib",
                "--remap-path-prefix=/home/me/lib/inner=packages/inner"
            ]
        );
    }
}
