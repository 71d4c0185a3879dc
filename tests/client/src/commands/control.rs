//! `enable`, `disable`, `capture-state`, `group`, `disallow`.

use etw_scenarios::Source;
use etw_session::session::Session;

use crate::{
    arguments::{DisallowOptions, EnableOptions, GroupOptions, SourceInSession},
    error::Failure,
};

/// Enables a provider or group in a running session.
pub fn enable(options: &EnableOptions) -> Result<(), Failure> {
    let (name, source) = (&options.target.session, options.target.target.source());
    Session::named(name)?.enable(source, &options.filter.filter())?;
    println!("session \"{name}\" enables {source}");
    Ok(())
}

/// Disables a provider or group in a running session.
pub fn disable(options: &SourceInSession) -> Result<(), Failure> {
    let (name, source) = (&options.session, options.target.source());
    Session::named(name)?.disable(source)?;
    println!("session \"{name}\" disables {source}");
    Ok(())
}

/// Requests that a provider or group write its state to a running session.
pub fn capture_state(options: &SourceInSession) -> Result<(), Failure> {
    let (name, source) = (&options.session, options.target.source());
    Session::named(name)?.capture_state(source)?;
    println!("session \"{name}\" requested the state of {source}");
    Ok(())
}

/// Enables or disables the sample driver's group in a running session.
pub fn group(options: &GroupOptions) -> Result<(), Failure> {
    let name = &options.session;
    let session = Session::named(name)?;
    let group = Source::Group(etw_scenarios::group());
    if options.off {
        session.disable(group)?;
        println!("session \"{name}\" disables {group}");
    } else {
        session.enable(group, &options.filter.filter())?;
        println!("session \"{name}\" enables {group}");
    }
    Ok(())
}

/// Sets the disallow list of a running session if one is given, and shows the list.
pub fn disallow(options: &DisallowOptions) -> Result<(), Failure> {
    let name = &options.session;
    let session = Session::named(name)?;
    if !options.providers.is_empty() || options.none {
        session.disallow(&options.providers)?;
    }
    let disallowed = session.disallowed()?;
    println!("session \"{name}\" disallows {} providers", disallowed.len());
    for provider in disallowed {
        println!("  {provider}");
    }
    Ok(())
}
