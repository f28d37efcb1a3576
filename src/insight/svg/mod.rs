//! Plots as SVG text: lines, bars and boxes over linear, logarithmic or named axes.
//!
//! Colours are CSS variables of the page (`--s0` to `--s5`) with fallbacks, so the same SVG works on a light page, on
//! a dark page and as a file. Marks have their values in `data-t`, which the page shows on hover. Series differ in
//! dashes as well as in colour.

mod axis;
mod text;

use std::fmt::Write;

pub use axis::Axis;
use axis::Tick;
pub use text::{escape, format_number};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
/// Left (at least), top, right, bottom.
const MARGIN: [f64; 4] = [58.0, 14.0, 14.0, 48.0];
/// The room of the title of the vertical axis.
const TITLE_ROOM: f64 = 28.0;
const FALLBACK: [&str; 6] = [
    "#2563a8", "#c2571a", "#2f8f5b", "#8b4bb0", "#a8862b", "#b3325f",
];
const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 4"];

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y }
    }
}

/// The distribution of the values at one x.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub x: f64,
    /// The percentiles 10, 25, 50, 75 and 90.
    pub percentiles: [f64; 5],
}

/// How a series is drawn.
#[derive(Clone, Debug)]
pub enum Marks {
    /// A line through points, with dots.
    Line(Vec<Point>),
    /// Bars from the bottom, side by side with those of other series.
    Bars(Vec<Point>),
    /// Box plots.
    Boxes(Vec<Spread>),
}

/// A named series.
#[derive(Clone, Debug)]
struct Series {
    name: String,
    marks: Marks,
}

/// The place of a series among those that share the room around an x.
#[derive(Clone, Copy)]
struct Slot {
    idx: usize,
    n_slots: usize,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Plot {
    /// An empty plot; the title is read by screen readers.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Plot {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// Adds a series.
    pub fn with(mut self, name: &str, marks: Marks) -> Self {
        self.series.push(Series {
            name: name.into(),
            marks,
        });
        self
    }

    /// The SVG; several series get a legend at the top.
    pub fn draw(&self) -> String {
        let mut svg = String::new();
        let n_legend = if self.series.len() > 1 {
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
        if n_legend > 0 {
            self.draw_legend(&mut svg);
        }
        let _ = write!(
            svg,
            "<g transform=\"translate(0 {})\">",
            18.0 * n_legend as f64
        );
        self.draw_axes(&mut svg);
        let is_line = |series: &Series| matches!(series.marks, Marks::Line(_));
        let n_slots = self.series.iter().filter(|one| !is_line(one)).count();
        let mut slot = Slot { idx: 0, n_slots };
        for (at, series) in self.series.iter().enumerate() {
            match &series.marks {
                Marks::Line(points) => self.draw_line(&mut svg, at, points),
                Marks::Bars(points) => self.draw_bars(&mut svg, at, slot, points),
                Marks::Boxes(boxes) => self.draw_boxes(&mut svg, at, slot, boxes),
            }
            slot.idx += usize::from(!is_line(series));
        }
        svg.push_str("</g></svg>");
        svg
    }

    /// The left margin: the names of the ticks do not touch the title beside them.
    fn left(&self) -> f64 {
        let lengths = self.y.ticks.iter().map(|tick| tick.name.chars().count());
        let widest = 7.0 * lengths.max().unwrap_or(0) as f64;
        (TITLE_ROOM + widest + 6.0).max(MARGIN[0])
    }

    fn px(&self, x: f64) -> f64 {
        self.left() + self.x.position(x) * (WIDTH - self.left() - MARGIN[2])
    }

    fn py(&self, y: f64) -> f64 {
        HEIGHT - MARGIN[3] - self.y.position(y) * (HEIGHT - MARGIN[1] - MARGIN[3])
    }

    /// Rows of series that fit side by side.
    fn legend_rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
        let mut width = 0.0;
        for (at, series) in self.series.iter().enumerate() {
            let needed = legend_width(&series.name);
            if width + needed > WIDTH - MARGIN[0] && width > 0.0 {
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
                let Series { name, marks } = &self.series[at];
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
                x += legend_width(name);
            }
        }
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, right) = (self.left(), WIDTH - MARGIN[2]);
        let (top, bottom) = (MARGIN[1], HEIGHT - MARGIN[3]);
        for Tick { value, name } in &self.y.ticks {
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
        // Names that would overlap are left out evenly.
        let widest = self
            .x
            .ticks
            .iter()
            .map(|tick| tick.name.chars().count())
            .max();
        let room = (right - left) / self.x.ticks.len().max(1) as f64;
        let stride = ((7.0 * widest.unwrap_or(1) as f64 + 6.0) / room)
            .ceil()
            .max(1.0) as usize;
        for Tick { value, name } in self.x.ticks.iter().step_by(stride) {
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

    /// The text of a mark on hover.
    fn hover_text(&self, series: usize, x: f64, value: &str) -> String {
        let name = &self.series[series].name;
        let tick = self.x.ticks.iter().find(|tick| tick.value == x);
        let x = tick.map_or_else(|| format_number(x), |tick| tick.name.clone());
        let text = format!(
            "{name}{}{} {x}: {value}",
            if name.is_empty() { "" } else { ", " },
            self.x.label
        );
        escape(&text)
    }

    fn draw_line(&self, svg: &mut String, at: usize, points: &[Point]) {
        let corners = points
            .iter()
            .map(|point| format!("{:.1},{:.1}", self.px(point.x), self.py(point.y)));
        let corners: Vec<String> = corners.collect();
        let _ = write!(
            svg,
            "<polyline fill=\"none\" points=\"{}\" {}/>",
            corners.join(" "),
            stroke(at)
        );
        // Dots show their values on hover; a long line has about 25 of them.
        let stride = points.len().div_ceil(25).max(1);
        for Point { x, y } in points.iter().step_by(stride) {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\" data-t=\"{}\" {}/>",
                self.px(*x),
                self.py(*y),
                self.hover_text(at, *x, &format_number(*y)),
                fill(at)
            );
        }
    }

    /// Width of a slot if this many x share the axis.
    fn slot_width(&self, n_slots: usize, n_xs: usize) -> f64 {
        0.8 * (WIDTH - self.left() - MARGIN[2]) / n_xs.max(1) as f64 / n_slots as f64
    }

    /// Left edge of a slot around x.
    fn slot_left(&self, x: f64, slot: Slot, width: f64) -> f64 {
        self.px(x) + width * (slot.idx as f64 - slot.n_slots as f64 / 2.0)
    }

    fn draw_bars(&self, svg: &mut String, at: usize, slot: Slot, points: &[Point]) {
        let base = self.py(self.y.low);
        let width = self.slot_width(slot.n_slots, self.x.ticks.len().max(points.len()));
        for Point { x, y } in points {
            let left = self.slot_left(*x, slot, width);
            let top = self.py(*y);
            let _ = write!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" data-t=\"{}\" {}/>",
                (width - 1.0).max(0.5),
                (base - top).max(0.0),
                self.hover_text(at, *x, &format_number(*y)),
                fill(at)
            );
        }
    }

    fn draw_boxes(&self, svg: &mut String, at: usize, slot: Slot, boxes: &[Spread]) {
        let slot_width = self.slot_width(slot.n_slots, self.x.ticks.len());
        for Spread { x, percentiles } in boxes {
            let left = self.slot_left(*x, slot, slot_width);
            let [low, q1, mid, q3, high] = percentiles.map(|value| self.py(value));
            let (centre, width) = (left + slot_width / 2.0, (slot_width - 3.0).max(2.0));
            let value = format!(
                "median {}, half between {} and {}",
                format_number(percentiles[2]),
                format_number(percentiles[1]),
                format_number(percentiles[3])
            );
            let _ = write!(
                svg,
                "<g data-t=\"{}\"><line x1=\"{centre:.1}\" x2=\"{centre:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\" {}/>\
                 <rect x=\"{:.1}\" y=\"{q3:.1}\" width=\"{width:.1}\" height=\"{:.1}\" {}/>\
                 <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{mid:.1}\" y2=\"{mid:.1}\" stroke-width=\"2\" style=\"stroke:var(--ink,#333)\"/></g>",
                self.hover_text(at, *x, &value),
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

/// The SVG as a file of its own, on white.
pub fn standalone(svg: &str) -> String {
    let background = "><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    svg.replacen('>', background, 1) + "\n"
}

const INK: &str = "style=\"fill:var(--ink,#333)\"";
const GRID: &str = "style=\"stroke:var(--grid,#ddd)\"";

/// The room a name takes in the legend.
fn legend_width(name: &str) -> f64 {
    34.0 + 7.0 * name.chars().count() as f64
}

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

/// A fill in the colour of a series.
pub fn fill(at: usize) -> String {
    format!("style=\"fill:{}\"", colour(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ticks_leave_room_for_the_title_of_their_axis() {
        for high in [1.0, 100.0, 51_213.0, 98_765_432.0] {
            let plot = Plot::new(
                "",
                Axis::linear("x", 0.0, 1.0),
                Axis::linear("y", 0.0, high),
            );
            let widest = plot.y.ticks.iter().map(|tick| tick.name.len()).max();
            let ends_at = plot.left() - 6.0 - 7.0 * widest.unwrap() as f64;
            assert!(ends_at >= TITLE_ROOM, "{high}: {ends_at}");
            assert!(plot.px(0.0) == plot.left() && plot.px(1.0) < WIDTH);
        }
    }

    #[test]
    fn hostile_names_are_escaped() {
        let plot = Plot::new(
            "a \"title\"",
            Axis::names("<x>", ["<b>"]),
            Axis::linear("y", 0.0, 1.0),
        );
        let svg = plot
            .with("'><script>", Marks::Bars(vec![Point::new(0.0, 0.5)]))
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
