//! Scales: from values to positions, with ticks at round numbers.

use super::text::format_number;

/// A scale with its ticks.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    pub(super) low: f64,
    high: f64,
    is_log: bool,
    pub(super) ticks: Vec<Tick>,
}

/// A value with its name.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) name: String,
}

impl Tick {
    fn number(value: f64) -> Self {
        Tick {
            value,
            name: format_number(value),
        }
    }
}

impl Axis {
    /// From `low` to `high`, with ticks at round numbers.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let high = if high <= low { low + 1.0 } else { high };
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let mut ticks = Vec::new();
        let mut at = (low / step).ceil() * step;
        while at <= high + step * 1e-6 {
            ticks.push(Tick::number(at));
            at += step;
        }
        Axis {
            label: label.into(),
            low,
            high,
            is_log: false,
            ticks,
        }
    }

    /// From `low` to `high`, both positive, in powers of ten.
    pub fn log(label: &str, low: f64, high: f64) -> Self {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let ticks = (first..=last).map(|power| 10f64.powi(power));
        let ticks = ticks.filter(|tick| *tick >= low && *tick <= high * 1.0001);
        Axis {
            label: label.into(),
            low,
            high,
            is_log: true,
            ticks: ticks.map(Tick::number).collect(),
        }
    }

    /// One position per name, at 0, 1, 2 and so on.
    pub fn names<T: Into<String>>(label: &str, names: impl IntoIterator<Item = T>) -> Self {
        let names = names.into_iter().enumerate();
        let ticks: Vec<Tick> = names
            .map(|(at, name)| Tick {
                value: at as f64,
                name: name.into(),
            })
            .collect();
        Axis {
            label: label.into(),
            low: -0.5,
            high: ticks.len() as f64 - 0.5,
            is_log: false,
            ticks,
        }
    }

    /// The position of a value, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        let scale = |value: f64| {
            if self.is_log {
                value.max(1e-300).log10()
            } else {
                value
            }
        };
        let (low, high) = (scale(self.low), scale(self.high));
        ((scale(value) - low) / (high - low)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let names = |axis: Axis| {
            axis.ticks
                .into_iter()
                .map(|tick| tick.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(Axis::linear("", 0.0, 100.0)),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            names(Axis::linear("", 0.0, 0.9)),
            ["0", "0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(names(Axis::log("", 0.05, 100.0)), ["0.1", "1", "10", "100"]);
        assert_eq!(
            names(Axis::linear("", 3.0, 3.0))
                .first()
                .map(String::as_str),
            Some("3")
        );
    }
}
