//! `enable`, `disable`, `capture-state`, `group`, `disallow`.

use clap::ArgMatches;
use etl_file::Guid;
use etw_scenarios::Source;

use crate::{
    arguments::{filter, required, source},
    error::Failure,
    session::Session,
};

/// Controls a session that runs.
pub fn run(command: &str, arguments: &ArgMatches) -> Result<(), Failure> {
    let name = required::<String>(arguments, "session")?;
    let session = Session::named(name)?;
    match command {
        "enable" => {
            let source = source(arguments);
            session.enable(source, &filter(arguments)?)?;
            println!("session \"{name}\" enables {source}");
        }
        "disable" => {
            let source = source(arguments);
            session.disable(source)?;
            println!("session \"{name}\" disables {source}");
        }
        "capture-state" => {
            let source = source(arguments);
            session.capture_state(source)?;
            println!("{source} was asked for its state, for session \"{name}\"");
        }
        "group" => {
            let group = Source::Group(etw_scenarios::group());
            if arguments.get_flag("off") {
                session.disable(group)?;
                println!("session \"{name}\" disables {group}");
            } else {
                session.enable(group, &filter(arguments)?)?;
                println!("session \"{name}\" enables {group}");
            }
        }
        _ => disallow(name, &session, arguments)?,
    }
    Ok(())
}

fn disallow(name: &str, session: &Session, arguments: &ArgMatches) -> Result<(), Failure> {
    let providers: Vec<Guid> = arguments
        .get_many("providers")
        .unwrap_or_default()
        .copied()
        .collect();
    if !providers.is_empty() || arguments.get_flag("none") {
        session.disallow(&providers)?;
    }
    let disallowed = session.disallowed()?;
    println!(
        "session \"{name}\" disallows {} providers",
        disallowed.len()
    );
    for provider in disallowed {
        println!("  {provider}");
    }
    Ok(())
}
