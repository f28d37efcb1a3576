//! Paths that do not exist.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// The error of a path that cannot be opened; if it does not exist, with the most similar name beside it.
pub(crate) fn missing(path: &Path, error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        return Error::io(path, "open", error);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let siblings = fs::read_dir(directory).into_iter().flatten().flatten();
    let nearest = siblings
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (edit_distance(&wanted, &name), name))
        .min();
    let hint = match nearest {
        Some((distance, name)) if distance <= 1 + wanted.chars().count() / 4 => {
            format!("; did you mean {}?", path.with_file_name(name).display())
        }
        _ if !directory.is_dir() => format!("; there is no directory {}", directory.display()),
        _ => String::new(),
    };
    Error::NotFound {
        path: path.to_path_buf(),
        hint,
    }
}

/// Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut costs: Vec<usize> = (0..=b.len()).collect();
    for (i, a_char) in a.chars().enumerate() {
        let mut diagonal = costs[0];
        costs[0] = i + 1;
        for (j, &b_char) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a_char != b_char);
            diagonal = costs[j + 1];
            costs[j + 1] = replaced.min(diagonal + 1).min(costs[j] + 1);
        }
    }
    costs[b.len()]
}
