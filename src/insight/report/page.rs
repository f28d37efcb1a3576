//! The page: sections, style, script and table data in one file.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::data::ReportData;
use super::sections;
use crate::insight::svg::escape;

/// Maximum number of labels in the table; it keeps the page under 10 MB.
pub(super) const MAX_LABELS: usize = 50_000;

/// The whole page.
pub(super) fn write(data: &ReportData) -> String {
    let mut html = String::with_capacity(4 << 20);
    let name = escape(&data.name);
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name}: what the model learned</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        include_str!("page.css")
    );
    let sections = sections::all(data);
    let _ = write!(
        html,
        "<h1>{name}: what the model learned</h1>\n{}<nav>",
        sections::summary(data)
    );
    for section in &sections {
        let _ = write!(
            html,
            "<a href=\"#{}\">{}</a>",
            section.id,
            escape(section.title)
        );
    }
    html.push_str("</nav>\n<main>\n");
    for section in &sections {
        let _ = write!(
            html,
            "<section id=\"s-{0}\"><h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
            section.id,
            escape(section.title),
            section.html
        );
    }
    html.push_str("</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n");
    let _ = write!(
        html,
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        in_script(&table_data(data)),
        include_str!("page.js")
    );
    html
}

/// JSON that cannot close the script element around it.
fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// The rows of the searchable tables.
fn table_data(data: &ReportData) -> Value {
    let mut order: Vec<usize> = (0..data.label_counts.len()).collect();
    order.sort_by_key(|&label| (std::cmp::Reverse(data.label_counts[label]), label));
    order.truncate(MAX_LABELS);
    let pairs = |label: usize| data.test.labels.get(label).copied().unwrap_or_default();
    let at_threshold: HashMap<u32, (Option<f64>, Option<f64>)> = data
        .test
        .thresholds
        .iter()
        .flat_map(|known| &known.labels)
        .map(|&(label, precision, recall)| (label, (precision, recall)))
        .collect();
    let at = |label: usize| {
        at_threshold
            .get(&(label as u32))
            .copied()
            .unwrap_or_default()
    };
    let strongest = data.strongest.iter().map(|labels| {
        let names = labels.iter().map(|&label| data.label(label));
        names.collect::<Vec<_>>()
    });
    let mut sizes = vec![0usize; data.strongest.len()];
    for cluster in data.clusters_of.iter().flatten() {
        sizes[*cluster as usize] += 1;
    }
    let train = data.train.as_ref();
    let members = |cluster: usize| train.map(|train| train.clusters[cluster].n_points);
    let words = |cluster: usize| train.map_or(&[][..], |train| &train.clusters[cluster].words[..]);
    let clusters = 0..data.strongest.len();
    json!({
        "rows": (0..order.len()).collect::<Vec<_>>(),
        "names": order.iter().map(|&label| data.label(label as u32)).collect::<Vec<_>>(),
        "points": order.iter().map(|&label| data.label_counts[label]).collect::<Vec<_>>(),
        "clusters": order.iter().map(|&label| &data.clusters_of[label]).collect::<Vec<_>>(),
        "pairs": order.iter().map(|&label| pairs(label).n_pairs).collect::<Vec<_>>(),
        "found": order.iter().map(|&label| pairs(label).n_found).collect::<Vec<_>>(),
        "precision": order.iter().map(|&label| at(label).0.map(f64::round)).collect::<Vec<_>>(),
        "recall": order.iter().map(|&label| at(label).1.map(f64::round)).collect::<Vec<_>>(),
        "strongest": strongest.collect::<Vec<_>>(),
        "sizes": sizes,
        "members": clusters.clone().map(members).collect::<Vec<_>>(),
        "words": clusters.map(words).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_close_its_script() {
        let text = in_script(&json!(["</script><b>", "a < b"]));
        assert!(!text.contains('<'), "{text}");
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, ["</script><b>", "a < b"]);
    }
}
