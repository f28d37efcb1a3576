//! XC Repository sparse text: header `N D L`, then `l1,l2 f:v f:v …` per point, all numbers from zero.
//!
//! A line without labels starts with a space, or directly with a feature. Label names may be in a file next to it.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::number::parse_integer;
use crate::data::formats::sparse_text::{
    RowCheck, check_columns, check_end, check_entry, check_row, parse_pairs, read_header,
    write_pairs,
};
use crate::data::io::source::{Lines, excerpt};
use crate::error::Result;

/// The numbers of features and labels that the header declares.
pub(in crate::data) struct HeaderCounts {
    pub(in crate::data) n_features: usize,
    pub(in crate::data) n_labels: usize,
}

/// Reads the whole file into the builder; labels by number.
pub(in crate::data) fn read(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<HeaderCounts> {
    let [n_points, n_features, n_labels] = read_header::<3>(lines, "N D L")?;
    let n_features = check_columns(lines, "features", n_features)?;
    let n_labels = check_columns(lines, "labels", n_labels)?;
    while let Some(line) = lines.next()? {
        if let RowCheck::Blank = check_row(&line, builder.n_points(), n_points)? {
            continue;
        }
        let end = memchr::memchr(b' ', line.text.as_bytes()).unwrap_or(line.text.len());
        let (mut labels, mut features) = line.text.split_at(end);
        if labels.contains(':') {
            (labels, features) = ("", line.text);
        }
        if !labels.is_empty() {
            for label in labels.split(',') {
                let Some(number) = parse_integer(label.as_bytes()) else {
                    return Err(line.malformed(
                        format!("{} as a label", excerpt(label)),
                        "label numbers separated by commas, then a space, then index:value",
                    ));
                };
                if number >= n_labels as u64 {
                    return Err(line.label_out_of_range(number, n_labels));
                }
                builder.push_label_number(number as u32, 1.0);
            }
        }
        builder.end_labels();
        features = features.trim_ascii_end();
        parse_pairs(&line, features, |index, value| {
            let (feature, value) = check_entry(&line, index, value, n_features)?;
            builder.push_feature(feature, value);
            Ok(())
        })?;
        builder
            .end_features()
            .map_err(|found| line.malformed(found, "finite values"))?;
    }
    check_end(lines, builder.n_points(), n_points)?;
    Ok(HeaderCounts {
        n_features,
        n_labels,
    })
}

/// Writes all points.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    let Some(features) = dataset.features() else {
        return Ok(());
    };
    writeln!(
        out,
        "{} {} {}",
        dataset.n_points(),
        features.n_cols(),
        dataset.n_labels()
    )?;
    for point in 0..dataset.n_points() {
        let mut separator = "";
        for label in dataset.labels().row(point).0 {
            write!(out, "{separator}{label}")?;
            separator = ",";
        }
        out.write_all(b" ")?;
        let (columns, values) = features.row(point);
        write_pairs(out, columns, values)?;
    }
    Ok(())
}
