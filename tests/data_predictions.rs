//! Predictions that are written come back as they were.

use std::fs;

use elias::data::{InputId, LabelSet, PredictionFormat, PredictionShape, PredictionWriter, Texts};
use elias::{LabelId, Prediction, Scored};

fn labels() -> LabelSet {
    ["a", "b \"c\"", "d"].into_iter().collect()
}

fn scored(label: u32, score: f32) -> Scored {
    Scored {
        label: LabelId(label),
        score,
    }
}

fn rows() -> [Vec<Scored>; 3] {
    [
        vec![scored(2, 0.9), scored(0, 0.25), scored(1, 0.25)],
        vec![],
        vec![scored(1, -1.5)],
    ]
}

/// Answers with these scores, and half of them as probabilities where they are wanted.
fn predictions<'a>(labels: &'a LabelSet, row: &[Scored], calibrated: bool) -> Vec<Prediction<'a>> {
    let predictions = row.iter().map(|scored| Prediction {
        label: labels.name(scored.label),
        id: scored.label,
        score: scored.score,
        probability: calibrated.then_some(scored.score / 2.0),
    });
    predictions.collect()
}

/// The rows as they are written, with ids or without.
fn written(format: PredictionFormat, ids: Option<&Texts>) -> Vec<u8> {
    let labels = labels();
    let mut writer = PredictionWriter::new(Vec::new(), format, labels.len());
    for (point, row) in rows().iter().enumerate() {
        let id = ids.map(|ids| InputId::from(ids.get(point)));
        let answers = predictions(&labels, row, false);
        writer.push(id.as_ref(), &answers).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8], n_points: usize, ids: Option<&Texts>) -> elias::Result<Vec<Vec<Scored>>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("predictions");
    fs::write(&path, bytes).unwrap();
    let labels = labels();
    let shape = PredictionShape {
        n_points,
        label_set: &labels,
        n_trained: labels.len(),
        ids,
    };
    shape.read(&path)
}

#[test]
fn predictions_come_back_in_every_format() {
    let ids: Texts = ["x, \"y\"", "2", "0"].into_iter().collect();
    for format in PredictionFormat::ALL {
        for ids in [None, Some(&ids)] {
            let bytes = written(format, ids);
            assert_eq!(read(&bytes, 3, ids).unwrap(), rows(), "{format}");
        }
    }
}

#[test]
fn rows_of_tables_are_named_by_id_or_row() {
    let text = |format, ids| String::from_utf8(written(format, ids)).unwrap();
    let ids: Texts = ["x", "y", "z,"].into_iter().collect();
    assert_eq!(
        text(PredictionFormat::Csv, Some(&ids)),
        "id,rank,label,score,probability\n\
         x,1,d,0.9,\nx,2,a,0.25,\nx,3,\"b \"\"c\"\"\",0.25,\n\"z,\",1,\"b \"\"c\"\"\",-1.5,\n"
    );
    assert_eq!(
        text(PredictionFormat::Csv, None),
        "row,rank,label,score,probability\n\
         0,1,d,0.9,\n0,2,a,0.25,\n0,3,\"b \"\"c\"\"\",0.25,\n2,1,\"b \"\"c\"\"\",-1.5,\n"
    );
    assert_eq!(
        text(PredictionFormat::Tsv, None),
        "0\td\t0.9\n0\ta\t0.25\n0\tb \"c\"\t0.25\n2\tb \"c\"\t-1.5\n"
    );
}

#[test]
fn probabilities_and_skipped_points_are_written() {
    let labels = labels();
    let write = |format| {
        let mut writer = PredictionWriter::new(Vec::new(), format, labels.len());
        writer.skip();
        let answers = predictions(&labels, &[scored(0, 0.5)], true);
        writer.push(None, &answers).unwrap();
        String::from_utf8(writer.finish().unwrap()).unwrap()
    };
    assert_eq!(
        write(PredictionFormat::Csv),
        "row,rank,label,score,probability\n1,1,a,0.5,0.25\n"
    );
    assert_eq!(write(PredictionFormat::Tsv), "1\ta\t0.5\t0.25\n");
    assert_eq!(write(PredictionFormat::Sparse), "2 3\n\n0:0.5\n");
    let nothing = PredictionWriter::new(Vec::new(), PredictionFormat::Csv, labels.len());
    let header = nothing.finish().unwrap();
    assert_eq!(header, b"row,rank,label,score,probability\n");
}

#[test]
fn probabilities_of_numbered_labels_are_a_matrix_of_their_own() {
    let labels = labels();
    let mut second = Vec::new();
    let mut writer = PredictionWriter::new(Vec::new(), PredictionFormat::Sparse, labels.len())
        .with_matrix_of_probabilities(&mut second);
    let answers = predictions(&labels, &[scored(2, 0.5), scored(0, 0.25)], true);
    writer.push(None, &answers).unwrap();
    assert_eq!(writer.finish().unwrap(), b"1 3\n0:0.25 2:0.5\n");
    assert_eq!(second, b"1 3\n0:0.125 2:0.25\n");
}

#[test]
fn integers_stay_integers() {
    let mut writer = PredictionWriter::new(Vec::new(), PredictionFormat::Jsonl, 3);
    for id in [InputId::Number(17), InputId::from("17")] {
        writer.push(Some(&id), &[]).unwrap();
    }
    let expected = "{\"id\": 17, \"labels\": []}\n{\"id\": \"17\", \"labels\": []}\n";
    assert_eq!(writer.finish().unwrap(), expected.as_bytes());
}

#[test]
fn labels_that_are_not_in_the_data_keep_their_rank() {
    for other in [
        "{\"labels\": {\"d\": 1, \"unheard of\": 2}}\n",
        "label,score,row\nd,1,0\nunheard of,2,0\n",
        "0\td\t1\n0\tunheard of\t2\n",
    ] {
        let found = read(other.as_bytes(), 1, None).unwrap();
        assert_eq!(found, [[scored(3, 2.0), scored(2, 1.0)]], "{other}");
    }
}

#[test]
fn tables_of_answers_that_do_not_fit_are_reported() {
    let ids: Texts = ["x", "y", "y"].into_iter().collect();
    let check = |content: &str, ids: Option<&Texts>, expected: &str| {
        let error = read(content.as_bytes(), 3, ids).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        "id,label,score\nx,a,1\nz,a,1\n",
        Some(&ids),
        "predictions:3: found id \"z\", expected an id of the data",
    );
    check(
        "id,label,score\ny,a,1\n",
        Some(&ids),
        "found id \"y\", which several points of the data have, expected unique ids",
    );
    check(
        "id,label,score\nx,a,1\n",
        None,
        "predictions:2: found id \"x\", expected row numbers, since the data has no ids",
    );
    check(
        "row,label,score\n3,a,1\n",
        None,
        "found row \"3\", expected a number below 3",
    );
    check(
        "row,label,score\n0,a,high\n",
        None,
        "predictions:2: found score \"high\", expected a finite number",
    );
    check(
        "row,label,score\n0,a\n",
        None,
        "predictions:2: found 2 fields, expected 3 as in the header",
    );
    check(
        "0\ta\n",
        None,
        "found \"0\\ta\", expected point<TAB>label<TAB>score, perhaps with <TAB>probability",
    );
    check("0\ta\tnan\n", None, "found score \"nan\"");
}
