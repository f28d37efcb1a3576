//! Maps of training points, as SVG.

use std::fmt::Write;

use elias::insight::LabelMap;

use super::data::ReportData;
use crate::ui::svg::{escape, fill};

const SIZE: f64 = 320.0;
const MARGIN: f64 = 10.0;

/// All maps of one kind, each with the names of its label and clusters.
pub(super) fn draw(data: &ReportData, kind: usize) -> String {
    let Some(train) = &data.train else {
        return String::new();
    };
    let mut html = String::from("<div class=\"maps\">");
    for (map, texts) in train.maps[kind].iter().zip(&train.map_texts[kind]) {
        let name = escape(data.label(map.label));
        let clusters: Vec<String> = map
            .clusters
            .iter()
            .map(|cluster| format!("#{cluster}"))
            .collect();
        let _ = write!(
            html,
            "<figure class=\"map\">{}<figcaption><b>{name}</b> in cluster{} {}</figcaption></figure>",
            one(data, map, texts),
            if map.clusters.len() == 1 { "" } else { "s" },
            clusters.join(", ")
        );
    }
    html.push_str("</div>");
    html
}

fn one(data: &ReportData, map: &LabelMap, texts: &[String]) -> String {
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" role=\"img\" aria-label=\"training points of {}\">",
        escape(data.label(map.label))
    );
    let place = |value: f32| MARGIN + f64::from(value) * (SIZE - 2.0 * MARGIN);
    // The label's own points are drawn last, on top.
    for is_own in [false, true] {
        for (point, text) in map.points.iter().zip(texts) {
            if point.cluster.is_none() != is_own {
                continue;
            }
            let group = match point.cluster {
                None => data.label(map.label).to_owned(),
                Some(at) => format!("cluster #{}", map.clusters[usize::from(at)]),
            };
            let (x, y) = (place(point.x), place(point.y));
            // The label is red, as in the paper; its clusters take the other colours.
            let series = match point.cluster {
                None => 5,
                Some(at) => [0, 2, 3, 4, 1][usize::from(at).min(4)],
            };
            let words = escape(&format!("{group}: {text}"));
            let fill = fill(series);
            let _ = if is_own {
                let (left, top) = (x - 3.0, y - 3.0);
                write!(
                    svg,
                    "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"6\" height=\"6\" data-t=\"{words}\" {fill}/>"
                )
            } else {
                write!(
                    svg,
                    "<circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"2.6\" opacity=\".65\" data-t=\"{words}\" {fill}/>"
                )
            };
        }
    }
    svg.push_str("</svg>");
    svg
}
