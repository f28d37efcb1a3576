//! Many texts in one allocation.

/// A list of texts, kept in one buffer: 8 bytes per text in addition to its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    buffer: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text.
    pub fn push(&mut self, text: &str) {
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len());
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One text.
    ///
    /// # Panics
    /// If `text_idx` is out of range.
    pub fn get(&self, text_idx: usize) -> &str {
        let start = if text_idx == 0 {
            0
        } else {
            self.ends[text_idx - 1]
        };
        &self.buffer[start..self.ends[text_idx]]
    }

    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|text_idx| self.get(text_idx))
    }

    /// Bytes of all texts together.
    pub fn n_bytes(&self) -> usize {
        self.buffer.len()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut all = Texts::default();
        for text in texts {
            all.push(text.as_ref());
        }
        all
    }
}
