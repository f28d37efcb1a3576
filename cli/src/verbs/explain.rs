//! `elias explain`: why a text got its answers.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use elias::data::Part;
use elias::insight::{AnswerExplanation, Explanation, MemberExplanation};
use elias::{Dataset, Predictor, Query};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::ui::table::shorten;
use crate::{models, reading};

/// Explain the answers to a text
///
/// For each answer: the clusters on its paths with their scores, the edge scores, the relevance σ(w·φ) from its
/// classifier, the ranker's part with its strongest words, what similar training points and the label's name say, and
/// the part of each in the final score. Then the training points with the most similar words; --train shows their texts.
#[derive(Args)]
pub(crate) struct Explain {
    /// The model
    model: PathBuf,
    /// The text, in quotes
    #[arg(value_name = "TEXT", required_unless_present = "text")]
    quoted: Option<String>,
    /// The same as an option
    #[arg(long, conflicts_with = "quoted")]
    text: Option<String>,
    /// Number of answers to explain
    #[arg(long, value_name = "N", default_value_t = Query::default().k)]
    top_k: usize,
    /// Training data, to show the texts of similar training points
    #[arg(long, value_name = "DATA")]
    train: Option<PathBuf>,
    #[command(flatten)]
    columns: reading::ColumnArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(&self.model)?;
        if let Some(reason) = models::why_uncalibrated(&predictor) {
            console.info(format_args!("answers have no probabilities: {reason}"));
        }
        let text = self.text.as_ref().or(self.quoted.as_ref());
        let text = text.map_or("", String::as_str);
        let mut explanation = predictor.explain(text, self.top_k)?;
        if explanation.words.is_empty() {
            console.info("the model knows no word of the text: the answers come from biases alone");
        }
        predictor.check_files()?;
        if let Some(train) = self.read_train(&predictor, console)? {
            explanation.add_texts(&train);
        }
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &explanation)?;
            writeln!(out)?;
        } else {
            write(&mut out, &explanation)?;
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
        let options = self.columns.options(Part::Train, Some(predictor.labels()));
        let train = reading::read(console, path, options)?;
        let n_trained = predictor.training_data().n_points;
        anyhow::ensure!(
            train.n_points() == n_trained,
            "{}: it has {}, the model was trained on {}; give the data it was trained on",
            path.display(),
            count(train.n_points(), "point"),
            count(n_trained, "point")
        );
        Ok(Some(train))
    }
}

fn write(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    for (place, answer) in explanation.answers.iter().enumerate() {
        write_answer(out, place + 1, answer)?;
    }
    if !explanation.neighbours.is_empty() {
        writeln!(out, "\ntraining points with similar words")?;
    }
    for near in &explanation.neighbours {
        let place = format!("point {}", near.point + 1);
        let text = near.text.as_deref().unwrap_or(&place);
        writeln!(out, "  {:.3} {}", near.similarity, shorten(text, 70))?;
        let labels = near.labels.join(", ");
        writeln!(out, "        {}", shorten(&labels, 70))?;
    }
    Ok(())
}

fn write_answer(out: &mut impl Write, place: usize, answer: &AnswerExplanation) -> io::Result<()> {
    if place > 1 {
        writeln!(out)?;
    }
    let probability = answer.probability.map_or(String::new(), |probability| {
        format!(", probability {probability:.2}")
    });
    writeln!(out, "{place}. {}", shorten(&answer.label, 76))?;
    writeln!(
        out,
        "   score {:.4}{probability}; {}",
        answer.score,
        count(answer.n_points as usize, "training point")
    )?;
    if let Some(votes) = answer.votes {
        writeln!(
            out,
            "   similar training points have it: votes {:.3}, the nearest with cosine {:.3}",
            votes.score, votes.nearest
        )?;
    }
    if let Some(name) = answer.name {
        writeln!(
            out,
            "   the text contains {:.0} % of its name, cosine {:.3}",
            100.0 * name.contained,
            name.cosine
        )?;
    }
    for (member_idx, member) in answer.members.iter().enumerate() {
        if answer.members.len() > 1 {
            writeln!(out, "   member {}", member_idx + 1)?;
        }
        write_member(out, member)?;
    }
    Ok(())
}

fn write_member(out: &mut impl Write, member: &MemberExplanation) -> io::Result<()> {
    for path in &member.paths {
        writeln!(
            out,
            "   cluster {:<6} score {:.3} x edge {:.3} = path {:.3}",
            path.cluster.0,
            path.cluster_score,
            path.edge_score,
            path.cluster_score * path.edge_score
        )?;
    }
    match member.place {
        Some(place) => writeln!(
            out,
            "   path {:.3} x relevance {:.3} = {:.3}, rank {place} before re-ranking",
            member.shortlist_score, member.relevance, member.model_score
        )?,
        None => writeln!(
            out,
            "   not in the shortlist; relevance {:.3}",
            member.relevance
        )?,
    }
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
    if let Some(sources) = &member.sources {
        writeln!(
            out,
            "   score {:.3}; without network {:.3}, ranker {:.3}, votes {:.3}, names {:.3}",
            sources.score,
            sources.without_network,
            sources.without_ranker,
            sources.without_neighbours,
            sources.without_names
        )?;
    }
    match member.score {
        Some(score) => writeln!(out, "   final score {score:.4}"),
        None => writeln!(out, "   not among the re-ranked candidates"),
    }
}
