//! Labels and what a file says of each, as they are read.

use crate::data::label_texts::words_of_name;
use crate::data::{DescribedLabels, LabelSet, Texts};
use crate::error::Result;

/// Most bytes of all texts.
const MAX_BYTES: usize = 1 << 30;

/// The labels of a file, whichever the data has.
#[derive(Default)]
pub(super) struct Vocabulary {
    ids: LabelSet,
    /// By label: other names that data may call it by, the first one first.
    titles: Vec<Vec<String>>,
    /// By label: its names, synonyms and descriptions, one per line.
    texts: Vec<String>,
    n_bytes: usize,
}

/// The labels of a file, divided.
pub(super) struct Divided {
    /// The texts of each known label, one per line.
    pub(super) known: Vec<String>,
    /// The other labels, with their texts.
    pub(super) others: DescribedLabels,
}

impl Vocabulary {
    /// Adds a name, synonym or description of a label.
    ///
    /// # Errors
    /// A phrase about the file if its texts are too long.
    pub(super) fn add(&mut self, id: &str, text: &str) -> Result<(), String> {
        let place = self.place(id);
        let text = text.trim();
        self.n_bytes += text.len();
        if self.n_bytes > MAX_BYTES {
            return Err(format!(
                "its texts have more than {MAX_BYTES} bytes, which is the most that is read"
            ));
        }
        let lines = &mut self.texts[place];
        if !text.is_empty() && lines.lines().all(|line| line != text) {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
        }
        Ok(())
    }

    /// Adds a label, of which the words of its name are known.
    pub(super) fn mention(&mut self, id: &str) {
        self.place(id);
    }

    /// Adds a name that data may call a label by.
    pub(super) fn add_title(&mut self, id: &str, title: &str) {
        let place = self.place(id);
        let title = title.trim();
        if !title.is_empty() {
            self.titles[place].push(title.to_owned());
        }
    }

    /// Forgets labels.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let mut kept = Vocabulary::default();
        for (id, (titles, text)) in (self.ids.names().iter()).zip(
            std::mem::take(&mut self.titles)
                .into_iter()
                .zip(std::mem::take(&mut self.texts)),
        ) {
            if keep(id) {
                kept.ids.intern(id);
                kept.titles.push(titles);
                kept.texts.push(text);
            }
        }
        *self = kept;
    }

    /// Divides the labels into known ones and others. A label is known by its id, or by one of its titles; the others
    /// are called as most of the known ones are.
    pub(super) fn divide(self, known: &LabelSet) -> Divided {
        let mut of_known = vec![String::new(); known.len()];
        let (mut n_by_id, mut n_by_title) = (0, 0);
        let mut others = Vec::new();
        let entries = self.titles.into_iter().zip(self.texts);
        for (id, (titles, text)) in self.ids.names().iter().zip(entries) {
            let by_id = known.find(id);
            let by_title = || titles.iter().find_map(|title| known.find(title));
            n_by_id += usize::from(by_id.is_some());
            let Some(label) = by_id.or_else(by_title) else {
                others.push((id, titles, text));
                continue;
            };
            n_by_title += usize::from(by_id.is_none());
            append(&mut of_known[label.idx()], &text);
        }
        let (mut labels, mut texts) = (LabelSet::default(), Vec::<String>::new());
        for (id, titles, text) in others {
            let title = titles.first().filter(|_| n_by_id < n_by_title);
            let name = title.map_or(id, |title| title);
            let place = labels.intern(name).idx();
            if texts.len() == place {
                texts.push(words_of_name(name));
            }
            append(&mut texts[place], &text);
        }
        let texts: Texts = texts.into_iter().collect();
        Divided {
            known: of_known,
            others: DescribedLabels::new(labels, texts).expect("a text per label"),
        }
    }

    fn place(&mut self, id: &str) -> usize {
        let place = self.ids.intern(id).idx();
        if self.texts.len() == place {
            self.titles.push(Vec::new());
            self.texts.push(String::new());
        }
        place
    }
}

/// Adds lines that are not there yet.
pub(super) fn append(lines: &mut String, more: &str) {
    for line in more.lines() {
        if lines.lines().all(|known| known != line) {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(line);
        }
    }
}
