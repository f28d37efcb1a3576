//! The unit for systemd leaves the service little that it does not need.

use std::process::Command;

#[test]
fn the_exposure_of_the_unit_is_below_three() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/elias.service");
    let arguments = ["security", "--offline=true", "--no-pager", unit];
    let Ok(output) = Command::new("systemd-analyze").args(arguments).output() else {
        println!("systemd-analyze is not here: the unit is not checked");
        return;
    };
    let report = String::from_utf8(output.stdout).unwrap();
    let exposure = report
        .split("Overall exposure level for elias.service: ")
        .nth(1);
    let exposure = exposure.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    assert!(exposure.is_some_and(|exposure| exposure < 3.0), "{report}");
}
