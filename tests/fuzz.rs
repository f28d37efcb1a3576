//! Hostile bytes for every reader: seeded mutations of valid inputs, the same with every run.
//!
//! The targets are shared with the coverage-guided search of `fuzz/`; see `docs/fuzzing.md`.

#[path = "../fuzz/src/mutation.rs"]
mod mutation;
#[path = "../fuzz/src/lib.rs"]
mod targets;

/// Pieces that readers have rules for.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b":",
    b",",
    b"::",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-1",
    b"0",
    b"1e39",
    b"NaN",
    b"4294967295",
    b"18446744073709551616",
    b"__label__",
    b"null",
];

fn check(name: &str, n_inputs: u64) {
    let mut all = targets::TARGETS.iter();
    let target = all.find(|target| target.name == name);
    let target = target.expect("it is one of the targets");
    mutation::run(name, &(target.seeds)(), &PIECES, n_inputs, target.run);
}

#[test]
fn no_single_file_of_data_breaks_its_reader() {
    check("lines", 20_000);
}

#[test]
fn no_files_of_data_break_their_reader() {
    check("files", 4_000);
}

#[test]
fn no_matrix_breaks_its_reader() {
    check("npz", 10_000);
}

#[test]
fn no_predictions_break_their_reader() {
    check("predictions", 10_000);
}

#[test]
fn no_text_to_predict_for_and_no_filter_breaks_its_reader() {
    check("inputs", 10_000);
}

#[test]
fn no_list_of_labels_breaks_its_reader() {
    check("labels", 5_000);
}

#[test]
fn data_through_a_pipe_is_read_as_from_memory() {
    check("pipes", 3_000);
}

#[test]
fn no_forged_model_breaks_the_loader() {
    check("model", 1_500);
}

#[test]
fn no_settings_of_a_manifest_break_the_loader_or_make_a_text_cost_more() {
    check("settings", 1_500);
}

#[test]
fn no_forged_snapshot_breaks_a_training_that_is_resumed() {
    check("training", 200);
}
