//! A model that goes on learning: new points, new labels and corrections without training from the start.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use elias::data::{CsrBuilder, DescribedLabels, LabelSet, Texts};
use elias::{Config, Correction, Dataset, Error, Event, Level, Predictor, Query, Trainer, Updated};

use crate::on_threads;
use crate::random::Random;

const N_KINDS: usize = 40;

/// Texts about kinds from `first` on, each of which has a name and a word of its own.
fn texts(first: usize, n_kinds: usize, n_points: usize) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let mut random = Random::new(5, "updates", point as u64);
        let kind = first + point % n_kinds;
        // The last kinds are written about in words that other kinds have, too.
        let words = match kind < N_KINDS {
            true => format!("kind{kind} word{kind}"),
            false => format!("noise{} word{}", kind % 7, kind % 5),
        };
        let noise = [(); 4].map(|()| format!("noise{}", random.below(60)));
        (
            format!("{words} {}", noise.join(" ")),
            [format!("kind{kind}"), format!("part{}", kind % 3)],
        )
    }))
}

fn go_on(_: &Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn train(settings: &[&str]) -> Predictor {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=4",
        "index.beam_size=3",
        "stage1.epochs=3",
        "stage2.epochs=2",
        "train.batch_size=32",
        "train.label_texts=on",
        "hold_out.min_points=20",
    ];
    let config = small.iter().chain(settings);
    let config = config.fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    });
    let labels: LabelSet = ["named", "kind41"].into_iter().collect();
    let about: Texts = ["noise3 noise4", "noise6 noise7"].into_iter().collect();
    let data = texts(0, N_KINDS, 1200)
        .with_more_labels(DescribedLabels::new(labels, about).unwrap())
        .unwrap();
    Trainer::new(config).train(&data).unwrap()
}

/// A model in a directory that stays until the tests end.
fn saved() -> &'static Path {
    static SAVED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let saved = SAVED.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        train(&[]).save(&path).unwrap();
        (directory, path)
    });
    &saved.1
}

fn load() -> Predictor {
    Predictor::load(saved()).unwrap()
}

fn score(model: &Predictor, level: Level, text: &str, label: &str) -> f32 {
    let query = Query {
        k: 100,
        level,
        ..Query::default()
    };
    let answers = model.predict(text, query).unwrap();
    let found = answers.iter().find(|answer| answer.label == label);
    found.map_or(0.0, |answer| answer.score)
}

/// P@1 in percent.
fn precision(model: &Predictor, data: &Dataset) -> f64 {
    let answers = model.predict_batch(data, 1).unwrap();
    let is_right = |(point, answers): &(usize, elias::Predictions<'_>)| {
        data.label_names(*point)
            .any(|name| name == answers[0].label)
    };
    let n_right = answers.into_iter().enumerate().filter(is_right).count();
    100.0 * n_right as f64 / data.n_points() as f64
}

#[test]
fn an_update_knows_new_labels_and_forgets_no_old_ones() {
    let before = load();
    assert_eq!(before.n_trained_labels() + 2, before.labels().len());
    let (news, old) = (texts(N_KINDS, 4, 200), texts(0, N_KINDS, 200));
    let (after, updated) = load().update(&news, None, &go_on).unwrap();
    let expected = Updated {
        n_points: 200,
        n_corrections: 0,
        n_new_labels: 4,
    };
    assert_eq!(updated, expected);
    assert_eq!(after.n_trained_labels(), before.n_trained_labels() + 4);
    let names = |model: &Predictor| -> Vec<String> {
        model.labels().names().iter().map(str::to_owned).collect()
    };
    // Labels with classifiers keep their numbers; the others move.
    let n = before.n_trained_labels();
    assert_eq!(names(&after)[..n], names(&before)[..n]);
    assert_eq!(
        names(&after)[n..],
        ["kind41", "kind40", "kind42", "kind43", "named"]
    );
    assert_eq!(after.label_counts()[n..], [50, 50, 50, 50, 0]);
    let text = |label: usize| news.texts().unwrap().get(label - N_KINDS).to_owned();
    for kind in N_KINDS..N_KINDS + 4 {
        let (text, name) = (text(kind), format!("kind{kind}"));
        let [own, other] =
            [&text, "kind7 word7 noise1"].map(|text| score(&after, Level::Stage2, text, &name));
        assert!(other < own, "{kind}: {own} {other}");
        // Eight dimensions are too few for the network to tell all new labels apart; words do.
        for level in [Level::Ranker, Level::Ensemble] {
            let other = format!("kind{}", N_KINDS + (kind + 1) % 4);
            let [own, other] = [&name, &other].map(|name| score(&after, level, &text, name));
            assert!(other < own, "{level} {kind}: {own} {other}");
        }
    }
    let [lost, kept] = [&before, &after].map(|model| precision(model, &old));
    assert!(lost - 2.0 <= kept, "{lost} {kept}");
    assert_eq!(after.n_seen(&news), Some(200));

    let directory = tempfile::tempdir().unwrap();
    after.save(directory.path().join("model")).unwrap();
    let loaded = Predictor::load(directory.path().join("model")).unwrap();
    for at in [0, 7] {
        let text = news.texts().unwrap().get(at);
        let answers = |model: &Predictor| format!("{:?}", model.predict(text, 50).unwrap());
        assert_eq!(answers(&loaded), answers(&after));
    }
    // It can go on from there.
    let (again, updated) = loaded
        .update(&texts(N_KINDS + 4, 1, 40), None, &go_on)
        .unwrap();
    assert_eq!(
        (updated.n_new_labels, again.labels().len()),
        (1, after.labels().len() + 1)
    );
}

#[test]
fn an_update_has_the_same_bytes_on_any_number_of_threads() {
    let news = texts(N_KINDS - 2, 5, 150);
    let directory = tempfile::tempdir().unwrap();
    let bytes = [1, 3].map(|n_threads| {
        let path = directory.path().join(n_threads.to_string());
        on_threads(n_threads, || load().update(&news, None, &go_on))
            .unwrap()
            .0
            .save(&path)
            .unwrap();
        std::fs::read(path.join("manifest.json")).unwrap()
    });
    // It has the hash of every file.
    assert!(bytes[0] == bytes[1]);
}

#[test]
fn earlier_data_and_rejected_labels_are_learned_from() {
    let news = texts(N_KINDS, 4, 120);
    let rejected = news.label_set().find("kind41").unwrap();
    let mut rows = CsrBuilder::default();
    for point in 0..news.n_points() {
        let has = news.label_names(point).any(|name| name == "kind41");
        rows.push_row((!has).then_some((rejected.0, 1.0)));
    }
    let rejecting = news
        .clone()
        .with_rejected(rows.finish(news.n_labels()).unwrap())
        .unwrap();
    let earlier = texts(0, N_KINDS, 1200);
    let update = |news: &Dataset| load().update(news, Some(&earlier), &go_on).unwrap().0;
    let (plain, rejecting) = (update(&news), update(&rejecting));
    let text = news.texts().unwrap().get(0);
    let score = |model| score(model, Level::Ensemble, text, "kind41");
    assert!(score(&rejecting) < score(&plain));
    assert!(score(&rejecting) < 1e-4);
}

#[test]
fn corrections_are_learned_for_good() {
    let text = "word7 word8 noise1";
    let mut model = load();
    let correction = |n: usize| Correction {
        text: format!("word7 noise{n}"),
        labels: vec!["kind9".into()],
        not: vec!["kind7".into()],
    };
    let corrections: Vec<Correction> = (0..20).map(correction).collect();
    let before = score(&model, Level::Ranker, text, "kind7");
    model.learn(&corrections).unwrap();
    assert!(
        model
            .learned()
            .iter()
            .map(|learned| &**learned)
            .eq(&corrections)
    );
    // Lowered as a rejected label at once; by its classifier only after an update.
    let learned = score(&model, Level::Ranker, text, "kind7");
    assert!(learned < before, "{learned} {before}");
    let (model, updated) = model.update(&texts(0, N_KINDS, 40), None, &go_on).unwrap();
    assert_eq!((updated.n_corrections, model.learned().len()), (20, 0));
    let updated = score(&model, Level::Ranker, text, "kind7");
    assert!(updated < learned, "{updated} {learned}");
}

#[test]
fn labels_that_came_with_texts_or_come_back_get_classifiers() {
    let mut model = load();
    model.remove_labels(&["kind3".into()]).unwrap();
    // Known by its name, with texts of which only the words were kept.
    model
        .learn_data(&texts(N_KINDS + 1, 1, 30).without("part2"))
        .unwrap();
    let (model, updated) = model.update(&texts(3, 1, 30), None, &go_on).unwrap();
    assert_eq!(updated.n_new_labels, 1);
    assert!(!model.is_retired(model.labels().find("kind3").unwrap()));
    let text = texts(N_KINDS + 1, 1, 1).texts().unwrap().get(0).to_owned();
    assert!(score(&model, Level::Stage2, &text, "kind41") > 0.0);
}

trait Without {
    fn without(self, label: &str) -> Dataset;
}

impl Without for Dataset {
    /// The same points without one of their labels.
    fn without(self, label: &str) -> Dataset {
        let points = (0..self.n_points()).map(|point| {
            let names = self.label_names(point).filter(|name| *name != label);
            let names: Vec<String> = names.map(str::to_owned).collect();
            (self.texts().unwrap().get(point).to_owned(), names)
        });
        Dataset::from_texts(points.collect::<Vec<_>>())
    }
}

#[test]
fn models_that_cannot_go_on_say_why() {
    let model = train(&["train.keep_stage1=true"]);
    let failed = model.update(&texts(0, 2, 4), None, &go_on).err().unwrap();
    assert!(failed.to_string().contains("train.keep_stage1"), "{failed}");
    let model = train(&["final_score.neighbours=false"]);
    let failed = model.update(&texts(0, 2, 4), None, &go_on).err().unwrap();
    assert!(failed.to_string().contains("neighbours"), "{failed}");
}

#[test]
fn a_model_is_changed_by_one_writer_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    load().save(&path).unwrap();
    let correction = Correction {
        text: "word1".into(),
        labels: vec!["kind2".into()],
        not: Vec::new(),
    };
    let files = |path: &Path| {
        let files = std::fs::read_dir(path).unwrap();
        files
            .map(|file| file.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = files(&path);
    // A second writer is refused, a reader sees the old model, and a change that fails changes nothing.
    let failed = Predictor::change_in(&path, |mut model| -> elias::Result<(Predictor, ())> {
        let own = std::slice::from_ref(&correction);
        let refused = Predictor::learn_in(&path, own).err().unwrap().to_string();
        let process = std::process::id();
        assert!(
            refused.contains(&format!("process {process} is writing")),
            "{refused}"
        );
        let refused = Predictor::change_in(&path, |model| Ok::<_, Error>((model, ())));
        assert!(refused.is_err());
        model.remove_labels(&["kind2".into()])?;
        let reader = Predictor::load(&path).unwrap();
        assert!(!reader.is_retired(reader.labels().find("kind2").unwrap()));
        model.remove_labels(&["unheard of".into()])?;
        Ok((model, ()))
    });
    assert!(failed.unwrap_err().to_string().contains("unheard of"));
    assert_eq!(files(&path), before);
    // What one writer added, the next one finds.
    Predictor::learn_in(&path, &[correction]).unwrap();
    let reader = Predictor::load(&path).unwrap();
    let n_learned = Predictor::change_in(&path, |mut model| -> elias::Result<_> {
        model.remove_labels(&["kind5".into()])?;
        let n_learned = model.learned().len();
        Ok((model, n_learned))
    });
    assert_eq!(n_learned.unwrap(), 1);
    let changed = Predictor::load(&path).unwrap();
    let [kind2, kind5] = ["kind2", "kind5"].map(|name| changed.labels().find(name).unwrap());
    assert_eq!(
        changed.label_counts()[kind2.idx()],
        load().label_counts()[kind2.idx()] + 1
    );
    assert!(changed.is_retired(kind5) && !reader.is_retired(kind5));
}
