//! Places that cannot be written: reported with their path, and left as they were.
//!
//! Permissions do not bind the superuser, so the place is one that nobody can write to: below a file. A
//! file system that is mounted read-only is tested with the command line, which can have one of its own.

use super::*;
use elias::{Error, Event};

#[test]
fn a_model_below_a_file_is_refused_before_anything_is_trained() {
    let place = temporary();
    let file = place.path().join("file");
    fs::write(&file, "mine").unwrap();
    let data = dataset(120);
    let steps = |event: &Event| {
        assert!(!super::resume::is_step(event), "it trains for nothing");
        std::ops::ControlFlow::Continue(())
    };
    let below = file.join("model");
    let trainer = Trainer::new(config()).observer(&steps);
    let error = trainer.train_to(&below, &data).err().unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(
        error.to_string().contains(&below.display().to_string()),
        "{error}"
    );
    let error = train(&data).save(&below).unwrap_err();
    assert!(
        error.to_string().contains(&below.display().to_string()),
        "{error}"
    );
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
#[cfg(unix)]
fn a_directory_without_permission_to_write_is_refused_and_its_model_stays() {
    use std::os::unix::fs::PermissionsExt;
    let directory = saved_model();
    let before = contents(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let is_bound = fs::write(directory.path().join("probe"), "").is_err();
    if is_bound {
        let other = train(&dataset(96));
        let error = other.replace(directory.path()).unwrap_err();
        assert!(error.to_string().contains("Permission denied"), "{error}");
        assert_eq!(contents(directory.path()), before);
    }
    // Reading needs no permission to write, and the superuser is bound by neither.
    elias::tools::verify(directory.path()).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
}
