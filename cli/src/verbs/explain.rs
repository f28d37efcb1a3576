//! `elias explain`: why a text got its answers.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use elias::data::{Dataset, Part, ReadOptions, Texts};
use elias::insight::{AnswerExplanation, MemberExplanation, Neighbour, explain, neighbours};
use elias::predict::Predictor;
use serde_json::json;

use crate::ui::console::{Console, Misuse};
use crate::ui::table::shorten;
use crate::{models, reading};

/// Explain the answers to a text
///
/// For each answer: the clusters on the paths to it with their scores, the edge scores, the relevance σ(w·φ) its
/// classifier gives, the ranker's share with its strongest words, and the final score. --train names the nearest
/// training points too.
#[derive(Args)]
pub(crate) struct Explain {
    /// The model
    model: PathBuf,
    /// The text
    #[arg(long)]
    text: String,
    /// Answers to explain
    #[arg(long, value_name = "N", default_value_t = 3)]
    top_k: usize,
    /// Training data, to name the nearest training points
    #[arg(long, value_name = "DATA")]
    train: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Nearest training points that are named.
const N_NEIGHBOURS: usize = 5;

impl Explain {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(&self.model)?;
        if predictor.vectorizer().is_none() {
            let misuse =
                "the model was trained on features, not on texts: there are no words to explain";
            return Err(Misuse(misuse.into()).into());
        }
        let mut texts = Texts::default();
        texts.push(&self.text);
        let points = predictor.points_of_texts(&texts)?;
        if points.features.nnz() == 0 {
            console.say("no word of the text is known: the answers come from biases alone");
        }
        let stories = explain(&predictor, &points, 0, self.top_k)?;
        let train = self.read_train(&predictor, console)?;
        let near: Vec<Neighbour> = match &train {
            Some(train) => {
                let training = predictor.points(train)?;
                neighbours(&predictor, &points, 0, &training, N_NEIGHBOURS)
            }
            None => Vec::new(),
        };
        let mut out = io::stdout().lock();
        if self.json {
            let near = near.iter().map(|neighbour| {
                let (text, labels) = describe(train.as_ref(), neighbour.point);
                json!({"point": neighbour.point, "similarity": neighbour.similarity,
                       "text": text, "labels": labels})
            });
            let near: Vec<_> = near.collect();
            let object = json!({"text": self.text, "answers": stories, "neighbours": near});
            serde_json::to_writer_pretty(&mut out, &object)?;
            writeln!(out)?;
        } else {
            for (place, story) in stories.iter().enumerate() {
                write_story(&mut out, place + 1, story)?;
            }
            if !near.is_empty() {
                writeln!(out, "\nnearest training points")?;
            }
            for neighbour in &near {
                let (text, labels) = describe(train.as_ref(), neighbour.point);
                writeln!(out, "  {:.3} {}", neighbour.similarity, shorten(&text, 70))?;
                writeln!(out, "        {}", shorten(&labels.join(", "), 70))?;
            }
        }
        out.flush()?;
        Ok(())
    }

    fn read_train(
        &self,
        predictor: &Predictor,
        console: &Console,
    ) -> anyhow::Result<Option<Dataset>> {
        let Some(path) = &self.train else {
            return Ok(None);
        };
        let options = ReadOptions {
            part: Part::Train,
            known_labels: Some(predictor.label_set()),
            ..ReadOptions::default()
        };
        reading::read(console, path, options).map(Some)
    }
}

fn describe(train: Option<&Dataset>, point: usize) -> (String, Vec<String>) {
    let Some(train) = train else {
        return Default::default();
    };
    let text = train.texts().map_or("", |texts| texts.get(point));
    let labels = train.label_names(point).map(str::to_owned).collect();
    (text.to_owned(), labels)
}

fn write_story(out: &mut impl Write, place: usize, story: &AnswerExplanation) -> io::Result<()> {
    if 1 < place {
        writeln!(out)?;
    }
    let probability = story.probability.map_or(String::new(), |probability| {
        format!(", right with probability {probability:.2}")
    });
    writeln!(out, "{place}. {}", shorten(&story.label, 76))?;
    writeln!(
        out,
        "   score {:.4}{probability}; {} training points",
        story.score, story.n_points
    )?;
    for (member_idx, member) in story.members.iter().enumerate() {
        if 1 < story.members.len() {
            writeln!(out, "   member {}", member_idx + 1)?;
        }
        write_member(out, member)?;
    }
    Ok(())
}

fn write_member(out: &mut impl Write, member: &MemberExplanation) -> io::Result<()> {
    let Some(place) = member.place else {
        return writeln!(out, "   not in the shortlist of this member");
    };
    for path in &member.paths {
        writeln!(
            out,
            "   cluster {:<6} score {:.3} x edge {:.3} = path {:.3}",
            path.cluster,
            path.cluster_score,
            path.edge_score,
            path.cluster_score * path.edge_score
        )?;
    }
    writeln!(
        out,
        "   path {:.3} x relevance {:.3} = {:.3}, place {place} before re-ranking",
        member.shortlist_score, member.relevance, member.model_score
    )?;
    if let Some(ranker) = &member.ranker {
        writeln!(
            out,
            "   ranker {:.3}: margin {:.3} = words {:.3} + embedding {:.3} + intercept {:.3}",
            ranker.score,
            ranker.margin,
            ranker.margin - ranker.embedding - ranker.intercept,
            ranker.embedding,
            ranker.intercept
        )?;
        let words = ranker.words.iter();
        let words: Vec<String> = words
            .map(|(word, share)| format!("{word} {share:+.3}"))
            .collect();
        if !words.is_empty() {
            writeln!(out, "   words: {}", shorten(&words.join(", "), 70))?;
        }
    }
    match member.score {
        Some(score) => writeln!(out, "   final score {score:.4}"),
        None => writeln!(out, "   not among the candidates that are re-ranked"),
    }
}
