//! Corrections: learned in memory, from the journal of a model, and by several processes.

use elias::{Correction, Error, Learner, Prediction, Predictor};

use crate::labels::{TEXT, load};

/// A copy of the model, and a correction of it.
fn copied() -> (tempfile::TempDir, std::path::PathBuf, Correction) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    load().save(&path).unwrap();
    let correction = Correction {
        text: TEXT.into(),
        labels: vec!["kind30x".into(), "id:9".into()],
        not: vec!["kind3x".into()],
    };
    (directory, path, correction)
}

fn journal(model: &std::path::Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(model)
        .unwrap()
        .map(|file| file.unwrap().path());
    let is_journal = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    files.find(is_journal).unwrap()
}

#[test]
fn corrections_are_heeded_by_whoever_loads_the_model() {
    let (_directory, path, correction) = copied();
    let score = |model: &Predictor, label: &str| {
        let answers = model.predict(TEXT, 63).unwrap();
        let answer = answers.iter().find(|answer| answer.label == label);
        answer.map_or(0.0, |answer| answer.score)
    };
    let before = Predictor::load(&path).unwrap();
    Predictor::learn_in(&path, std::slice::from_ref(&correction)).unwrap();
    let after = Predictor::load(&path).unwrap();
    assert!(score(&before, "kind3x") > 0.1);
    assert!(score(&after, "kind3x") < 0.001);
    for label in ["kind30x", "id:9"] {
        assert!(score(&before, label) < score(&after, label), "{label}");
    }
    // Other texts are answered as before.
    let other = "kind40x noise70 noise71";
    assert_eq!(
        before.predict(other, 1).unwrap()[0].label,
        after.predict(other, 1).unwrap()[0].label
    );
    // Saving makes them part of the files, and ends the journal.
    let answers = after.predict(TEXT, 63).unwrap();
    let kept = journal(&path);
    after.replace(&path).unwrap();
    assert!(!kept.exists());
    let saved = Predictor::load(&path).unwrap();
    assert!(saved.learned().is_empty());
    assert_eq!(saved.predict(TEXT, 63).unwrap(), answers);
    // What cannot be learned is not kept.
    let unknown = Correction {
        labels: vec!["unheard of".into()],
        ..correction
    };
    assert!(Predictor::learn_in(&path, &[unknown]).is_err());
    assert!(
        std::fs::read_dir(&path)
            .unwrap()
            .all(|file| file.unwrap().path() != kept)
    );
}

#[test]
fn a_damaged_journal_is_an_error_that_names_the_line() {
    let (_directory, path, correction) = copied();
    for n in 0..4 {
        let text = format!("{TEXT} noise{n}");
        Predictor::learn_in(
            &path,
            &[Correction {
                text,
                ..correction.clone()
            }],
        )
        .unwrap();
    }
    let journal = journal(&path);
    let whole = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 4);
    let check = |text: String, line: usize| {
        std::fs::write(&journal, &text).unwrap();
        let error = Predictor::load(&path).err().unwrap().to_string();
        assert!(error.contains(&format!("line {line} ")), "{error}");
        assert!(Predictor::learn_in(&path, std::slice::from_ref(&correction)).is_err());
        assert_eq!(std::fs::read_to_string(&journal).unwrap(), text);
    };
    let flipped = lines[1].replace("noise1", "noise7");
    check([lines[0], &flipped, lines[2]].concat(), 2);
    check([lines[0], lines[0], lines[1]].concat(), 2);
    check([lines[1], lines[0]].concat(), 1);
    check([lines[0], lines[2], lines[3]].concat(), 2);
    check([lines[0], &lines[1][30..], lines[2]].concat(), 2);
    check(["\n", lines[0]].concat(), 1);
    // A correction of which nobody was told: the program died while it was written.
    for n_bytes in [1, 20, lines[3].len() - 1] {
        std::fs::write(
            &journal,
            [lines[0], lines[1], lines[2], &lines[3][..n_bytes]].concat(),
        )
        .unwrap();
        assert!(Predictor::load(&path).is_ok());
    }
    Predictor::learn_in(&path, std::slice::from_ref(&correction)).unwrap();
    let again = std::fs::read_to_string(&journal).unwrap();
    assert!(again.starts_with(&lines[..3].concat()) && again.matches('\n').count() == 4);
    Predictor::load(&path).unwrap();
}

fn corrections(numbers: std::ops::Range<usize>) -> Vec<Correction> {
    let correction = |number: usize| Correction {
        text: format!("kind{}x noise{number} noise{}", number % 40, number + 3),
        labels: vec![format!("kind{}x", (number + 1) % 40)],
        not: match number % 3 {
            0 => vec![format!("kind{}x", number % 40)],
            _ => Vec::new(),
        },
    };
    numbers.map(correction).collect()
}

/// Answers to the texts of corrections, and to others.
fn all_answers(model: &Predictor) -> Vec<Vec<(String, u32)>> {
    let texts: Vec<String> = corrections(0..60).into_iter().map(|of| of.text).collect();
    let answers = model.predict_batch(&texts, 63).unwrap();
    let bits = |answer: &Prediction<'_>| (answer.label.to_owned(), answer.score.to_bits());
    let rows = answers.iter().map(|row| row.iter().map(bits).collect());
    rows.collect()
}

#[test]
fn corrections_learned_one_by_one_together_or_from_the_journal_give_the_same_bits() {
    let (_directory, path, _) = copied();
    let untouched = Predictor::load(&path).unwrap();
    let before = all_answers(&untouched);
    let mut together = untouched.clone();
    together.learn(&corrections(0..40)).unwrap();
    let mut one_by_one = untouched.clone();
    for correction in corrections(0..40) {
        one_by_one.learn(&[correction]).unwrap();
    }
    let mut learner = Learner::load(&path).unwrap();
    for start in (0..40).step_by(8) {
        learner.learn(&corrections(start..start + 8)).unwrap();
    }
    let expected = all_answers(&together);
    assert_ne!(expected, before);
    assert_eq!(all_answers(&untouched), before);
    assert_eq!(all_answers(&one_by_one), expected);
    assert_eq!(all_answers(learner.predictor()), expected);
    assert_eq!(all_answers(&Predictor::load(&path).unwrap()), expected);
    let saved = |model: &Predictor, name: &str| {
        let path = path.with_file_name(name);
        model.save(&path).unwrap();
        assert_eq!(all_answers(&Predictor::load(&path).unwrap()), expected);
        std::fs::read(path.join("manifest.json")).unwrap()
    };
    let of_together = saved(&together, "together");
    assert_eq!(saved(&one_by_one, "one by one"), of_together);
    assert_eq!(saved(learner.predictor(), "learner"), of_together);
    assert_eq!(learner.predictor().learned().len(), 40);
    let learned = learner.predictor().learned().iter();
    let learned: Vec<Correction> = learned.map(|of| (**of).clone()).collect();
    assert_eq!(learned, corrections(0..40));
}

#[test]
fn learners_of_one_directory_learn_what_the_others_do() {
    let (_directory, path, _) = copied();
    let mut first = Learner::load(&path).unwrap();
    let mut second = Learner::load(&path).unwrap();
    assert!(!second.follow().unwrap());
    first.learn(&corrections(0..5)).unwrap();
    second.learn(&corrections(5..9)).unwrap();
    assert!(first.follow().unwrap() && !first.follow().unwrap());
    let loaded = all_answers(&Predictor::load(&path).unwrap());
    for learner in [&first, &second] {
        assert_eq!(learner.predictor().learned().len(), 9);
        assert_eq!(all_answers(learner.predictor()), loaded);
    }
    // A damaged line is not learned, and what was learned stays.
    let journal = journal(&path);
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, [&whole[..], b"0123456789abcdef {}\n"].concat()).unwrap();
    assert!(first.follow().is_err());
    assert!(first.learn(&corrections(9..10)).is_err());
    assert_eq!(all_answers(first.predictor()), loaded);
    std::fs::write(&journal, &whole[..whole.len() - 9]).unwrap();
    assert!(first.learn(&corrections(9..10)).is_err());
    std::fs::write(&journal, &whole).unwrap();
    first.learn(&corrections(9..10)).unwrap();
    assert_eq!(Predictor::load(&path).unwrap().learned().len(), 10);
}

#[test]
fn a_learner_of_a_replaced_model_learns_no_more() {
    let (_directory, path, correction) = copied();
    let mut learner = Learner::load(&path).unwrap();
    let mut changed = Predictor::load(&path).unwrap();
    changed.remove_labels(&["kind30x".into()]).unwrap();
    changed.replace(&path).unwrap();
    let error = learner.learn(std::slice::from_ref(&correction));
    assert!(matches!(error, Err(Error::InUse { .. })), "{error:?}");
    assert_eq!(Predictor::load(&path).unwrap().learned().len(), 0);
}

#[test]
fn corrections_that_say_nothing_or_contradict_themselves_are_refused() {
    let mut model = load();
    let mut check = |labels: &[&str], not: &[&str], expected: &str| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let correction = Correction {
            text: TEXT.into(),
            labels: names(labels),
            not: names(not),
        };
        let error = model.check_corrections(std::slice::from_ref(&correction));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(model.learn(&[correction]).is_err());
    };
    check(&[], &[], "neither accepted nor rejected");
    check(&["kind3x"], &["kind4x", "kind3x"], "among the accepted");
    check(&["kind3x"], &["unheard of"], "unheard of");
}
