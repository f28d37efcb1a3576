//! tf-idf features: values against a plain computation, and the same bytes on any number of threads.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::features::{TokenScratch, Vectorizer};
use crate::random::Random;
use proptest::prelude::*;

use crate::on_threads;

/// Texts of made-up words with skewed frequencies, enough for several chunks.
fn fit(texts: &Texts, config: &FeaturesConfig) -> crate::Result<Vectorizer> {
    Vectorizer::fit_transform(texts, config).map(|(vectorizer, _)| vectorizer)
}

fn made_up_texts(n_texts: usize) -> Texts {
    let mut texts = Texts::default();
    for text_idx in 0..n_texts {
        let mut random = Random::new(1, "made-up texts", text_idx as u64);
        let n_words = random.below(120);
        let words = (0..n_words).map(|_| {
            let rank = (1.0 / (random.f32() + 1e-4)) as usize;
            format!("wörd{}", rank * rank % 5000)
        });
        texts.push(&words.collect::<Vec<_>>().join(" "));
    }
    texts
}

/// The rows by the formulas.
fn plain_rows(texts: &[String], config: &FeaturesConfig) -> (Vec<String>, Vec<Vec<(u32, f64)>>) {
    let words_of = |text: &String| -> Vec<String> {
        let words: Vec<String> = text
            .split(' ')
            .filter(|w| !w.is_empty())
            .map(String::from)
            .collect();
        (1..=config.ngrams)
            .flat_map(|n| {
                words
                    .windows(n)
                    .map(|run| run.join(" "))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let mut document_counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut occurrences: BTreeMap<String, usize> = BTreeMap::new();
    for text in texts {
        let words = words_of(text);
        for word in words.iter().collect::<BTreeSet<_>>() {
            *document_counts.entry(word.clone()).or_default() += 1;
        }
        for word in words {
            *occurrences.entry(word).or_default() += 1;
        }
    }
    let mut min_df = config.min_df;
    if document_counts.values().all(|&count| count < min_df) {
        min_df = 1;
    }
    let mut kept: Vec<&String> = document_counts
        .keys()
        .filter(|&word| document_counts[word] >= min_df)
        .collect();
    kept.sort_by_key(|&word| (usize::MAX - occurrences[word], word));
    kept.truncate(config.max_features.unwrap_or(usize::MAX));
    kept.sort();
    let rows = texts.iter().map(|text| {
        let words = words_of(text);
        let mut row = Vec::new();
        for (column, &word) in kept.iter().enumerate() {
            let count = words.iter().filter(|&other| other == word).count();
            if count > 0 {
                let tf = 1.0 + (count as f64).ln();
                let idf =
                    ((1 + texts.len()) as f64 / (1 + document_counts[word]) as f64).ln() + 1.0;
                row.push((column as u32, tf * idf));
            }
        }
        let norm = row
            .iter()
            .map(|(_, weight)| weight * weight)
            .sum::<f64>()
            .sqrt();
        row.into_iter()
            .map(|(column, weight)| (column, weight / norm))
            .collect()
    });
    (
        kept.iter().map(|word| word.to_string()).collect(),
        rows.collect(),
    )
}

proptest! {
    #[test]
    fn rows_are_those_of_the_formulas(
        texts in prop::collection::vec("([a-dé]{1,2} ?){0,12}", 1..12),
        ngrams in 1usize..4, min_df in 1usize..4, max_features in prop::option::of(1usize..8),
    ) {
        let config = FeaturesConfig { ngrams, min_df, max_features, ..FeaturesConfig::default() };
        let (words, expected) = plain_rows(&texts, &config);
        let texts: Texts = texts.iter().collect();
        if words.is_empty() {
            prop_assert!(fit(&texts, &config).is_err());
            return Ok(());
        }
        let (vectorizer, rows) = Vectorizer::fit_transform(&texts, &config).unwrap();
        prop_assert_eq!(vectorizer.vocabulary(), &words.iter().collect::<Texts>());
        prop_assert_eq!(rows.n_rows(), texts.len());
        for (row_idx, row) in expected.iter().enumerate() {
            let (columns, values) = rows.row(row_idx);
            prop_assert_eq!(columns, row.iter().map(|entry| entry.0).collect::<Vec<_>>());
            for (value, entry) in values.iter().zip(row) {
                prop_assert!((f64::from(*value) - entry.1).abs() < 1e-6);
            }
        }
        prop_assert_eq!(&vectorizer.transform(&texts), &rows);
    }

    #[test]
    fn no_text_is_too_odd(texts in prop::collection::vec(".{0,30}", 1..6)) {
        let config = FeaturesConfig { ngrams: 2, ..FeaturesConfig::default() };
        let texts: Texts = texts.iter().collect();
        if let Ok((vectorizer, rows)) = Vectorizer::fit_transform(&texts, &config) {
            prop_assert_eq!(vectorizer.transform(&texts), rows);
        }
    }
}

#[test]
fn rows_are_the_same_bytes_on_1_2_and_7_threads() {
    let texts = made_up_texts(20_000);
    let config = FeaturesConfig::default();
    let (vectorizer, rows) = on_threads(1, || Vectorizer::fit_transform(&texts, &config)).unwrap();
    for n_threads in [2, 7] {
        let (other, other_rows) =
            on_threads(n_threads, || Vectorizer::fit_transform(&texts, &config)).unwrap();
        assert_eq!(other.vocabulary(), vectorizer.vocabulary());
        assert_eq!(other.idf(), vectorizer.idf());
        assert_eq!(other_rows, rows);
        assert_eq!(on_threads(n_threads, || vectorizer.transform(&texts)), rows);
    }
}

#[test]
fn values_are_those_of_scikit_learn() {
    // scikit-learn 1.9.1: TfidfVectorizer(sublinear_tf=True).fit_transform(texts), columns
    // brown, cat, dog, lazy, the, über. It skips words of one letter; these texts have none.
    let texts: Texts = ["The the brown dog", "the lazy CAT; dog", "Über cat cat", ""]
        .iter()
        .collect();
    let config = FeaturesConfig {
        min_df: 1,
        ..FeaturesConfig::default()
    };
    let (vectorizer, rows) = Vectorizer::fit_transform(&texts, &config).unwrap();
    let words: Vec<&str> = vectorizer.vocabulary().iter().collect();
    assert_eq!(words, ["brown", "cat", "dog", "lazy", "the", "über"]);
    let expected: [&[(u32, f32)]; 4] = [
        &[(0, 0.54204389), (2, 0.42735363), (4, 0.723_572_6)],
        &[
            (1, 0.46580855),
            (2, 0.46580855),
            (3, 0.59081908),
            (4, 0.46580855),
        ],
        &[(1, 0.800_337_3), (5, 0.599_55)],
        &[],
    ];
    for (row_idx, row) in expected.iter().enumerate() {
        let (columns, values) = rows.row(row_idx);
        assert_eq!(columns, row.iter().map(|entry| entry.0).collect::<Vec<_>>());
        for (value, entry) in values.iter().zip(*row) {
            assert!(
                (value - entry.1).abs() < 1e-6,
                "row {row_idx}: {value} for {entry:?}"
            );
        }
    }
}

#[test]
fn texts_without_a_known_word_give_empty_rows() {
    let vectorizer = fit(
        &["a b", "b c", "c a"].iter().collect(),
        &FeaturesConfig::default(),
    )
    .unwrap();
    let rows = vectorizer.transform(&["", "unknown", "!?"].iter().collect());
    assert_eq!((rows.n_rows(), rows.nnz(), rows.n_cols()), (3, 0, 3));
    let mut row = vec![(7, 7.0)];
    vectorizer.transform_one("nothing known", &mut TokenScratch::default(), &mut row);
    assert!(row.is_empty());
}

#[test]
fn words_rarer_than_min_df_are_kept_if_there_are_no_others() {
    let vectorizer = fit(&["one", "two"].iter().collect(), &FeaturesConfig::default()).unwrap();
    let words: Vec<&str> = vectorizer.vocabulary().iter().collect();
    assert_eq!(words, ["one", "two"]);
}

#[test]
fn a_vectoriser_from_its_parts_gives_the_same_rows_and_invalid_parts_are_errors() {
    let texts = made_up_texts(50);
    let (vectorizer, rows) = Vectorizer::fit_transform(&texts, &FeaturesConfig::default()).unwrap();
    let parts = |words: &Texts, idf: &[f32]| {
        Vectorizer::from_parts(words.clone(), idf.to_vec(), &FeaturesConfig::default())
    };
    let loaded = parts(vectorizer.vocabulary(), vectorizer.idf()).unwrap();
    assert_eq!(loaded.transform(&texts), rows);

    let check_error = |words: &[&str], idf: &[f32], part_of_message: &str| {
        let error = parts(&words.iter().collect(), idf).unwrap_err().to_string();
        assert!(error.contains(part_of_message), "{error}");
    };
    check_error(&["a"], &[], "1 words but 0 idf weights");
    check_error(&["b", "a"], &[1.0, 1.0], "word 1 is \"a\"");
    check_error(&["a", "a"], &[1.0, 1.0], "word 1 is \"a\"");
    check_error(&["a"], &[f32::NAN], "idf of word 0 is NaN");
    check_error(&["a"], &[0.0], "idf of word 0 is 0");
    check_error(&["a", "b"], &[1.0, f32::MAX], "idf of word 1 is 3402823");
}

#[test]
fn invalid_settings_and_texts_without_words_are_errors() {
    let check_error = |config: FeaturesConfig, texts: &[&str], part_of_message: &str| {
        let error = fit(&texts.iter().collect(), &config)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part_of_message), "{error}");
    };
    let config = FeaturesConfig::default();
    check_error(
        FeaturesConfig {
            ngrams: 0,
            ..config.clone()
        },
        &["a"],
        "features.ngrams: found 0",
    );
    check_error(
        FeaturesConfig {
            min_df: 0,
            ..config.clone()
        },
        &["a"],
        "features.min_df: found 0",
    );
    check_error(
        FeaturesConfig {
            max_features: Some(0),
            ..config.clone()
        },
        &["a"],
        "features.max_features: found 0",
    );
    check_error(
        config.clone(),
        &["", "!"],
        "none of the 2 texts contains a word",
    );
    check_error(config, &[], "none of the 0 texts");
}
