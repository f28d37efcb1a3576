//! The card of a model: the README.md that the Hugging Face hub shows beside its files.
//!
//! A YAML head with what the hub searches by, then data, labels, quality, settings, use and hash as Markdown. The
//! directory of a model with its card is what is uploaded; a copy of it loads like the original, whatever lies beside.

use std::fmt::Write;
use std::path::Path;

use serde_json::json;

use crate::config::Config;
use crate::error::Result;
use crate::evaluation::Measurements;
use crate::ids::LabelId;
use crate::predict::Predictor;
use crate::store::{self, Description};

/// Most frequent labels that are named.
const N_NAMED: usize = 10;
/// Labels with fewer training points are rare.
const RARE: u32 = 5;
/// Metrics of the table, by their names in [`Metrics::iter`](crate::metrics::Metrics::iter).
const METRICS: [&str; 8] = [
    "p@1", "p@3", "p@5", "ndcg@5", "psp@5", "r@10", "r@100", "f1@5",
];

/// The facts on a card that are not in the model.
#[derive(Clone, Copy, Default)]
pub struct CardOptions<'a> {
    /// The model's name; without one, that of its directory.
    pub name: Option<&'a str>,
    /// Its licence, as the hub abbreviates it: `mit`, `apache-2.0`, `cc-by-4.0`.
    pub license: Option<&'a str>,
    /// A test set by its name, and the model's quality on it.
    pub measured: Option<(&'a str, &'a Measurements)>,
}

impl Predictor {
    /// The card of a model, which was loaded from this directory, as Markdown.
    ///
    /// # Errors
    /// As [`Predictor::load`], for the manifest.
    pub fn card(&self, directory: impl AsRef<Path>, options: &CardOptions<'_>) -> Result<String> {
        let directory = directory.as_ref();
        let description = store::describe(directory)?;
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
        let own = absolute.file_name().map(|name| name.to_string_lossy());
        let name = options.name.or(own.as_deref()).unwrap_or("model");
        let card = Card {
            name,
            predictor: self,
            description: &description,
            options,
        };
        let mut text = card.head();
        card.write_body(&mut text)
            .expect("a string can be written to");
        Ok(text)
    }
}

struct Card<'a> {
    name: &'a str,
    predictor: &'a Predictor,
    description: &'a Description,
    options: &'a CardOptions<'a>,
}

impl Card<'_> {
    /// Values are JSON, which is YAML, too: no name can break out.
    fn head(&self) -> String {
        let mut head =
            String::from("---\nlibrary_name: elias\npipeline_tag: text-classification\n");
        head += "tags: [\"elias\", \"multi-label-classification\", \"extreme-multi-label\"]\n";
        if let Some(license) = self.options.license {
            let _ = writeln!(head, "license: {}", json!(license));
        }
        if let Some((data, measured)) = self.options.measured {
            let metrics = self.metrics(measured).map(|(name, value)| {
                json!({"type": name, "name": name.to_uppercase(), "value": round(value)})
            });
            let results = json!([{
                "name": self.name,
                "results": [{
                    "task": {"type": "text-classification", "name": "multi-label classification"},
                    "dataset": {"type": data, "name": data},
                    "metrics": metrics.collect::<Vec<_>>(),
                }],
            }]);
            let _ = writeln!(head, "model-index: {results}");
        }
        head + "---\n\n"
    }

    fn metrics<'m>(&self, measured: &'m Measurements) -> impl Iterator<Item = (String, f64)> + 'm {
        let known = measured.metrics.iter();
        known.filter(|(name, _)| METRICS.contains(&name.as_str()))
    }

    fn write_body(&self, text: &mut String) -> std::fmt::Result {
        let data = &self.description.data;
        let takes = if self.description.takes_texts {
            "text"
        } else {
            "vector of features"
        };
        writeln!(text, "# {}\n", in_markdown(self.name))?;
        writeln!(
            text,
            "Finds the right few of {} labels for a {takes}: a model of [elias](https://github.com/elias-xmc/elias), \
             which runs on a CPU.\n",
            data.n_labels
        )?;
        self.write_use(text)?;
        self.write_data(text)?;
        self.write_quality(text)?;
        self.write_settings(text)?;
        self.write_intended_use(text)?;
        writeln!(
            text,
            "## Files\n\n{} files of {} bytes; SHA-256 of `manifest.json`, which has the hashes of all others: `{}`.\n\
             `elias inspect --verify` reads and checks every byte.",
            self.description.files.len() + 1,
            self.description
                .files
                .values()
                .map(|file| file.bytes)
                .sum::<u64>(),
            self.description.sha256
        )
    }

    fn write_use(&self, text: &mut String) -> std::fmt::Result {
        if !self.description.takes_texts {
            return Ok(());
        }
        // A name between quotes of a shell and of Python: nothing in it is special to either.
        let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        let directory: String = self.name.chars().filter(|&c| is_plain(c)).collect();
        let directory = if directory.is_empty() {
            "model"
        } else {
            &directory
        };
        writeln!(
            text,
            "## Use\n\nFrom a copy of this directory, such as `hf download OWNER/{directory} --local-dir {directory}` makes:\n\n\
             ```sh\necho \"a text\" | elias predict {directory}\nelias serve {directory}      # a page and an HTTP interface\n```\n\n\
             ```python\nimport elias_xmc      # pip install elias-xmc\n\n\
             elias_xmc.load(\"{directory}\").predict(\"a text\", k=5)\n```\n"
        )
    }

    fn write_data(&self, text: &mut String) -> std::fmt::Result {
        let data = &self.description.data;
        let counts = self.predictor.label_counts();
        let n_rare = counts.iter().filter(|&&count| count < RARE).count();
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|&label| (std::cmp::Reverse(counts[label]), label));
        let names = order.iter().take(N_NAMED).map(|&label| {
            let name = self.predictor.labels().name(LabelId(label as u32));
            format!("{} ({})", in_markdown(name), counts[label])
        });
        writeln!(
            text,
            "## Training data\n\n| | |\n|---|---|\n| points | {} |\n| labels | {} |\n| labels per point | {:.2} |\n\
             | labels with fewer than {RARE} points | {n_rare} |\n| SHA-256 of texts and labels | `{}` |\n",
            data.n_points,
            data.n_labels,
            data.n_positives as f64 / data.n_points.max(1) as f64,
            data.sha256,
        )?;
        let names = names.collect::<Vec<_>>().join(", ");
        writeln!(
            text,
            "The most frequent labels, with their points: {names}.\n"
        )
    }

    fn write_quality(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "## Quality\n")?;
        let Some((data, measured)) = self.options.measured else {
            return writeln!(
                text,
                "Not measured: `elias card MODEL TEST` adds the figures of a test set.\n"
            );
        };
        writeln!(
            text,
            "On {} ({} points that have labels), in percent:\n",
            in_markdown(data),
            measured.metrics.n_points()
        )?;
        let metrics: Vec<_> = self.metrics(measured).collect();
        let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let names = metrics.iter().map(|(name, _)| match name.split_once('@') {
            Some(("ndcg", k)) => format!("nDCG@{k}"),
            _ => name.to_uppercase(),
        });
        writeln!(text, "{}", row(names.collect()))?;
        writeln!(text, "|{}", "---|".repeat(metrics.len()))?;
        let values = metrics.iter().map(|(_, value)| format!("{value:.2}"));
        writeln!(text, "{}\n", row(values.collect()))?;
        if let Some(best) = &measured.at_best_threshold {
            writeln!(
                text,
                "All answers of at least {:.2}, the threshold of the highest F1: precision {:.1}, recall {:.1}, F1 {:.1}.",
                best.threshold, best.precision, best.recall, best.micro_f1
            )?;
        }
        if let Some(reliability) = &measured.reliability {
            writeln!(
                text,
                "Expected calibration error of the first five answers: {:.3}.",
                reliability.expected_calibration_error()
            )?;
        }
        writeln!(text)
    }

    fn write_settings(&self, text: &mut String) -> std::fmt::Result {
        let plan = &self.description.plan;
        writeln!(
            text,
            "## Settings\n\nTrained by {}, seed {}, {}; format version {}.\n",
            self.description.written_by,
            plan.config().train.seed,
            match self.description.n_members {
                1 => "one member".to_owned(),
                n => format!("{n} members"),
            },
            self.description.version
        )?;
        let changed = Config::default().differences(plan.config());
        if changed.is_empty() {
            return writeln!(text, "All settings are the defaults.\n");
        }
        writeln!(text, "Settings that differ from the defaults:\n\n```text")?;
        for difference in changed {
            writeln!(text, "{}", difference.replace("```", "'''"))?;
        }
        writeln!(text, "```\n")
    }

    fn write_intended_use(&self, text: &mut String) -> std::fmt::Result {
        let n_points = self.description.data.n_points;
        let sure = if self.predictor.is_calibrated() {
            "A probability says how often such an answer was right on held-out training data; on other kinds of texts it may not hold."
        } else {
            "Answers have scores, which rank the labels of one text, and no probabilities."
        };
        writeln!(
            text,
            "## Intended use and limits\n\n\
             Meant to suggest labels for texts of the kind of the {n_points} it was trained on, to people who decide, or above a \
             threshold that was chosen on data of one's own.\n\
             It knows only its labels, finds rare ones less often, and repeats what is wrong or one-sided in its training \
             data.\n{sure}\n\
             It keeps words of the training texts, and of some configurations rows of single texts: do not publish a model of \
             confidential texts.\n"
        )
    }
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A name in a line of Markdown.
fn in_markdown(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_control() => text.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Dataset, Evaluation, Trainer};

    #[test]
    fn a_card_has_a_head_and_names_cannot_break_out_of_it() {
        let texts = (0..40).map(|n| (format!("word{}", n % 4), [format!("a|b *{}*", n % 4)]));
        let data = Dataset::from_texts(texts);
        let config = Config::from_toml("stage1.epochs = 1\nstage2.epochs = 1").unwrap();
        let predictor = Trainer::new(config).train(&data).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my-model");
        predictor.save(&path).unwrap();
        let plain = predictor.card(&path, &CardOptions::default()).unwrap();
        assert!(plain.starts_with("---\nlibrary_name: elias\n"), "{plain}");
        assert!(plain.contains("\n# my-model\n") && plain.contains("a\\|b \\*0\\* (10)"));
        assert!(plain.contains("Not measured") && !plain.contains("model-index"));

        let measured = predictor.evaluate(&data, &Evaluation::default()).unwrap();
        let options = CardOptions {
            name: Some("x\n---\nlicense: gpl"),
            license: Some("mit\ntags: []"),
            measured: Some(("test: \"set\"", &measured)),
        };
        let card = predictor.card(&path, &options).unwrap();
        let head = card.split("\n---\n").next().unwrap();
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines.len(), 6, "{head}");
        assert_eq!(lines[4], r#"license: "mit\ntags: []""#);
        let index = lines[5].strip_prefix("model-index: ").unwrap();
        let index: serde_json::Value = serde_json::from_str(index).unwrap();
        let metrics = &index[0]["results"][0]["metrics"];
        assert_eq!(metrics[0]["type"], "p@1");
        let p_at_1 = measured.metrics.precision(1).unwrap();
        assert_eq!(metrics[0]["value"], round(p_at_1));
        assert!(card.contains(&format!("| {p_at_1:.2} |")), "{card}");
        // What lies beside a model does not keep it from loading.
        std::fs::write(path.join("README.md"), card).unwrap();
        std::fs::write(path.join(".gitattributes"), "*.safetensors filter=lfs").unwrap();
        std::fs::create_dir(path.join(".cache")).unwrap();
        let again = Predictor::verify(&path).unwrap();
        let answers = |predictor: &Predictor| format!("{:?}", predictor.predict("word1", 3));
        assert_eq!(answers(&again), answers(&predictor));
    }
}
