//! Plots as SVG text: lines, bars and boxes over linear, logarithmic or named axes.
//!
//! Colours are CSS variables of the page (`--s0` to `--s5`) with values of their own where there is no page, so that
//! one picture serves a light page, a dark page and a file. Marks carry their numbers as `data-t`, which the page
//! shows on hover, and series are told apart by dashes as well as by colour.

mod axis;
mod text;

use std::fmt::Write;

pub(crate) use axis::Axis;
pub(crate) use text::{escape, spell};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
/// Left, top, right, bottom.
const MARGIN: [f64; 4] = [58.0, 14.0, 14.0, 44.0];
const FALLBACK: [&str; 6] = [
    "#2563a8", "#c2571a", "#2f8f5b", "#8b4bb0", "#a8862b", "#b3325f",
];
const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 4"];

/// What is drawn of a series.
#[derive(Clone, Debug)]
pub(crate) enum Marks {
    /// A line through points, with dots if there are few.
    Line(Vec<(f64, f64)>),
    /// Bars from zero, side by side with those of other series.
    Bars(Vec<(f64, f64)>),
    /// Boxes of 10, 25, 50, 75 and 90 percent.
    Boxes(Vec<(f64, [f64; 5])>),
}

/// A plot.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<(String, Marks)>,
}

impl Plot {
    /// An empty plot; the title is for those who cannot see it.
    pub(crate) fn new(title: &str, x: Axis, y: Axis) -> Self {
        Plot {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// Adds a series.
    pub(crate) fn with(mut self, name: &str, marks: Marks) -> Self {
        self.series.push((name.into(), marks));
        self
    }

    /// The picture, with its legend above if there are several series.
    pub(crate) fn draw(&self) -> String {
        let mut svg = String::new();
        let n_legend = if 1 < self.series.len() {
            self.legend_rows().len()
        } else {
            0
        };
        let height = HEIGHT + 18.0 * n_legend as f64;
        let _ = write!(
            svg,
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">",
            escape(&self.title)
        );
        if 0 < n_legend {
            self.draw_legend(&mut svg);
        }
        let _ = write!(
            svg,
            "<g transform=\"translate(0 {})\">",
            18.0 * n_legend as f64
        );
        self.draw_axes(&mut svg);
        let n_groups = self.count(|marks| !matches!(marks, Marks::Line(_)));
        let mut group = 0;
        for (at, (name, marks)) in self.series.iter().enumerate() {
            match marks {
                Marks::Line(points) => self.draw_line(&mut svg, at, name, points),
                Marks::Bars(points) => {
                    self.draw_bars(&mut svg, at, (group, n_groups), (name, points))
                }
                Marks::Boxes(boxes) => {
                    self.draw_boxes(&mut svg, at, (group, n_groups), (name, boxes))
                }
            }
            group += usize::from(!matches!(marks, Marks::Line(_)));
        }
        svg.push_str("</g></svg>");
        svg
    }

    fn count(&self, is_wanted: impl Fn(&Marks) -> bool) -> usize {
        let marks = self.series.iter().map(|(_, marks)| marks);
        marks.filter(|marks| is_wanted(marks)).count().max(1)
    }

    fn px(&self, x: f64) -> f64 {
        MARGIN[0] + self.x.place(x) * (WIDTH - MARGIN[0] - MARGIN[2])
    }

    fn py(&self, y: f64) -> f64 {
        HEIGHT - MARGIN[3] - self.y.place(y) * (HEIGHT - MARGIN[1] - MARGIN[3])
    }

    /// Rows of series that fit side by side.
    fn legend_rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
        let mut width = 0.0;
        for (at, (name, _)) in self.series.iter().enumerate() {
            let needed = 34.0 + 7.0 * name.chars().count() as f64;
            if WIDTH - MARGIN[0] < width + needed && 0.0 < width {
                rows.push(Vec::new());
                width = 0.0;
            }
            width += needed;
            rows.last_mut().expect("there is a row").push(at);
        }
        rows
    }

    fn draw_legend(&self, svg: &mut String) {
        for (row_idx, row) in self.legend_rows().iter().enumerate() {
            let (mut x, y) = (MARGIN[0], 12.0 + 18.0 * row_idx as f64);
            for &at in row {
                let (name, marks) = &self.series[at];
                let _ = match marks {
                    Marks::Line(_) => write!(
                        svg,
                        "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" {}/>",
                        x + 20.0,
                        stroke(at)
                    ),
                    _ => write!(
                        svg,
                        "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"10\" {}/>",
                        y - 5.0,
                        fill(at)
                    ),
                };
                let _ = write!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" {INK}>{}</text>",
                    x + 25.0,
                    y + 4.0,
                    escape(name)
                );
                x += 34.0 + 7.0 * name.chars().count() as f64;
            }
        }
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, right) = (MARGIN[0], WIDTH - MARGIN[2]);
        let (top, bottom) = (MARGIN[1], HEIGHT - MARGIN[3]);
        for (value, name) in &self.y.ticks {
            let y = self.py(*value);
            let _ = write!(
                svg,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" {GRID}/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" {INK}>{}</text>",
                left - 6.0,
                y + 4.0,
                escape(name)
            );
        }
        // Names that would run into each other are left out evenly.
        let widest = self
            .x
            .ticks
            .iter()
            .map(|(_, name)| name.chars().count())
            .max();
        let room = (right - left) / self.x.ticks.len().max(1) as f64;
        let stride = ((7.0 * widest.unwrap_or(1) as f64 + 6.0) / room)
            .ceil()
            .max(1.0) as usize;
        for (value, name) in self.x.ticks.iter().step_by(stride) {
            let x = self.px(*value);
            let _ = write!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{}\" {GRID}/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" {INK}>{}</text>",
                bottom + 4.0,
                bottom + 17.0,
                escape(name)
            );
        }
        let _ = write!(
            svg,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\" style=\"stroke:var(--ink,#333)\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" {INK}>{}</text>\
             <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\" {INK}>{}</text>",
            (left + right) / 2.0,
            HEIGHT - 8.0,
            escape(&self.x.label),
            (top + bottom) / 2.0,
            escape(&self.y.label)
        );
    }

    /// What a mark says on hover.
    fn words(&self, name: &str, x: f64, value: String) -> String {
        let tick = self.x.ticks.iter().find(|(at, _)| *at == x);
        let x = tick.map_or_else(|| spell(x), |(_, name)| name.clone());
        let text = format!(
            "{name}{}{} {x}: {value}",
            if name.is_empty() { "" } else { ", " },
            self.x.label
        );
        escape(&text)
    }

    fn draw_line(&self, svg: &mut String, at: usize, name: &str, points: &[(f64, f64)]) {
        let places = points
            .iter()
            .map(|&(x, y)| format!("{:.1},{:.1}", self.px(x), self.py(y)));
        let places: Vec<String> = places.collect();
        let _ = write!(
            svg,
            "<polyline fill=\"none\" points=\"{}\" {}/>",
            places.join(" "),
            stroke(at)
        );
        // Dots are what can be hovered; a line of a hundred points has one at every few.
        let stride = points.len().div_ceil(25).max(1);
        for (x, y) in points.iter().step_by(stride) {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\" data-t=\"{}\" {}/>",
                self.px(*x),
                self.py(*y),
                self.words(name, *x, spell(*y)),
                fill(at)
            );
        }
    }

    /// Left edge and width of a series' place around x.
    fn slot(&self, x: f64, (group, n_groups): (usize, usize), n_places: usize) -> (f64, f64) {
        let room = (WIDTH - MARGIN[0] - MARGIN[2]) / n_places.max(1) as f64 * 0.8;
        let width = room / n_groups as f64;
        (self.px(x) - room / 2.0 + width * group as f64, width)
    }

    fn draw_bars(
        &self,
        svg: &mut String,
        at: usize,
        group: (usize, usize),
        (name, points): (&str, &[(f64, f64)]),
    ) {
        let base = self.py(self.y.low);
        for (x, y) in points {
            let (left, width) = self.slot(*x, group, self.x.ticks.len().max(points.len()));
            let top = self.py(*y);
            let _ = write!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" data-t=\"{}\" {}/>",
                (width - 1.0).max(0.5),
                (base - top).max(0.0),
                self.words(name, *x, spell(*y)),
                fill(at)
            );
        }
    }

    fn draw_boxes(
        &self,
        svg: &mut String,
        at: usize,
        group: (usize, usize),
        (name, boxes): (&str, &[(f64, [f64; 5])]),
    ) {
        for (x, spread) in boxes {
            let (left, width) = self.slot(*x, group, self.x.ticks.len());
            let [low, q1, mid, q3, high] = spread.map(|value| self.py(value));
            let (centre, width) = (left + width / 2.0, (width - 3.0).max(2.0));
            let value = format!(
                "median {}, half within {} to {}",
                spell(spread[2]),
                spell(spread[1]),
                spell(spread[3])
            );
            let _ = write!(
                svg,
                "<g data-t=\"{}\"><line x1=\"{centre:.1}\" x2=\"{centre:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\" {}/>\
                 <rect x=\"{:.1}\" y=\"{q3:.1}\" width=\"{width:.1}\" height=\"{:.1}\" {}/>\
                 <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{mid:.1}\" y2=\"{mid:.1}\" stroke-width=\"2\" style=\"stroke:var(--ink,#333)\"/></g>",
                self.words(name, *x, value),
                stroke(at),
                left + 1.5,
                (q1 - q3).max(1.0),
                fill(at),
                left + 1.5,
                left + 1.5 + width
            );
        }
    }
}

/// A picture that stands by itself, on white.
pub(crate) fn on_paper(svg: &str) -> String {
    let paper = "><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    svg.replacen('>', paper, 1) + "\n"
}

const INK: &str = "style=\"fill:var(--ink,#333)\"";
const GRID: &str = "style=\"stroke:var(--grid,#ddd)\"";

fn colour(at: usize) -> String {
    let at = at % FALLBACK.len();
    format!("var(--s{at},{})", FALLBACK[at])
}

fn stroke(at: usize) -> String {
    let dashes = DASHES[at % DASHES.len()];
    format!(
        "style=\"stroke:{};stroke-width:2;stroke-dasharray:{}\"",
        colour(at),
        if dashes.is_empty() { "none" } else { dashes }
    )
}

/// A fill in a series' colour.
pub(crate) fn fill(at: usize) -> String {
    format!("style=\"fill:{}\"", colour(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_do_not_leave_their_place() {
        let plot = Plot::new(
            "a \"title\"",
            Axis::names("<x>", ["<b>"]),
            Axis::linear("y", 0.0, 1.0),
        );
        let svg = plot
            .with("'><script>", Marks::Bars(vec![(0.0, 0.5)]))
            .draw();
        assert!(
            !svg.contains("<script>") && !svg.contains("<b>") && !svg.contains("<x>"),
            "{svg}"
        );
        assert!(
            svg.contains("data-t=\"&#39;&gt;&lt;script&gt;, &lt;x&gt; &lt;b&gt;: 0.5\""),
            "{svg}"
        );
    }
}
