//! The sections of the page: a title, what is to be seen, and the figures.

use std::fmt::Write;

use elias::insight::MissReason;

use super::data::{PruneRow, ReportData};
use super::observations::{most_pruned, observe};
use super::{figures, maps};
use crate::memory;
use crate::ui::svg::{escape, spell};

/// A section of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) html: String,
}

/// One line on the model and its data.
pub(super) fn summary(data: &ReportData) -> String {
    let counts = data.description.plan.counts();
    let n_bytes: u64 = data.description.files.values().map(|file| file.bytes).sum();
    format!(
        "<p class=\"soft\">{} training points, {} labels, {} clusters, {} member{}; {} test points; {} on disk; written by {}.</p>\n",
        data.description.data.n_points,
        counts.n_labels,
        data.health.n_clusters,
        data.description.n_members,
        if data.description.n_members == 1 {
            ""
        } else {
            "s"
        },
        data.test.n_points,
        memory::size(n_bytes as usize),
        escape(&data.description.written_by)
    )
}

/// Every section, in the order of the page.
pub(super) fn all(data: &ReportData) -> Vec<Section> {
    let section = |id, title, html| Section { id, title, html };
    vec![
        section("metrics", "Metrics", metrics(data)),
        section("paper", "The paper's observations", paper(data)),
        section("recall", "Recall", recall(data)),
        section("edges", "Edges", edges(data)),
        section("scores", "Scores", scores(data)),
        section("pruning", "Pruning", pruning(data)),
        section("stage1", "What is left of stage 1", stage1(data)),
        section("maps", "Maps", label_maps(data)),
        section("clusters", "Clusters", clusters()),
        section("labels", "Labels", labels(data)),
        section("training", "Training", training(data)),
        section("hardest", "Hardest points", hardest(data)),
    ]
}

fn figure(svg: &str, caption: &str) -> String {
    format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>\n")
}

fn metrics(data: &ReportData) -> String {
    let columns = [
        "p@1", "p@3", "p@5", "ndcg@3", "ndcg@5", "psp@1", "psp@3", "psp@5", "r@10", "r@20", "r@100",
    ];
    let mut html = String::from(
        "<p>Each row adds one part to the one above. All values in percent; the best of a column is bold.</p>\n<div class=\"scroll\"><table><thead><tr><th>stage</th>",
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
        data.test
            .stages
            .iter()
            .map(|stage| stage.metrics[column])
            .fold(0.0, f64::max)
    };
    for stage in &data.test.stages {
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
    if data.stage("stage1").is_none() {
        html.push_str("<p class=\"soft\">Stage 1 is not shown: the model did not keep it. Train with <code>--set train.keep_stage1=true</code>.</p>\n");
    }
    html
}

fn stage_title(name: &str) -> &str {
    match name {
        "stage1" => "stage 1: fixed clusters",
        "stage2" => "+ stage 2: learned index",
        "ranker" => "+ sparse ranker",
        "calibrated" => "+ calibration",
        "ensemble" => "+ ensemble",
        other => other,
    }
}

fn paper(data: &ReportData) -> String {
    let mut html = String::from(
        "<p>What the authors of ELIAS saw on Amazon-670K and other large data, and what this model shows.</p>\n<div class=\"scroll\"><table class=\"cards\"><thead><tr><th>the paper says</th><th class=\"left\">here</th><th class=\"left\">verdict</th></tr></thead><tbody>",
    );
    for observation in observe(data) {
        let verdict = observation.verdict.name();
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\"><span class=\"{}\">{verdict}</span></td></tr>",
            escape(observation.claim),
            escape(&observation.here),
            verdict.replace(' ', "-")
        );
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn recall(data: &ReportData) -> String {
    format!(
        "<p>How many of a point's true labels are among the first k predictions, for labels of every frequency. \
         A decile is a tenth of the labels: the first holds the most frequent.</p>\n<div class=\"figures\">{}{}{}</div>\n",
        figure(
            &figures::recall(data),
            "Recall against the size of the prediction set."
        ),
        figure(
            &figures::recall_by_decile(data),
            "Recall@100 by label frequency."
        ),
        figure(
            &figures::frequencies(data),
            "Training points of the labels."
        )
    )
}

fn edges(data: &ReportData) -> String {
    let health = &data.health;
    format!(
        "<p>An edge of score 1 assigns a label to a cluster; one near 0 could as well be missing. The index has {} edges; \
         {} labels are assigned to more than one cluster, and {} cannot be reached.</p>\n<div class=\"figures\">{}{}</div>\n",
        health.n_edges,
        health.n_in_several_clusters(),
        health.n_unreachable,
        figure(
            &figures::edge_histogram(data),
            "Edges by score: min(1, β times the normalised weight)."
        ),
        figure(
            &figures::edge_ranks(data),
            "Normalised weight of the edges of a cluster, strongest first, mean over all clusters."
        )
    )
}

fn scores(data: &ReportData) -> String {
    let mut plots = figure(
        &figures::score_spread(data),
        "Scores of true labels that are among the 100 candidates: boxes hold half of them, lines 80 %, the bar is the median.",
    );
    let mut words = String::new();
    if let Some(svg) = figures::reliability(data) {
        plots.push_str(&figure(
            &svg,
            "Probabilities of the first five answers against the share that is right.",
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
        "<p>Scores are comparable if true labels of every frequency get similar ones.{words}</p>\n<div class=\"figures\">{plots}</div>\n"
    )
}

fn pruning(data: &ReportData) -> String {
    let (Some(pruning), Some(svg)) = (&data.pruning, figures::pruning(data)) else {
        return "<p>The edges of this index are fixed.</p>\n".into();
    };
    let free = most_pruned(data).map_or(String::new(), |(_, words)| words);
    let rows = |rows: &[PruneRow], name: &str| {
        let mut html = format!(
            "<div class=\"scroll\"><table><thead><tr><th>{name}</th><th>% pruned</th><th>P@1</th><th>P@5</th><th>R@10</th><th>R@100</th><th>labels rescued</th></tr></thead><tbody>"
        );
        for row in rows {
            let [p1, p5, r10, r100] = row.metrics;
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{:.2}</td><td>{p1:.2}</td><td>{p5:.2}</td><td>{r10:.2}</td><td>{r100:.2}</td><td>{}</td></tr>",
                spell(row.cut),
                row.removed,
                row.n_rescued
            );
        }
        html.push_str("</tbody></table></div>\n");
        html
    };
    format!(
        "<p>Stage 2 after removing weak edges, on {} test points. A rescued label keeps its strongest edge although the cut would remove it, \
         so that no label is lost. The paper could prune 84 % without a loss; here, within 0.2 points of P@1 and R@100: {}.</p>\n\
         <div class=\"figures\">{}</div><h3>By threshold on the edge score</h3>\n{}<h3>By edges kept a cluster</h3>\n{}\
         <p class=\"soft\"><code>elias prune MODEL --out SMALLER --threshold 0.1</code> writes such a model.</p>\n",
        pruning.n_points,
        escape(&free),
        figure(
            &svg,
            "Precision and recall against the share of edges removed."
        ),
        rows(&pruning.by_threshold, "threshold"),
        rows(&pruning.by_top_k, "edges a cluster"),
    )
}

fn stage1(data: &ReportData) -> String {
    let mut plots = String::new();
    match figures::overlap(data) {
        Some(svg) => plots.push_str(&figure(
            &svg,
            "Edges of the stage-1 clusters that the learned index still has, by their score.",
        )),
        None => plots.push_str("<p>The model does not know the clusters of stage 1.</p>"),
    }
    plots.push_str(&figure(
        &figures::clusters_by_decile(data),
        &format!(
            "Clusters a label is assigned to (edge score above {:.2}).",
            data.health.assigned_above
        ),
    ));
    format!(
        "<p>Stage 1 puts each label into one cluster; stage 2 may keep that, move it or add others.</p>\n<div class=\"figures\">{plots}</div>\n"
    )
}

fn label_maps(data: &ReportData) -> String {
    if data.train.is_none() {
        return "<p>Maps need the training data.</p>\n".into();
    }
    format!(
        "<p>Training points in the plane (t-SNE of their embeddings), each map for one label: its own points are red squares, \
         points of its clusters dots in other colours. Hover to read a text.</p>\n\
         <h3>Labels in several clusters</h3>\n{}<h3>Labels in one cluster</h3>\n{}",
        maps::draw(data, 0),
        maps::draw(data, 1)
    )
}

fn searchable(id: &str, hint: &str, headings: &[&str]) -> String {
    let mut html = format!(
        "<div id=\"{id}\"><div class=\"tools\"><input type=\"search\" placeholder=\"{hint}\" aria-label=\"{hint}\">\
         <span class=\"said soft\" aria-live=\"polite\"></span></div><div class=\"scroll\"><table><thead><tr>"
    );
    for heading in headings {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\">{heading}</button></th>"
        );
    }
    html.push_str("</tr></thead><tbody></tbody></table></div><button class=\"more\" type=\"button\" hidden>Show more</button></div>\n<noscript><p>The table needs a script, which is part of this page.</p></noscript>\n");
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
        "<p>Every cluster with the labels assigned to it, the training points that belong to it, and the words that set these apart. Click a heading to sort.</p>\n{table}"
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
            "recall@100",
        ],
    );
    let n_more = data.label_counts.len().saturating_sub(50_000);
    let more = match n_more {
        0 => String::new(),
        n => format!(" The {n} least frequent labels are left out."),
    };
    format!("<p>Every label; a cluster's number leads to it.{more}</p>\n{table}")
}

fn training(data: &ReportData) -> String {
    let mut plots = String::new();
    for (svg, caption) in figures::losses(data).iter().zip([
        "Loss a point, mean over each epoch.",
        "Shortlist loss a point: how far true labels are from the shortlist.",
        "Labels scored a point.",
    ]) {
        plots.push_str(&figure(svg, caption));
    }
    plots.push_str(&figure(
        &figures::rates(data),
        "Learning rates as scheduled.",
    ));
    if let Some(svg) = figures::validations(data) {
        plots.push_str(&figure(&svg, "Metrics on watched points."));
    }
    let mut html = format!("<div class=\"figures\">{plots}</div>\n");
    let Some(times) = &data.times else {
        html.push_str("<p class=\"soft\">The time each phase took is not known: the model was not trained by <code>elias train</code> into this directory.</p>\n");
        return html;
    };
    html.push_str("<div class=\"scroll\"><table><thead><tr><th>phase</th><th>seconds</th><th>most memory so far</th></tr></thead><tbody>");
    for phase in &times.phases {
        let memory = phase
            .peak_bytes
            .map_or(String::new(), |bytes| memory::size(bytes as usize));
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{:.1}</td><td>{memory}</td></tr>",
            escape(&phase.phase),
            phase.seconds
        );
    }
    html.push_str("</tbody></table></div>\n");
    if times.resumed {
        html.push_str("<p class=\"soft\">The training was interrupted and resumed: these are the times of its last part.</p>\n");
    }
    html
}

fn reason(reason: MissReason) -> &'static str {
    match reason {
        MissReason::Found => "found",
        MissReason::Unseen => "never seen in training",
        MissReason::NoPath => "not in the shortlist: no searched cluster leads to it",
        MissReason::WeakPath => "not in the shortlist: the path to it is too weak",
        MissReason::LowRelevance => "its classifier gives it a low σ",
        MissReason::LowPath => "the path to it is weak",
        MissReason::Ranker => "the ranker put it down",
    }
}

fn hardest(data: &ReportData) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for miss in data.test.hardest.iter().flat_map(|hard| &hard.misses) {
        *counts.entry(miss.reason).or_insert(0) += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(why, n)| format!("{n}: {}", reason(*why)))
        .collect();
    let mut html = format!(
        "<p>Test points with no true label in the first ten answers, those with the most confident first answer on top, and what became of each true label. \
         Of the labels below, {}.</p>\n",
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
                    .map_or(String::new(), |place| format!(", place {place}"));
                format!(
                    "{} <span class=\"soft\">({} training points{place}; {})</span>",
                    escape(data.label(miss.label)),
                    miss.n_points,
                    reason(miss.reason)
                )
            })
            .collect();
        let _ = writeln!(html, "{}</p></div>", misses.join(", "));
    }
    html
}
