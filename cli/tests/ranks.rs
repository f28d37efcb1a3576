//! A program without MPI that mpirun started several times.
#![cfg(not(feature = "mpi"))]

use crate::careful::lines;
use crate::command::{elias, write};

#[test]
fn several_processes_without_mpi_are_refused_before_they_write_one_model() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(48));
    let model = dir.path().join("model");
    for variables in [
        [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0")],
        [("PMI_SIZE", "2"), ("PMI_RANK", "0")],
        [("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "1")],
    ] {
        let arguments = ["train", &data, "--out", model.to_str().unwrap()];
        let output = elias(arguments).envs(variables).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("--features mpi"), "{stderr}");
        assert!(!model.exists());
    }
}

#[test]
fn one_process_under_mpirun_needs_no_mpi() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(48));
    let arguments = ["train", &data, "--dry-run"];
    let started = [("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")];
    let output = elias(arguments).envs(started).output().unwrap();
    assert!(output.status.success());
}
