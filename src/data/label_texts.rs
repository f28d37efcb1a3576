//! Label names as texts to learn from.

use std::collections::HashSet;

use crate::data::{Dataset, LabelSet, Texts};
use crate::ids::LabelId;
use crate::random::Random;

/// Points whose labels are compared with their texts.
const N_COMPARED: usize = 3000;
/// Least difference between the shares of its own labels' names and of other labels' names that a text contains.
const MIN_DIFFERENCE: f64 = 0.05;

/// The words of every label's name; empty where it does not read like words.
pub(crate) fn texts_of_names(labels: &LabelSet) -> Texts {
    labels.names().iter().map(words_of_name).collect()
}

/// The words of a name: codes (`gnd:4126999-1`, `http://…`) are left out, identifiers (`read_csv`, `DataFrame`) also cut into words.
pub(in crate::data) fn words_of_name(name: &str) -> String {
    let is_code = |part: &&str| {
        let n_digits = part.chars().filter(char::is_ascii_digit).count();
        let n_letters = part.chars().filter(|c| c.is_alphabetic()).count();
        n_letters <= n_digits || part.contains("://")
    };
    let mut words = String::new();
    for part in name.split_whitespace().filter(|part| !is_code(part)) {
        words.push_str(part);
        words.push(' ');
        let cut = cut_identifier(part);
        if cut != part {
            words.push_str(&cut);
            words.push(' ');
        }
    }
    words.truncate(words.trim_end().len());
    words
}

/// `read_csv` → `read csv`, `DataFrame` → `Data Frame`.
fn cut_identifier(part: &str) -> String {
    let mut cut = String::with_capacity(part.len() + 4);
    let mut before = ' ';
    for character in part.chars() {
        if before.is_lowercase() && character.is_uppercase() {
            cut.push(' ');
        }
        cut.push(if character == '_' { ' ' } else { character });
        before = character;
    }
    cut
}

/// Whether texts contain more of the names of their labels than of other labels.
pub(crate) fn names_are_informative(data: &Dataset, names: &Texts, seed: u64) -> bool {
    let Some(texts) = data.texts() else {
        return false;
    };
    let is_labelled = |point: &usize| !data.labels().row(*point).0.is_empty();
    let mut points: Vec<usize> = (0..data.n_points()).filter(is_labelled).collect();
    let mut random = Random::new(seed, "label names", 0);
    random.shuffle(&mut points);
    points.truncate(N_COMPARED);
    let Some(&last) = points.last() else {
        return false;
    };
    let (mut n_pairs, mut difference) = (0, 0.0);
    let mut other = last;
    for &point in &points {
        let text = texts.get(point).to_lowercase();
        let words: HashSet<&str> = words_of(&text).collect();
        let mut one_of = |point: usize| {
            let labels = data.labels().row(point).0;
            LabelId(labels[random.below(labels.len())])
        };
        let own = contained(names.get(one_of(point).idx()), &words);
        let foreign = contained(names.get(one_of(other).idx()), &words);
        if let Some((own, foreign)) = own.zip(foreign) {
            n_pairs += 1;
            difference += own - foreign;
        }
        other = point;
    }
    let n_needed = points.len() / 20;
    n_pairs > n_needed && difference >= MIN_DIFFERENCE * f64::from(n_pairs as u32)
}

/// The share of a name's words that a text has; `None` without words.
fn contained(name: &str, text: &HashSet<&str>) -> Option<f64> {
    let name = name.to_lowercase();
    let (mut n_words, mut n_found) = (0u32, 0u32);
    for word in words_of(&name) {
        n_words += 1;
        n_found += u32::from(text.contains(word));
    }
    (n_words > 0).then(|| f64::from(n_found) / f64::from(n_words))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_codes_and_identifiers_are_cut() {
        let names = [
            (
                "gnd:7862975-5 High-dimensional data",
                "High-dimensional data",
            ),
            ("gnd:7864395-8", ""),
            ("Science fiction", "Science fiction"),
            (
                "DataFrame.read_csv",
                "DataFrame.read_csv Data Frame.read csv",
            ),
            ("python3-numpy", "python3-numpy"),
            ("17", ""),
            ("http://id.example/subjects/pears", ""),
        ];
        for (name, words) in names {
            assert_eq!(words_of_name(name), words);
        }
    }

    #[test]
    fn names_are_informative_where_texts_contain_them() {
        let text = |label: usize| (format!("all about word{label}x"), [format!("word{label}x")]);
        let informative = Dataset::from_texts((0..50).map(text));
        let uninformative = Dataset::from_texts((0..50).map(|at| (text(at + 100).0, text(at).1)));
        let is_informative =
            |data: &Dataset| names_are_informative(data, &texts_of_names(data.label_set()), 1);
        assert!(is_informative(&informative));
        assert!(!is_informative(&uninformative));
        assert!(!is_informative(&Dataset::from_texts([("", [""; 0])])));
    }
}
