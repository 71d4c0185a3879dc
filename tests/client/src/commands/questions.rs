//! `questions`.

use std::{collections::BTreeMap, fs, path::Path};

use etw_questions::{Answer, Answers, Host, Question, ask_some, questions};

use crate::{arguments::QuestionOptions, error::Failure, process, questions_host::Windows};

/// Returns the questions with these ids, or all if there is no id.
fn chosen(ids: &[String]) -> Result<Vec<&'static Question>, Failure> {
    if ids.is_empty() {
        return Ok(questions().collect());
    }
    ids.iter()
        .map(|id| {
            questions()
                .find(|question| question.id == id)
                .ok_or_else(|| Failure::NoQuestion(id.clone()))
        })
        .collect()
}

fn write(path: &Path, answers: &Answers) -> Result<(), Failure> {
    fs::write(path, answers.write()?).map_err(|error| Failure::Write {
        path: path.to_owned(),
        error,
    })
}

/// Asks questions and writes the answers. The file is written after each answer, so that it has those
/// before a bugcheck.
pub fn run(options: &QuestionOptions) -> Result<(), Failure> {
    let mut chosen = chosen(&options.ids)?;
    chosen.sort_by_key(|question| question.risky);
    if options.list {
        for question in chosen {
            println!(
                "{:<36} {} ({})",
                question.id,
                question.text,
                question.about.join(", ")
            );
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
        answers: BTreeMap::new(),
    };
    let mut not_asked = 0;
    for question in &chosen {
        println!("{:<36} asking ...", question.id);
        let one = ask_some(&mut host, std::iter::once(*question), &mut |_, _| {})?;
        for (id, answer) in one.answers {
            if let Answer::NotAsked(why) = &answer {
                println!("{id:<36} not asked: {why}");
                not_asked += 1;
            }
            answers.answers.insert(id, answer);
        }
        write(&options.out, &answers)?;
    }
    println!("{}", options.out.display());
    if not_asked == chosen.len() {
        return Err(Failure::NotAsked {
            not_asked,
            asked: chosen.len(),
        });
    }
    Ok(())
}
