//! Reads drivers' `MSBuild` projects, to the extent that the samples use them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use driver_build::files;
use roxmltree::{Document, Node};

/// The configuration whose settings are used.
const CONFIGURATION: &str = "Release|x64";

/// The definition that makes the WPP preprocessor generate code for the recorder.
const RECORDER: &str = "ENABLE_WPP_RECORDER=1";

/// The source files of a project and their build settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// The project's name.
    pub name: String,
    /// The project's folder.
    pub folder: PathBuf,
    /// The source files, relative to the folder.
    pub sources: Vec<PathBuf>,
    /// The header folders, relative to the folder.
    pub includes: Vec<PathBuf>,
    /// The macros, as `NAME` or `NAME=VALUE`.
    pub definitions: Vec<String>,
    /// The MOF files, relative to the folder, that the header is generated from.
    pub classes: Vec<PathBuf>,
    /// The manifests, relative to the folder, and the names of their headers.
    pub manifests: Vec<(PathBuf, String)>,
    /// The name of the header generated from the MOF files.
    pub class_header: Option<String>,
    /// The functions that the WPP preprocessor turns into trace messages.
    pub trace_functions: Vec<String>,
    /// The C++ standard: `c++17`.
    pub language: Option<String>,
    /// True if the image can be loaded only with a valid signature, as some routines require.
    pub has_integrity_check: bool,
    /// True if the driver does not use a framework.
    pub is_wdm: bool,
    /// True if the WPP preprocessor generates code for the recorder.
    pub uses_recorder: bool,
}

impl Project {
    /// Adds the source files of a library project that this project is linked with.
    pub fn absorb(&mut self, library: Self) {
        let Self { folder, sources, includes, definitions, trace_functions, .. } = library;
        self.sources.extend(sources.iter().map(|one| folder.join(one)));
        for one in includes {
            add(&mut self.includes, folder.join(one));
        }
        add(&mut self.includes, folder);
        for one in definitions {
            add(&mut self.definitions, one);
        }
        for one in trace_functions {
            add(&mut self.trace_functions, one);
        }
    }
}

/// Reads a project.
///
/// # Errors
///
/// Fails if the file cannot be read, is not XML, or contains no source files.
pub fn read(path: &Path) -> Result<Project> {
    let bytes = files::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut project = parse(text.trim_start_matches('\u{feff}'))
        .with_context(|| format!("{} is not a project", path.display()))?;
    project.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    path.parent().unwrap_or(path).clone_into(&mut project.folder);
    ensure!(!project.sources.is_empty(), "{} names no source file", path.display());
    Ok(project)
}

fn parse(text: &str) -> Result<Project> {
    let document = Document::parse(text)?;
    let mut project = Project::default();
    let elements =
        document.descendants().filter(|node| node.is_element() && node.ancestors().all(applies));
    for element in elements {
        match element.tag_name().name() {
            "ClCompile" => {
                let listed = element.attribute("Include").unwrap_or_default();
                project.sources.extend(list(listed).map(path));
            }
            "AdditionalIncludeDirectories" if is_of_compiler(element) => {
                for one in list(element.text().unwrap_or_default()) {
                    add(&mut project.includes, path(one));
                }
            }
            "PreprocessorDefinitions" if is_of_compiler(element) => {
                for one in list(element.text().unwrap_or_default()) {
                    add(&mut project.definitions, one.to_owned());
                }
            }
            "WppPreprocessorDefinitions" => {
                let definitions = element.text().unwrap_or_default();
                project.uses_recorder |= list(definitions).any(|one| one == RECORDER);
            }
            "MofComp" => {
                let listed = element.attribute("Include").unwrap_or_default();
                project.classes.extend(list(listed).map(path));
            }
            "MessageCompile" => {
                let file = path(element.attribute("Include").unwrap_or_default());
                let base = element
                    .children()
                    .find(|one| one.tag_name().name() == "GeneratedFilesBaseName");
                let base = base.and_then(|one| one.text()).map(str::trim);
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let header = format!("{}.h", base.unwrap_or(&stem));
                project.manifests.push((file, header));
            }
            // Only `MSBuild` knows the header's folder.
            "HeaderOutputFile" => {
                let file = path(element.text().unwrap_or_default().trim());
                let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
                project.class_header = name.or(project.class_header);
            }
            "AdditionalOptions" => {
                let options = element.text().unwrap_or_default().to_ascii_lowercase();
                project.has_integrity_check |=
                    options.split_whitespace().any(|one| one == "/integritycheck");
            }
            "LanguageStandard" => {
                let version = element.text().unwrap_or_default().trim();
                let version = version.strip_prefix("stdcpp").map(|one| format!("c++{one}"));
                project.language = version.or(project.language);
            }
            "DriverType" => project.is_wdm = element.text().unwrap_or_default().trim() == "WDM",
            "WppTraceFunction" => {
                for one in list(element.text().unwrap_or_default()) {
                    let name = one.split('(').next().unwrap_or_default();
                    add(&mut project.trace_functions, name.trim().to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(project)
}

/// Returns whether an element has no condition, or its condition is true for the configuration.
fn applies(node: Node<'_, '_>) -> bool {
    node.attribute("Condition").is_none_or(|condition| {
        !condition.contains("$(Platform)") || condition.contains(CONFIGURATION)
    })
}

fn is_of_compiler(element: Node<'_, '_>) -> bool {
    element.parent().is_some_and(|parent| parent.tag_name().name() == "ClCompile")
}

/// Returns the entries of a list, without entries for inherited values or for folders that only
/// `MSBuild` knows.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .map(str::trim)
        .filter(|one| !one.is_empty() && !one.contains("%(") && !one.contains("$("))
}

fn path(text: &str) -> PathBuf {
    text.replace('\\', "/").into()
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_configuration_are_taken() {
        let project = parse(
            r#"<Project xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
            <PropertyGroup Condition="'$(Configuration)|$(Platform)'=='Release|x64'" Label="Configuration">
              <DriverType>WDM</DriverType>
            </PropertyGroup>
            <ItemDefinitionGroup Condition="'$(Configuration)|$(Platform)'=='Release|x64'">
              <ClCompile>
                <AdditionalIncludeDirectories>%(AdditionalIncludeDirectories);..\inc;$(DDK);.</AdditionalIncludeDirectories>
                <PreprocessorDefinitions>%(PreprocessorDefinitions);A=1;B</PreprocessorDefinitions>
                <WppPreprocessorDefinitions>ENABLE_WPP_RECORDER=1</WppPreprocessorDefinitions>
                <LanguageStandard>stdcpp17</LanguageStandard>
                <WppTraceFunction>TraceEvents(LEVEL,FLAGS,MSG,...);Dump((LEVEL,MSG))</WppTraceFunction>
              </ClCompile>
              <Link><AdditionalOptions>%(AdditionalOptions)  /INTEGRITYCHECK</AdditionalOptions></Link>
              <ResourceCompile>
                <PreprocessorDefinitions>C</PreprocessorDefinitions>
              </ResourceCompile>
            </ItemDefinitionGroup>
            <ItemDefinitionGroup Condition="'$(Configuration)|$(Platform)'=='Debug|x64'">
              <ClCompile><PreprocessorDefinitions>DBG</PreprocessorDefinitions></ClCompile>
            </ItemDefinitionGroup>
            <ItemGroup Condition="exists('x')">
              <MofComp Include="a.mof" />
              <MessageCompile Include="m\e.xml"><GeneratedFilesBaseName>eEvents</GeneratedFilesBaseName></MessageCompile>
              <MessageCompile Include="f.man" />
              <Wmimofck><HeaderOutputFile>.\$(IntDir)\aMof.h</HeaderOutputFile></Wmimofck>
              <ClCompile Include="a.c; ..\b\c.c" />
              <ClCompile Include="d.c" Condition="'$(Platform)'=='ARM64'" />
            </ItemGroup></Project>"#,
        )
        .unwrap();
        assert_eq!(project.sources, [Path::new("a.c"), Path::new("../b/c.c")]);
        assert_eq!(project.includes, [Path::new("../inc"), Path::new(".")]);
        assert_eq!(project.definitions, ["A=1", "B"]);
        let manifests = [("m/e.xml", "eEvents.h"), ("f.man", "f.h")];
        let manifests = manifests.map(|(file, header)| (PathBuf::from(file), header.to_owned()));
        assert_eq!(project.manifests, manifests);
        assert_eq!(project.classes, [Path::new("a.mof")]);
        assert_eq!(project.class_header.as_deref(), Some("aMof.h"));
        assert_eq!(project.trace_functions, ["TraceEvents", "Dump"]);
        assert_eq!(project.language.as_deref(), Some("c++17"));
        assert!(project.is_wdm && project.has_integrity_check);
        let kmdf = parse("<Project><DriverType>KMDF</DriverType></Project>").unwrap();
        assert!(!kmdf.is_wdm && !kmdf.has_integrity_check);
        assert!(project.uses_recorder);
        assert!(parse("<Project>").is_err());
        let library = Project {
            folder: "/lib".into(),
            sources: vec!["e.c".into()],
            includes: vec!["inc".into()],
            definitions: vec!["B".to_owned(), "C".to_owned()],
            ..Project::default()
        };
        let mut project = project;
        project.absorb(library);
        assert_eq!(project.sources.last().unwrap(), Path::new("/lib/e.c"));
        let (own, theirs) = project.includes.split_at(2);
        assert_eq!(own, [Path::new("../inc"), Path::new(".")]);
        assert_eq!(theirs, [Path::new("/lib/inc"), Path::new("/lib")]);
        assert_eq!(project.definitions, ["A=1", "B", "C"]);
    }
}
