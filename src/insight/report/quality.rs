//! The sections for whoever uses the model: how good its answers are, at which threshold, and what the data are like.

use std::fmt::Write;

use super::data::ReportData;
use super::sections::figure;
use super::wording::count;
use super::{figures, wording};
use crate::metrics::AtThreshold;

/// Labels with fewer training points are rare.
const RARE: u32 = 5;

/// The answers in plain words, and the curve of thresholds.
pub(super) fn quality(data: &ReportData) -> String {
    let Some(last) = data.test.stages.last() else {
        return String::new();
    };
    let metric = |name: &str| last.metrics.get(name).copied().unwrap_or(f64::NAN);
    let mut html = String::from("<ul>");
    for words in [
        format!(
            "The first answer is right for <b>{:.1} %</b> of the test texts (P@1).",
            metric("p@1")
        ),
        format!(
            "Of the first five answers, <b>{:.1} %</b> are right (P@5).",
            metric("p@5")
        ),
        format!(
            "Of the true labels, <b>{:.1} %</b> are among the first ten answers (R@10) and <b>{:.1} %</b> among the first hundred (R@100).",
            metric("r@10"),
            metric("r@100")
        ),
    ] {
        let _ = write!(html, "<li>{words}</li>");
    }
    html.push_str("</ul>\n");
    let Some(thresholds) = &data.test.thresholds else {
        html.push_str("<p class=\"soft\">Scores of this model are not between 0 and 1, so there is no threshold to choose.</p>\n");
        return html;
    };
    let kind = if data.test.reliability.is_some() {
        "probability"
    } else {
        "score"
    };
    let best = &thresholds.best;
    let _ = write!(
        html,
        "<p>With a threshold, a text gets as many answers as are sure enough: a lower one finds more true labels, a higher \
         one is right more often. The highest F1 of the test texts is at a {kind} of <b>{:.2}</b>: {:.1} % of those answers are \
         right, and {:.1} % of the true labels are among them.</p>\n<div class=\"figures\">{}</div>\n",
        best.threshold,
        best.precision,
        best.recall,
        figure(
            &figures::thresholds(&thresholds.curve, kind),
            "Precision, recall and F1 of all answers of at least a threshold."
        )
    );
    html.push_str("<div class=\"scroll\"><table><thead><tr><th>threshold</th><th>precision</th><th>recall</th><th>F1</th><th>F1 by label</th></tr></thead><tbody>");
    for at in thresholds.curve.iter().skip(1).step_by(2) {
        let class = if at.threshold == best.threshold {
            " class=\"best\""
        } else {
            ""
        };
        let AtThreshold {
            threshold,
            precision,
            recall,
            micro_f1,
            macro_f1,
        } = at;
        let _ = write!(
            html,
            "<tr{class}><td>{threshold:.2}</td><td>{precision:.1}</td><td>{recall:.1}</td><td>{micro_f1:.1}</td><td>{macro_f1:.1}</td></tr>"
        );
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// Sizes, repeated texts, and labels without examples.
pub(super) fn data_section(data: &ReportData) -> String {
    let known = |label: usize| data.label_counts.get(label).copied().unwrap_or(0);
    let pairs = data.test.labels.iter().enumerate();
    let unseen: Vec<u32> = pairs
        .filter(|&(label, counts)| known(label) == 0 && counts.n_pairs > 0)
        .map(|(_, counts)| counts.n_pairs)
        .collect();
    let n_pairs: u32 = data.test.labels.iter().map(|counts| counts.n_pairs).sum();
    let n_rare = data.label_counts.iter().filter(|&&n| n < RARE).count();
    let mut html = String::from("<ul>");
    let mut item = |words: String| {
        let _ = write!(html, "<li>{words}</li>");
    };
    item(format!(
        "{} of {} have fewer than {RARE} training points: such labels are found less often.",
        n_rare,
        count(data.label_counts.len(), "label")
    ));
    item(if unseen.is_empty() {
        "Every label of the test texts has training points.".to_owned()
    } else {
        format!(
            "{} of the test texts {} no training point and cannot be learned: {:.1} % of their labels.",
            count(unseen.len(), "label"),
            if unseen.len() == 1 { "has" } else { "have" },
            share(unseen.iter().sum::<u32>() as usize, n_pairs as usize)
        )
    });
    match data.n_seen {
        Some(0) => item("The model was trained on none of the test texts.".to_owned()),
        Some(n_seen) => item(format!(
            "<b>The model was trained on {n_seen} of the {}</b>: the figures are better than those of new texts would be.",
            count(data.test.n_points, "test text")
        )),
        None => {}
    }
    match &data.repetitions {
        Some(repetitions) => {
            for (name, part) in [("training", repetitions.train), ("test", repetitions.test)] {
                item(format!(
                    "Of {}, {} ({:.1} %) repeat the text of an earlier one, and {} have no label.",
                    wording::count(part.n_points, &format!("{name} point")),
                    part.n_repeated,
                    share(part.n_repeated, part.n_points),
                    part.n_without_labels
                ));
            }
            let n_shared = repetitions.n_test_in_train;
            item(format!(
                "{} ({:.1} %) have a text that is also in the training data{}",
                count(n_shared, "test point"),
                share(n_shared, repetitions.test.n_points),
                if n_shared == 0 {
                    ".".to_owned()
                } else {
                    format!(
                        ", {} of them with the same labels: the figures are better than those of new texts would be.",
                        repetitions.n_with_same_labels
                    )
                }
            ));
        }
        None => item("Repeated texts need the training data, and texts.".to_owned()),
    }
    html.push_str("</ul>\n");
    let _ = writeln!(
        html,
        "<div class=\"figures\">{}</div>",
        figure(&figures::frequencies(data), "Training points per label.")
    );
    html
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
