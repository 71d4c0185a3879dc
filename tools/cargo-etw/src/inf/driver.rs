//! The facts in an INF file about the driver, from the driver's metadata, declarations and image.

use std::path::Path;

use anyhow::{Result, ensure};
use driver_package::inf::{
    AutoLogger, Channel, ChannelKind, ChannelSettings, Framework, OwnChannel, Provider,
};
use etw_manifest::Manifest;
use wdk_etw_schema::Encoding;

use crate::{
    manifest,
    selected_driver::{self, SelectedDriver},
};

/// The framework version of a driver whose metadata does not specify one; wdk-build uses the same
/// version.
const FRAMEWORK: Framework = Framework { major: 1, minimum: 31, target: 31 };
/// The source of a channel's settings in messages, unless a declaration names a manifest.
pub const DECLARATION: &str = "its declaration";

/// Returns the driver's description, without a final period.
pub fn description(driver: &SelectedDriver) -> String {
    let text = driver.driver.description.trim().trim_end_matches('.');
    if text.is_empty() { format!("{} driver", driver.driver.package) } else { text.to_owned() }
}

/// Returns the framework's version in the driver's metadata.
pub fn framework(driver: &SelectedDriver) -> Framework {
    let named = driver.driver.framework;
    named.map_or(FRAMEWORK, |named| Framework {
        major: named.major,
        minimum: named.minimum,
        target: named.target,
    })
}

/// Returns the driver's providers: from its declarations or, if it has none, from its image's
/// resources. Returns `None` if neither is known.
pub fn providers(driver: &SelectedDriver, image: Option<&Path>) -> Result<Option<Vec<Provider>>> {
    let declarations = driver.declarations()?;
    let declared: Vec<_> = declarations.iter().flat_map(|one| &one.providers).collect();
    if !declared.is_empty() {
        // A declaration's channels are in the manifest generated from it, or in the manifest that
        // it names.
        let manifest = if declared.iter().any(|provider| !provider.channels.is_empty()) {
            manifest::of_declarations(&declarations, &driver.installed())?
        } else {
            Manifest::default()
        };
        let providers = declared.iter().map(|provider| {
            let described = manifest.providers.iter().find(|one| one.guid == provider.guid);
            Provider {
                guid: provider.guid.to_string(),
                name: provider.name.clone(),
                has_resources: provider
                    .events
                    .iter()
                    .any(|event| event.encoding == Encoding::Manifest),
                channels: described.map(channels).unwrap_or_default(),
                described_by: provider
                    .manifest
                    .as_ref()
                    .map_or_else(|| DECLARATION.to_owned(), |file| format!("the manifest {file}")),
                autologger: provider.autologger.as_ref().map(autologger),
            }
        });
        return Ok(Some(providers.collect()));
    }
    let described = image.and_then(|image| selected_driver::described(image).ok());
    Ok(described.map(|manifest| {
        let providers = manifest.providers.iter().map(|provider| Provider {
            guid: provider.guid.to_string(),
            name: provider.name.clone(),
            has_resources: !provider.events.is_empty(),
            channels: channels(provider),
            described_by: "its image".to_owned(),
            autologger: None,
        });
        providers.collect()
    }))
}

/// Returns a session that a provider declares.
fn autologger(declared: &wdk_etw_schema::AutoLogger) -> AutoLogger {
    AutoLogger {
        session: declared.session.clone(),
        guid: declared.guid.to_string(),
        file: declared.file.clone(),
        values: declared.values.clone(),
        provider_values: declared.provider_values.clone(),
    }
}

/// Returns the channels that a provider lists in its manifest.
fn channels(provider: &etw_manifest::Provider) -> Vec<Channel> {
    // Resources list only the channels that events use.
    let listed = provider.channels.iter().filter(|one| one.declared || !one.imported);
    listed
        .map(|channel| Channel {
            name: channel.name.clone(),
            own: (!channel.imported)
                .then(|| OwnChannel { value: channel.value, settings: settings(channel) }),
        })
        .collect()
}

/// Returns a channel's settings, or `None` if its type is unknown, as in an image's resources.
fn settings(channel: &etw_manifest::Channel) -> Option<ChannelSettings> {
    let kind = ChannelKind::ALL.into_iter().find(|kind| kind.name() == channel.kind)?;
    Some(ChannelSettings {
        kind,
        enabled: channel.enabled,
        isolation: channel.isolation.clone(),
        access: channel.access.clone(),
        max_size: channel.logging.max_size,
        retention: channel.logging.retention,
        auto_backup: channel.logging.auto_backup,
    })
}

/// Returns the driver's four-part version, derived from its package's version.
pub fn driver_version(version: &str) -> Result<String> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    ensure!(
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u16>().is_ok()),
        "the package's version {version} is not valid for a driver: each number must be at most 65,535"
    );
    Ok(format!("{numbers}.0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packages_version_is_a_drivers() {
        assert_eq!(driver_version("3.1.4").unwrap(), "3.1.4.0");
        assert_eq!(driver_version("3.1.4-rc.1+x").unwrap(), "3.1.4.0");
        let error = driver_version("70000.1.0").unwrap_err().to_string();
        assert!(error.contains("70000.1.0"), "{error}");
    }
}
