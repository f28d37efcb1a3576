//! Recall inside the shortlist, as tables and as JSON.

use std::io::{self, Write};

use elias::insight::{BEAM_SIZES, IndexRecall, RecallBySize, SHORTLIST_SIZES, ShortlistRecall};
use serde_json::{Map, Value, json};

use crate::ui::count::count;
use crate::ui::table::Table;

/// Writes a table per beam.
pub(crate) fn write_tables(out: &mut impl Write, recall: &ShortlistRecall) -> io::Result<()> {
    writeln!(
        out,
        "true labels inside the shortlist, in percent, by its size K; {}",
        count(recall.n_points, "point")
    )?;
    for (beam, beam_size) in BEAM_SIZES.iter().enumerate().rev() {
        writeln!(out)?;
        let sizes = SHORTLIST_SIZES.iter().map(ToString::to_string);
        let mut table = Table::new([format!("beam {beam_size}")].into_iter().chain(sizes));
        for index in &recall.indices {
            table.row(cells(&index.index, &index.by_beam[beam]));
        }
        table.row(cells("one against all", &recall.one_against_all));
        table.write(out)?;
    }
    Ok(())
}

fn cells(name: &str, recall: &RecallBySize) -> Vec<String> {
    let shares = recall.iter().map(|share| format!("{share:.2}"));
    [name.to_owned()].into_iter().chain(shares).collect()
}

/// Writes one object: for each index, recall by beam and by K.
pub(crate) fn write_json(out: &mut impl Write, recall: &ShortlistRecall) -> io::Result<()> {
    let by_beam = |index: &IndexRecall| -> Value {
        let beams = BEAM_SIZES.iter().zip(&index.by_beam);
        let beams = beams.map(|(beam_size, recall)| (beam_size.to_string(), by_size(recall)));
        Value::Object(beams.collect())
    };
    let mut indices = Map::new();
    for index in &recall.indices {
        indices.insert(index.index.replace(' ', "_"), by_beam(index));
    }
    let object = json!({
        "n_points": recall.n_points,
        "recall_by_beam_and_size": indices,
        "one_against_all": by_size(&recall.one_against_all),
    });
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}

fn by_size(recall: &RecallBySize) -> Value {
    let shares = SHORTLIST_SIZES.iter().zip(recall);
    let shares = shares.map(|(size, share)| (size.to_string(), json!(share)));
    Value::Object(shares.collect())
}
