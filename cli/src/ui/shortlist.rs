//! Recall inside the shortlist, as tables and as JSON.

use std::io::{self, Write};

use elias::insight::ShortlistRecall;
use serde_json::json;

use crate::ui::count::count;
use crate::ui::table::Table;

/// Writes a table per beam.
pub(crate) fn write_tables(out: &mut impl Write, recall: &ShortlistRecall) -> io::Result<()> {
    writeln!(
        out,
        "true labels inside the shortlist, in percent, by its size K; {}",
        count(recall.n_points, "point")
    )?;
    for (beam, beam_size) in ShortlistRecall::BEAMS.iter().enumerate().rev() {
        writeln!(out)?;
        let sizes = ShortlistRecall::SIZES.iter().map(ToString::to_string);
        let mut table = Table::new([format!("beam {beam_size}")].into_iter().chain(sizes));
        for index in &recall.indices {
            table.row(cells(&index.index, &index.by_beam[beam]));
        }
        table.row(cells("one against all", &recall.one_against_all));
        table.write(out)?;
    }
    Ok(())
}

fn cells(name: &str, recall: &[f64]) -> Vec<String> {
    let shares = recall.iter().map(|share| format!("{share:.2}"));
    [name.to_owned()].into_iter().chain(shares).collect()
}

/// Writes one object: the sizes, and for each index its recall by beam, then by size.
pub(crate) fn write_json(out: &mut impl Write, recall: &ShortlistRecall) -> io::Result<()> {
    let object = json!({
        "n_points": recall.n_points,
        "beam_sizes": ShortlistRecall::BEAMS,
        "shortlist_sizes": ShortlistRecall::SIZES,
        "indices": recall.indices,
        "one_against_all": recall.one_against_all,
    });
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}
