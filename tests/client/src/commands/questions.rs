//! `questions`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
};

use etw_questions::{Answer, Answers, Host, Question, ask_saving, questions};

use crate::{arguments::QuestionOptions, error::Failure, process, questions_host::Windows};

fn find(id: &str) -> Result<&'static Question, Failure> {
    questions().find(|question| question.id == id).ok_or_else(|| Failure::NoQuestion(id.to_owned()))
}

/// Returns the questions with these ids, or all questions without `except` if no id is given. Risky
/// questions come last.
fn chosen(ids: &[String], except: &[String]) -> Result<Vec<&'static Question>, Failure> {
    let mut chosen: Vec<&'static Question> = if ids.is_empty() {
        questions().collect()
    } else {
        ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    for id in except {
        find(id)?;
    }
    chosen.retain(|question| !except.iter().any(|id| id == question.id));
    chosen.sort_by_key(|question| question.risky);
    Ok(chosen)
}

/// Reads the answers in a file.
fn former(path: &Path) -> Result<BTreeMap<String, Answer>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::ReadAnswers { path: path.to_owned(), error })?;
    Ok(Answers::read(&text)?.answers)
}

/// Asks questions and writes the answers. The file is written after each answer, so that it contains
/// the answers before a bugcheck.
pub fn run(options: &QuestionOptions) -> Result<(), Failure> {
    let chosen = chosen(&options.ids, &options.except)?;
    if options.list {
        for question in chosen {
            println!("{:<36} {} ({})", question.id, question.text, question.about.join(", "));
        }
        return Ok(());
    }
    process::require_windows()?;
    if !process::is_elevated()? {
        eprintln!("note: this prompt is not elevated, so Windows will refuse to start sessions");
    }
    let mut host = Windows::new(options.traces.clone())?;
    let mut answers = Answers {
        system: host.system()?,
        answers: match &options.with {
            Some(path) => former(path)?,
            None => BTreeMap::new(),
        },
    };
    let mut not_asked = 0;
    ask_saving(
        &mut host,
        chosen.iter().copied(),
        &mut answers,
        &mut |answers| {
            answers
                .save(&options.out)
                .map_err(|error| Failure::Write { path: options.out.clone(), error })
        },
        &mut |question, answer| match answer {
            None => {
                println!("{:<36} asking ...", question.id);
                // The file on disk survives a bugcheck. If it cannot be written, the answers are
                // still returned.
                let _ = io::stdout().flush();
            }
            Some(Answer::NotAsked(why)) => {
                println!("{:<36} not asked: {why}", question.id);
                not_asked += 1;
            }
            Some(Answer::Found(_)) => {}
        },
    )?;
    println!("{}", options.out.display());
    if not_asked == chosen.len() {
        return Err(Failure::NotAsked { not_asked, asked: chosen.len() });
    }
    Ok(())
}
