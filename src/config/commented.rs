//! A configuration as TOML in which every key is explained.
//!
//! The words are the doc comments of the configuration's own types, read from their source at compile time: there
//! is no second text that could fall behind. A key that is unset by default is written as a comment.

use super::Config;

/// The files that declare the configuration's types.
const SOURCES: [&str; 10] = [
    include_str!("mod.rs"),
    include_str!("calibration.rs"),
    include_str!("clustering.rs"),
    include_str!("encoder.rs"),
    include_str!("ensemble.rs"),
    include_str!("features.rs"),
    include_str!("index.rs"),
    include_str!("optim.rs"),
    include_str!("ranker.rs"),
    include_str!("stage.rs"),
];

/// Longest line of a comment.
const MAX_WIDTH: usize = 100;

/// A field of a struct or a variant of an enum, with its doc comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    name: String,
    type_name: String,
    doc: String,
}

impl Config {
    /// The whole configuration as TOML, each key under a comment that says what it means.
    pub fn to_commented_toml(&self) -> String {
        let table = toml::Table::try_from(self).expect("a configuration is a TOML table");
        let mut text = String::new();
        write_table(&mut text, "", "Config", &table);
        text
    }
}

fn write_table(text: &mut String, path: &str, type_name: &str, table: &toml::Table) {
    let fields = struct_fields(type_name);
    let is_table = |field: &&Item| matches!(table.get(&field.name), Some(toml::Value::Table(_)));
    for field in fields.iter().filter(|field| !is_table(field)) {
        write_comment(text, &field.doc);
        for variant in enum_variants(&field.type_name) {
            write_comment(text, &format!("  {}: {}", variant.name, variant.doc));
        }
        match table.get(&field.name) {
            Some(value) => text.push_str(&format!("{} = {}\n", field.name, spell(value))),
            None => text.push_str(&format!("# {} =\n", field.name)),
        }
    }
    for field in fields.iter().filter(is_table) {
        let Some(toml::Value::Table(inner)) = table.get(&field.name) else {
            continue;
        };
        let path = match path {
            "" => field.name.clone(),
            path => format!("{path}.{}", field.name),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        write_comment(text, &field.doc);
        text.push_str(&format!("[{path}]\n"));
        write_table(text, &path, &field.type_name, inner);
    }
}

/// A value as it was written: 0.05, not the 0.05000000074505806 that a wider type makes of it.
fn spell(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) => format!("{:?}", *number as f32),
        value => value.to_string(),
    }
}

fn write_comment(text: &mut String, words: &str) {
    let indent = words.len() - words.trim_start().len();
    let mut line = format!("# {}", &words[..indent]);
    let mut is_first = true;
    for word in words.split_whitespace() {
        if !is_first && MAX_WIDTH < line.chars().count() + 1 + word.chars().count() {
            text.push_str(line.trim_end());
            text.push('\n');
            line = format!("# {}{word}", " ".repeat(2 * indent));
        } else {
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_first = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The public fields of a struct of the configuration.
fn struct_fields(type_name: &str) -> Vec<Item> {
    items(&format!("pub struct {type_name} {{"), |line| {
        let (name, type_name) = line.strip_prefix("pub ")?.split_once(": ")?;
        let type_name = type_name.trim_end_matches(',');
        let inner = type_name.strip_prefix("Option<");
        let type_name = inner.map_or(type_name, |inner| inner.trim_end_matches('>'));
        Some((name.to_owned(), type_name.to_owned()))
    })
}

/// The values an enum of the configuration can take, as TOML spells them.
fn enum_variants(type_name: &str) -> Vec<Item> {
    items(&format!("pub enum {type_name} {{"), |line| {
        let name = line.strip_suffix(',')?;
        name.chars().all(char::is_alphanumeric).then(|| {
            let mut spelled = String::new();
            for c in name.chars() {
                if c.is_uppercase() && !spelled.is_empty() {
                    spelled.push('_');
                }
                spelled.extend(c.to_lowercase());
            }
            (spelled, String::new())
        })
    })
}

/// What is declared between a line and its closing brace, each with the doc comment above it.
fn items(opening: &str, parse: impl Fn(&str) -> Option<(String, String)>) -> Vec<Item> {
    let body = SOURCES
        .iter()
        .find_map(|source| source.split_once(&format!("\n{opening}\n")));
    let Some((_, body)) = body else {
        return Vec::new();
    };
    let mut items = Vec::new();
    let mut doc = String::new();
    for line in body.lines().take_while(|line| *line != "}") {
        let line = line.trim();
        if let Some(words) = line.strip_prefix("///") {
            doc.push_str(words);
        } else if let Some((name, type_name)) = parse(line) {
            let doc = std::mem::take(&mut doc).trim().replace('`', "");
            items.push(Item {
                name,
                type_name,
                doc,
            });
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_as_what_it_was() {
        let changed = Config::default().with_value("index.kappa=5").unwrap();
        for config in [Config::default(), changed] {
            let text = config.to_commented_toml();
            assert_eq!(Config::from_toml(&text).unwrap(), config, "{text}");
        }
    }

    #[test]
    fn every_key_is_there_with_words_of_its_own() {
        let text = Config::default().to_commented_toml();
        let lines: Vec<&str> = text.lines().collect();
        let mut n_keys = 0;
        for (at, line) in lines.iter().enumerate() {
            let is_key = line
                .split_once(" = ")
                .is_some_and(|_| !line.starts_with('#'));
            let is_open = line.starts_with("# ") && line.ends_with(" =");
            if is_key || is_open || line.starts_with('[') {
                n_keys += 1;
                let above = lines[at - 1];
                let is_comment = above.starts_with("# ") && !above.ends_with(" =");
                assert!(is_comment, "{line} has no comment above it");
            }
        }
        let written = toml::to_string(&Config::default()).unwrap();
        let n_written = written.lines().filter(|line| !line.is_empty()).count();
        // Keys that are left out by default come on top.
        assert!(n_written < n_keys, "{n_written} {n_keys}\n{text}");
        assert!(text.contains("# n_clusters =\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH));
    }

    #[test]
    fn every_key_of_the_serialised_form_is_found_in_the_sources() {
        fn check(type_name: &str, table: &toml::Table) {
            let fields = struct_fields(type_name);
            for (key, value) in table {
                let field = fields.iter().find(|field| field.name == *key);
                let field = field.unwrap_or_else(|| panic!("{type_name} has no field {key}"));
                assert_ne!(field.doc, "", "{type_name}.{key}");
                if let toml::Value::Table(inner) = value {
                    check(&field.type_name, inner);
                }
            }
        }
        check("Config", &toml::Table::try_from(Config::default()).unwrap());
    }

    #[test]
    fn values_of_an_enum_are_spelled_as_toml_wants_them() {
        let names = |of: &str| -> Vec<String> {
            let variants = enum_variants(of).into_iter();
            variants.map(|variant| variant.name).collect()
        };
        assert_eq!(names("CalibrationKind"), ["judge", "tree", "released"]);
        assert_eq!(names("RankerLoss"), ["squared_hinge", "logistic"]);
        assert!(names("f32").is_empty());
    }
}
