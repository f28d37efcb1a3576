//! A configuration as TOML in which every key is explained.
//!
//! The words are the doc comments of the configuration's own types: there is no second text that could fall behind. A key
//! that is unset is written as a comment, with the recipe's value where the recipe has one.

use documented::DocumentedFields;

use super::{
    Ablation, Config, DataConfig, EdgeStart, EncoderConfig, EncoderKind, EnsembleConfig,
    FeaturesConfig, FinalScoreConfig, FinalScoreKind, HoldOutConfig, IndexConfig, IndexMode,
    LabelStart, LabelTexts, Parents, Pooling, Positives, Precision, PropensityModel, RankerConfig,
    RankerLoss, RankerNegatives, RatesConfig, Recipe, RecipeName, Reduction, Refit, RowUpdates,
    Searched, SecondMoments, StageConfig, TrainConfig,
};

/// Longest line of a comment.
const MAX_WIDTH: usize = 100;

/// Names and doc comments of a struct's fields, or of an enum's variants.
#[derive(Clone, Copy)]
struct Items {
    names: &'static [&'static str],
    docs: &'static [&'static str],
}

impl Items {
    const fn of<T: DocumentedFields>() -> Self {
        Items {
            names: T::FIELD_NAMES,
            docs: T::FIELD_DOCS,
        }
    }

    /// Each name with its doc comment as plain text.
    fn iter(self) -> impl Iterator<Item = (&'static str, String)> {
        let names = self.names.iter().copied();
        names.zip(self.docs.iter().map(|doc| doc.replace('`', "")))
    }
}

/// The sections of a configuration.
const SECTIONS: [(&str, Items); 13] = [
    ("data", Items::of::<DataConfig>()),
    ("features", Items::of::<FeaturesConfig>()),
    ("encoder", Items::of::<EncoderConfig>()),
    ("index", Items::of::<IndexConfig>()),
    ("rates", Items::of::<RatesConfig>()),
    ("stage1", Items::of::<StageConfig>()),
    ("stage2", Items::of::<StageConfig>()),
    ("train", Items::of::<TrainConfig>()),
    ("ranker", Items::of::<RankerConfig>()),
    ("final_score", Items::of::<FinalScoreConfig>()),
    ("hold_out", Items::of::<HoldOutConfig>()),
    ("ensemble", Items::of::<EnsembleConfig>()),
    ("ablation", Items::of::<Ablation>()),
];

/// The keys whose values have names.
const CHOICES: [(&str, Items); 19] = [
    ("recipe", Items::of::<RecipeName>()),
    ("data.propensity", Items::of::<PropensityModel>()),
    ("encoder.kind", Items::of::<EncoderKind>()),
    ("index.mode", Items::of::<IndexMode>()),
    ("train.precision", Items::of::<Precision>()),
    ("train.label_texts", Items::of::<LabelTexts>()),
    ("final_score.kind", Items::of::<FinalScoreKind>()),
    ("hold_out.refit", Items::of::<Refit>()),
    ("ablation.reduction", Items::of::<Reduction>()),
    ("ablation.positives", Items::of::<Positives>()),
    ("ablation.row_updates", Items::of::<RowUpdates>()),
    ("ablation.second_moments", Items::of::<SecondMoments>()),
    ("ablation.searched", Items::of::<Searched>()),
    ("ablation.parents", Items::of::<Parents>()),
    ("ablation.edge_start", Items::of::<EdgeStart>()),
    ("ablation.label_start", Items::of::<LabelStart>()),
    ("ablation.pooling", Items::of::<Pooling>()),
    ("ablation.ranker_loss", Items::of::<RankerLoss>()),
    ("ablation.ranker_negatives", Items::of::<RankerNegatives>()),
];

impl Config {
    /// The dotted keys of all settings, those that are unset included.
    pub fn keys() -> Vec<String> {
        let sections = SECTIONS.iter().flat_map(|(section, fields)| {
            let names = fields.names.iter();
            names.map(move |name| format!("{section}.{name}"))
        });
        std::iter::once("recipe".to_owned())
            .chain(sections)
            .collect()
    }

    /// The whole configuration as TOML, each key under a comment that says what it means.
    pub fn to_commented_toml(&self) -> String {
        let table = toml::Table::try_from(self).expect("a configuration is a TOML table");
        let by_recipe = Recipe::of(self).spelled();
        let mut text = String::new();
        for (name, doc) in Items::of::<Config>().iter() {
            let section = SECTIONS.iter().find(|(section, _)| *section == name);
            let Some((_, fields)) = section else {
                write_key(&mut text, name, &doc, name, table.get(name), None);
                continue;
            };
            text.push('\n');
            write_comment(&mut text, &doc);
            text.push_str(&format!("[{name}]\n"));
            for (field, doc) in fields.iter() {
                let key = format!("{name}.{field}");
                let value = table[name].get(field);
                write_key(&mut text, &key, &doc, field, value, by_recipe.get(&key[..]));
            }
        }
        text
    }
}

fn write_key(
    text: &mut String,
    key: &str,
    doc: &str,
    name: &str,
    value: Option<&toml::Value>,
    by_recipe: Option<&String>,
) {
    write_comment(text, doc);
    let choices = CHOICES.iter().find(|(known, _)| *known == key);
    for (variant, doc) in choices.into_iter().flat_map(|(_, choices)| choices.iter()) {
        write_comment(text, &format!("  {}: {doc}", snake_case(variant)));
    }
    text.push_str(&match (value, by_recipe) {
        (Some(value), _) => format!("{name} = {}\n", spell(value)),
        (None, Some(value)) => format!("# {name} = {value}\n"),
        (None, None) => format!("# {name} =\n"),
    });
}

/// The name of a variant as TOML spells it.
fn snake_case(name: &str) -> String {
    let mut spelled = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !spelled.is_empty() {
            spelled.push('_');
        }
        spelled.extend(c.to_lowercase());
    }
    spelled
}

/// A value as it was written: 0.05, not the 0.05000000074505806 that a wider type makes of it.
fn spell(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) => format!("{:?}", *number as f32),
        toml::Value::Array(values) => {
            let values: Vec<String> = values.iter().map(spell).collect();
            format!("[{}]", values.join(", "))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_as_what_it_was() {
        let changed = Config::default().with_value("index.kappa=5").unwrap();
        let rates = changed.with_value("rates.encoder=[0.1, 0.05]").unwrap();
        for config in [Config::default(), changed, rates] {
            let text = config.to_commented_toml();
            assert_eq!(Config::from_toml(&text).unwrap(), config, "{text}");
        }
    }

    #[test]
    fn every_key_is_there_under_its_own_words() {
        let text = Config::default().to_commented_toml();
        let lines: Vec<&str> = text.lines().collect();
        for key in Config::keys() {
            let name = key.rsplit('.').next().unwrap();
            let starts = [format!("{name} ="), format!("# {name} =")];
            let at = lines
                .iter()
                .position(|line| starts.iter().any(|start| line.starts_with(start)));
            let above = lines[at.unwrap_or_else(|| panic!("no {key}\n{text}")) - 1];
            assert!(above.starts_with("# "), "{key} has no comment above it");
        }
        assert!(text.contains("# n_clusters =\n"), "{text}");
        assert!(text.contains("# edge_start = \"recounts\"\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH));
    }

    /// Every key, set to something.
    const ALL: &str = "
        index = { n_clusters = 1, beta = 1.0, kappa = 1 }
        features.max_features = 1
        encoder = { pretrained = 'there', projection = 1, trained_layers = 1 }
        rates.edges = 1.0
        stage1.epochs = 1
        stage2.epochs = 1
        hold_out = { near_duplicates = 1.0, refit = 'ranker', folds = 1 }
        final_score = { kind = 'tree', neighbours = true }
        train.label_texts = 'on'
    ";

    #[test]
    fn the_lists_of_sections_and_choices_are_complete() {
        let mut config = Config::from_toml(ALL).unwrap();
        let elements = Recipe::of(&config).spelled();
        for (key, value) in elements
            .iter()
            .filter(|(key, _)| key.starts_with("ablation"))
        {
            config = config.with_value(&format!("{key}={value}")).unwrap();
        }
        let table = toml::Table::try_from(&config).unwrap();
        let mut keys = Vec::new();
        for (section, value) in &table {
            match value {
                toml::Value::Table(inner) => {
                    keys.extend(
                        inner
                            .iter()
                            .map(|(key, value)| (format!("{section}.{key}"), value)),
                    );
                }
                value => keys.push((section.clone(), value)),
            }
        }
        let mut names: Vec<&String> = keys.iter().map(|(key, _)| key).collect();
        let mut expected = Config::keys();
        names.sort();
        expected.sort();
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        for (key, value) in keys {
            let has_names = value.is_str() && key != "encoder.pretrained";
            let choices = CHOICES.iter().find(|(known, _)| *known == key);
            assert_eq!(choices.is_some(), has_names, "{key}");
            let is_known = |choices: &Items| {
                let names = choices.names.iter();
                names
                    .map(|name| snake_case(name))
                    .any(|name| Some(&name[..]) == value.as_str())
            };
            assert!(
                choices.is_none_or(|(_, choices)| is_known(choices)),
                "{key}"
            );
        }
    }
}
