//! The sections of the page: a title, an explanation, and figures.

use std::fmt::Write;

use super::data::{PruneRow, ReportData};
use super::observations::{most_pruned, observe};
use super::page::MAX_LABELS;
use super::wording::count;
use super::{figures, maps, quality};
use crate::insight::MissReason;
use crate::insight::svg::{escape, format_number};
use crate::training::size;

/// Labels from which on a model is of the kind that the paper is about.
const MANY_LABELS: usize = 100_000;

/// A section of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) html: String,
}

/// The model and its data in one line.
pub(super) fn summary(data: &ReportData) -> String {
    let counts = data.description.plan.counts();
    let n_bytes: u64 = data.description.files.values().map(|file| file.bytes).sum();
    format!(
        "<p class=\"soft\">{}, {}, {}, {}; {}; {} on disk; written by {}.</p>\n",
        count(data.description.data.n_points, "training point"),
        count(counts.n_labels, "label"),
        count(data.health.n_clusters, "cluster"),
        count(data.description.n_members, "member"),
        count(data.test.n_points, "test point"),
        size(n_bytes as usize),
        escape(&data.description.written_by)
    )
}

/// All sections, in the order of the page.
pub(super) fn all(data: &ReportData) -> Vec<Section> {
    let section = |id, title, html| Section { id, title, html };
    vec![
        section("quality", "Quality", quality::quality(data)),
        section("labels", "Labels", labels(data)),
        section("texts", "Data", quality::data_section(data)),
        section("hardest", "Hardest texts", hardest(data)),
        section("scores", "Probabilities and scores", scores(data)),
        section("recall", "Recall", recall(data)),
        section("metrics", "Stages of the model", metrics(data)),
        section("shortlist", "Shortlist", shortlist(data)),
        section("edges", "Edges", edges(data)),
        section("pruning", "Pruning", pruning(data)),
        section("stage1", "What remains of stage 1", stage1(data)),
        section("maps", "Maps", label_maps(data)),
        section("clusters", "Clusters", clusters()),
        section("training", "Training", training(data)),
        section("paper", "The paper's observations", paper(data)),
    ]
}

pub(super) fn figure(svg: &str, caption: &str) -> String {
    format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>\n")
}

fn metrics(data: &ReportData) -> String {
    let columns = [
        "p@1", "p@3", "p@5", "ndcg@3", "ndcg@5", "psp@1", "psp@3", "psp@5", "r@10", "r@20",
        "r@100", "f1@5",
    ];
    let mut html = String::from(
        "<p>Each row from the network on adds one part to the row above. All values are in percent; the best in each column is bold.</p>\n<div class=\"scroll\"><table><thead><tr><th>stage</th>",
    );
    for column in columns {
        let _ = write!(
            html,
            "<th>{}</th>",
            column.to_uppercase().replace("NDCG", "nDCG")
        );
    }
    html.push_str("</tr></thead><tbody>");
    let best = |column: &str| {
        let rows = data.fixed.iter().chain(&data.test.stages);
        rows.map(|stage| stage.metrics[column]).fold(0.0, f64::max)
    };
    for stage in data.fixed.iter().chain(&data.test.stages) {
        let _ = write!(html, "<tr><td>{}</td>", stage_title(&stage.stage));
        for column in columns {
            let value = stage.metrics[column];
            let class = if value == best(column) {
                " class=\"best\""
            } else {
                ""
            };
            let _ = write!(html, "<td{class}>{value:.2}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>\n");
    if data.fixed.is_none() {
        html.push_str("<p class=\"soft\">To see what the learned index brings, train a second model with <code>index.mode = fixed</code> and give it to the report, to compare with.</p>\n");
    }
    html
}

fn stage_title(name: &str) -> &str {
    match name {
        "fixed" => "fixed clusters, as many epochs",
        "stage2" => "network",
        "networks" => "networks of all members",
        "ranker" => "+ sparse ranker",
        "calibrated" => "+ calibration",
        "ensemble" => "+ ensemble",
        other => other,
    }
}

fn paper(data: &ReportData) -> String {
    let n_labels = data.label_counts.len();
    let small = if n_labels < MANY_LABELS {
        format!(
            "Those have hundreds of thousands of labels, this model has {n_labels}, for which little of it need hold. "
        )
    } else {
        String::new()
    };
    let mut html = format!(
        "<p>What the authors of ELIAS observed on Amazon-670K and other large data sets, and what this model shows. \
         {small}A difference is not a fault of a model.</p>\n<div class=\"scroll\"><table class=\"cards\"><thead><tr><th>paper</th><th class=\"left\">this model</th><th class=\"left\">outcome</th></tr></thead><tbody>",
    );
    for observation in observe(data) {
        let outcome = observation.outcome.name();
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\"><span class=\"{}\">{outcome}</span></td></tr>",
            escape(observation.claim),
            escape(&observation.here),
            outcome.replace(' ', "-")
        );
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn recall(data: &ReportData) -> String {
    format!(
        "<p>The share of a point's true labels among the first k predictions. \
         A decile is a tenth of the labels; the first contains the most frequent ones.</p>\n<div class=\"figures\">{}{}</div>\n",
        figure(
            &figures::recall(data),
            "Recall against the number of predictions."
        ),
        figure(
            &figures::recall_by_decile(data),
            "Recall@100 by label frequency."
        )
    )
}

fn shortlist(data: &ReportData) -> String {
    format!(
        "<p>How many true labels the search finds before any label is scored: the quality of the index by itself, on {}. \
         Equal and shuffled weights show what the weights of the edges bring; one against all ranks all labels by their classifiers.</p>\n\
         <div class=\"figures\">{}{}</div>\n",
        count(data.shortlist.n_points, "test point"),
        figure(
            &figures::shortlist_recall(data),
            "True labels inside the shortlist against its size, 20 clusters searched."
        ),
        figure(
            &figures::shortlist_recall_by_beam(data),
            "True labels inside the shortlist of the index against the clusters searched."
        )
    )
}

fn edges(data: &ReportData) -> String {
    let health = &data.health;
    format!(
        "<p>An edge with score 1 assigns a label to a cluster; an edge with a score near 0 has almost no effect. The index has {}. \
         Labels in more than one cluster: {}. Labels that cannot be reached: {}.</p>\n<div class=\"figures\">{}{}</div>\n",
        count(health.n_edges, "edge"),
        health.n_in_several_clusters(),
        health.n_unreachable,
        figure(
            &figures::edge_histogram(data),
            "Edges by score, which is min(1, β times the normalised weight)."
        ),
        figure(
            &figures::edge_ranks(data),
            "Normalised weight of the edges of a cluster, strongest first; mean over all clusters."
        )
    )
}

fn scores(data: &ReportData) -> String {
    let mut plots = figure(
        &figures::score_spread(data),
        "Scores of true labels among the 100 candidates: the box contains 50 %, the line 80 %, the bar is the median.",
    );
    let mut words = String::new();
    if let Some(svg) = figures::reliability(data) {
        plots.push_str(&figure(
            &svg,
            "Share of correct answers against predicted probability, for the first five answers.",
        ));
        let error = data
            .test
            .reliability
            .as_ref()
            .map_or(0.0, |reliability| reliability.error);
        let _ = write!(
            words,
            " The expected calibration error of the first five answers is {error:.4}."
        );
    }
    format!(
        "<p>Scores are comparable if frequent and rare true labels get similar scores.{words}</p>\n<div class=\"figures\">{plots}</div>\n"
    )
}

fn pruning(data: &ReportData) -> String {
    let (Some(pruning), Some(svg)) = (&data.pruning, figures::pruning(data)) else {
        return "<p>The edges of this index are fixed.</p>\n".into();
    };
    let free = most_pruned(data).map_or(String::from("none can be removed"), |free| free.text);
    let rows = |rows: &[PruneRow], name: &str| {
        let mut html = format!(
            "<div class=\"scroll\"><table><thead><tr><th>{name}</th><th>% removed</th><th>P@1</th><th>P@5</th><th>R@10</th><th>R@100</th><th>labels rescued</th></tr></thead><tbody>"
        );
        for row in rows {
            let [p1, p5, r10, r100] = row.metrics;
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{:.2}</td><td>{p1:.2}</td><td>{p5:.2}</td><td>{r10:.2}</td><td>{r100:.2}</td><td>{}</td></tr>",
                format_number(row.cut),
                row.removed,
                row.n_rescued
            );
        }
        html.push_str("</tbody></table></div>\n");
        html
    };
    format!(
        "<p>Stage 2 after removing weak edges, on {}. A rescued label keeps its strongest edge although the cut would remove it, \
         so no label becomes unreachable. In the paper 84 % can be removed without a loss. Here, within 0.2 points of P@1 and R@100, {}.</p>\n\
         <div class=\"figures\">{}</div><h3>By minimum edge score</h3>\n{}<h3>By edges kept per cluster</h3>\n{}",
        count(pruning.n_points, "test point"),
        escape(&free),
        figure(
            &svg,
            "Precision and recall against the share of edges removed."
        ),
        rows(&pruning.by_threshold, "threshold"),
        rows(&pruning.by_top_k, "edges per cluster"),
    )
}

fn stage1(data: &ReportData) -> String {
    let mut plots = String::new();
    match figures::overlap(data) {
        Some(svg) => plots.push_str(&figure(
            &svg,
            "Stage-1 edges that the learned index still has, by minimum edge score.",
        )),
        None => plots.push_str("<p>The model does not contain the stage-1 clusters.</p>"),
    }
    plots.push_str(&figure(
        &figures::clusters_by_decile(data),
        &format!(
            "Clusters per label (edge score above {:.2}).",
            data.health.assigned_above
        ),
    ));
    format!(
        "<p>Stage 1 puts each label into one cluster; stage 2 can keep it there, move it, or add it to others.</p>\n<div class=\"figures\">{plots}</div>\n"
    )
}

fn label_maps(data: &ReportData) -> String {
    if data.train.is_none() {
        return "<p>Maps need the training data.</p>\n".into();
    }
    format!(
        "<p>t-SNE maps of training points, one map per label: its own points are red squares, \
         the points of its clusters are dots in other colours. Hover over a point to read its text.</p>\n\
         <h3>Labels in several clusters</h3>\n{}<h3>Labels in one cluster</h3>\n{}",
        maps::draw(data, 0),
        maps::draw(data, 1)
    )
}

fn searchable(id: &str, hint: &str, headings: &[&str]) -> String {
    let mut html = format!(
        "<div id=\"{id}\"><div class=\"tools\"><input type=\"search\" placeholder=\"{hint}\" aria-label=\"{hint}\">\
         <span class=\"status soft\" aria-live=\"polite\"></span></div><div class=\"scroll\"><table><thead><tr>"
    );
    for heading in headings {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\">{heading}</button></th>"
        );
    }
    html.push_str("</tr></thead><tbody></tbody></table></div><button class=\"more\" type=\"button\" hidden>Show more</button></div>\n<noscript><p>This table needs JavaScript; the script is part of this page.</p></noscript>\n");
    html
}

fn clusters() -> String {
    let table = searchable(
        "cluster-table",
        "Search labels and words of clusters",
        &[
            "cluster",
            "labels",
            "training points",
            "strongest labels",
            "typical words",
        ],
    );
    format!(
        "<p>All clusters, each with its labels, its training points, and the words typical of them. Click a heading to sort.</p>\n{table}"
    )
}

fn labels(data: &ReportData) -> String {
    let table = searchable(
        "label-table",
        "Search labels",
        &[
            "label",
            "training points",
            "clusters",
            "test points",
            "precision",
            "recall",
            "recall@100",
        ],
    );
    let which = if data.label_counts.len() > MAX_LABELS {
        format!("The {MAX_LABELS} most frequent labels")
    } else {
        "All labels".into()
    };
    let at = data.test.thresholds.as_ref().map_or(String::new(), |known| {
        format!(
            " Precision and recall are of all answers of at least {:.2}; recall@100 is of the first hundred.",
            known.best.threshold
        )
    });
    format!(
        "<p>{which}.{at} Click a heading to sort, the number of a cluster to see it.</p>\n{table}"
    )
}

fn training(data: &ReportData) -> String {
    let mut plots = String::new();
    for (svg, caption) in figures::losses(data).iter().zip([
        "Loss per point, mean over each epoch.",
        "Shortlist loss per point: how far true labels are from the shortlist.",
        "Labels scored per point.",
    ]) {
        plots.push_str(&figure(svg, caption));
    }
    plots.push_str(&figure(&figures::rates(data), "Learning rates."));
    if let Some(svg) = figures::validations(data) {
        plots.push_str(&figure(&svg, "Metrics on validation points."));
    }
    let mut html = format!("<div class=\"figures\">{plots}</div>\n");
    let Some(times) = &data.times else {
        html.push_str("<p class=\"soft\">There are no times of the phases: the file beside the model that has them is missing.</p>\n");
        return html;
    };
    html.push_str("<div class=\"scroll\"><table><thead><tr><th>phase</th><th>seconds</th><th>peak memory so far</th></tr></thead><tbody>");
    for phase in &times.phases {
        let memory = phase
            .peak_bytes
            .map_or(String::new(), |bytes| size(bytes as usize));
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{:.1}</td><td>{memory}</td></tr>",
            escape(&phase.phase),
            phase.seconds
        );
    }
    html.push_str("</tbody></table></div>\n");
    if times.resumed {
        html.push_str("<p class=\"soft\">The training was interrupted and resumed; these are the times of the last run.</p>\n");
    }
    html
}

fn reason(reason: MissReason) -> &'static str {
    match reason {
        MissReason::Found => "found",
        MissReason::Unseen => "never seen in training",
        MissReason::NoPath => "not in the shortlist: no searched cluster has an edge to it",
        MissReason::WeakPath => "not in the shortlist: the path to it is too weak",
        MissReason::LowRelevance => "low σ from its classifier",
        MissReason::LowPath => "weak path",
        MissReason::Ranker => "ranked down by the ranker",
    }
}

fn hardest(data: &ReportData) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for miss in data.test.hardest.iter().flat_map(|hard| &hard.misses) {
        *counts.entry(miss.reason).or_insert(0) += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(why, n)| format!("{} {n}", reason(*why)))
        .collect();
    if data.test.hardest.is_empty() {
        return "<p>Every test point has a true label in the first ten answers.</p>\n".into();
    }
    let mut html = format!(
        "<p>Test points without a true label in the first ten answers, sorted by the confidence of the first answer, with the reason why each true label was missed. \
         Number of labels by reason: {}.</p>\n",
        escape(&counts.join("; "))
    );
    for (hard, text) in data.test.hardest.iter().zip(&data.test.texts) {
        let answers: Vec<String> = hard
            .answers
            .iter()
            .map(|(label, score)| {
                format!(
                    "{} <span class=\"soft\">{score:.2}</span>",
                    escape(data.label(*label))
                )
            })
            .collect();
        let _ = write!(
            html,
            "<div class=\"hard\"><p>{}</p><p><b>Answers:</b> {}</p><p><b>True:</b> ",
            escape(text),
            answers.join(", ")
        );
        let misses: Vec<String> = hard
            .misses
            .iter()
            .map(|miss| {
                let place = miss
                    .place
                    .map_or(String::new(), |place| format!(", rank {place}"));
                format!(
                    "{} <span class=\"soft\">({}{place}; {})</span>",
                    escape(data.label(miss.label)),
                    count(miss.n_points as usize, "training point"),
                    reason(miss.reason)
                )
            })
            .collect();
        let _ = writeln!(html, "{}</p></div>", misses.join(", "));
    }
    html
}
