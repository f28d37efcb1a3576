//! Vocabularies in SKOS, as RDF/XML, Turtle or N-Triples.
//!
//! `skos:prefLabel`, `altLabel`, `hiddenLabel` and `definition` of every concept are read, in all languages, and those
//! of SKOS-XL not. Triples are read as they stream by: what is held in memory is the texts, and one element of the file.
//! Relations between concepts are not followed, so that cycles do no harm.

use std::io::{self, Read};

use oxrdf::{NamedOrBlankNode, Term, Triple};
use oxrdfxml::RdfXmlParser;
use oxttl::TurtleParser;

use super::vocabulary::Vocabulary;
use crate::data::io::source::Lines;
use crate::error::{Error, Result};

const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
/// Most entities that an XML file may declare, and most bytes of a declaration: enough for the prefixes of URIs.
const MAX_ENTITIES: usize = 256;
const MAX_ENTITY_BYTES: usize = 512;

/// A syntax of RDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Xml,
    /// N-Triples is a part of it.
    Turtle,
}

impl Syntax {
    /// The syntax of a file that begins with these lines, if it is one of RDF.
    pub(super) fn of(head: &str) -> Option<Syntax> {
        let first = |c| head.trim_start().starts_with(c);
        if first("<?xml") || first("<rdf:RDF") || first("<!DOCTYPE") {
            return Some(Syntax::Xml);
        }
        let mut lines = head.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let lower = line.to_ascii_lowercase();
        let is_directive = ["@prefix", "@base", "prefix ", "base "]
            .iter()
            .any(|directive| lower.starts_with(directive));
        // `<uri><TAB>name` is a vocabulary of Annif.
        let after_subject = line
            .split_once('>')
            .map_or("", |(_, rest)| rest.trim_start());
        let is_triple = line.starts_with('<')
            && (after_subject.starts_with('<') || after_subject.starts_with("a "))
            || after_subject.starts_with("skos:");
        (is_directive || is_triple).then_some(Syntax::Turtle)
    }
}

/// Reads the concepts of a vocabulary.
///
/// # Errors
/// [`Error::BadFile`] where the file ends within a statement, is no RDF, or has no concept with a name.
pub(super) fn read(lines: Lines<'_>, syntax: Syntax, vocabulary: &mut Vocabulary) -> Result<()> {
    let path = lines.path().to_path_buf();
    let bad = |problem: String| Error::BadFile {
        path: path.clone(),
        problem,
    };
    let wrong = |error: &dyn std::fmt::Display| {
        bad(crate::error::shortened(&format!(
            "is not a readable vocabulary: {error}"
        )))
    };
    let mut concepts = Concepts {
        vocabulary,
        named: std::collections::HashSet::new(),
    };
    match syntax {
        Syntax::Xml => {
            let mut reader = NoBombs::new(lines.into_reader());
            for triple in RdfXmlParser::new().for_reader(&mut reader) {
                let triple = triple.map_err(|error| wrong(&error))?;
                concepts.add(triple).map_err(bad)?;
            }
            // The parser takes the end of the file for the end of all elements.
            if !reader.is_closed() {
                return Err(wrong(&"it ends before its first element does"));
            }
        }
        Syntax::Turtle => {
            for triple in TurtleParser::new().for_reader(lines.into_reader()) {
                let triple = triple.map_err(|error| wrong(&error))?;
                concepts.add(triple).map_err(bad)?;
            }
        }
    }
    let Concepts { vocabulary, named } = concepts;
    if named.is_empty() {
        return Err(bad("has no concept with a skos:prefLabel".into()));
    }
    vocabulary.retain(|id| named.contains(id));
    Ok(())
}

/// The concepts read so far.
struct Concepts<'v> {
    vocabulary: &'v mut Vocabulary,
    /// Those that have a preferred name.
    named: std::collections::HashSet<String>,
}

impl Concepts<'_> {
    fn add(&mut self, triple: Triple) -> Result<(), String> {
        let (NamedOrBlankNode::NamedNode(concept), Term::Literal(text)) =
            (&triple.subject, &triple.object)
        else {
            return Ok(());
        };
        let (id, text) = (concept.as_str(), text.value());
        match triple.predicate.as_str().strip_prefix(SKOS) {
            Some("prefLabel") => {
                self.named.insert(id.to_owned());
                self.vocabulary.add_title(id, text);
                self.vocabulary.add(id, text)
            }
            Some("altLabel" | "hiddenLabel" | "definition") => self.vocabulary.add(id, text),
            _ => Ok(()),
        }
    }
}

/// Refuses XML whose entities would grow: those made of others, long ones, and many.
struct NoBombs<R> {
    inner: R,
    /// The declaration so far; `None` outside of one.
    declaration: Option<Vec<u8>>,
    /// Bytes of [`DECLARES`] met last.
    n_met: usize,
    n_entities: usize,
    /// The last bytes.
    tail: Vec<u8>,
}

/// Bytes that are kept of the end of a file: its last element and a comment.
const TAIL: usize = 1024;

const DECLARES: &[u8] = b"<!ENTITY";

impl<R: Read> NoBombs<R> {
    fn new(inner: R) -> Self {
        NoBombs {
            inner,
            declaration: None,
            n_met: 0,
            n_entities: 0,
            tail: Vec::new(),
        }
    }

    /// Whether the element `rdf:RDF` is closed at the end.
    fn is_closed(&self) -> bool {
        let tail = String::from_utf8_lossy(&self.tail);
        let tags = tail.rsplit('<');
        let mut tags = tags.filter(|tag| !tag.starts_with("!--"));
        tags.next()
            .is_some_and(|tag| tag.starts_with('/') && tag.trim_end().ends_with("RDF>"))
    }

    fn look(&mut self, byte: u8) -> io::Result<()> {
        let refuse = |problem: &str| {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                problem.to_owned(),
            ))
        };
        if let Some(declaration) = &mut self.declaration {
            declaration.push(byte);
            if byte == b'&' {
                return refuse("it declares an entity that is made of others");
            }
            if declaration.len() > MAX_ENTITY_BYTES {
                return refuse("it declares an entity of more than 512 bytes");
            }
            if byte == b'>' {
                self.declaration = None;
            }
            return Ok(());
        }
        self.n_met = match byte {
            _ if byte == DECLARES[self.n_met] => self.n_met + 1,
            b'<' => 1,
            _ => 0,
        };
        if self.n_met == DECLARES.len() {
            self.n_met = 0;
            self.n_entities += 1;
            self.declaration = Some(Vec::new());
            if self.n_entities > MAX_ENTITIES {
                return refuse("it declares more than 256 entities");
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for NoBombs<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        for &byte in &buffer[..n_read] {
            self.look(byte)?;
        }
        let n_kept = self.tail.len().min(TAIL.saturating_sub(n_read));
        self.tail.drain(..self.tail.len() - n_kept);
        let last = n_read.min(TAIL);
        self.tail.extend_from_slice(&buffer[n_read - last..n_read]);
        Ok(n_read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::io::label_file::read_others;

    const XML: &str = r#"<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY v "http://v/"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:ConceptScheme rdf:about="http://v/"><rdf:type rdf:resource="x:y"/></skos:ConceptScheme>
  <skos:Concept rdf:about="&v;1">
    <skos:prefLabel xml:lang="en">Pear</skos:prefLabel>
    <skos:prefLabel xml:lang="de">Birne</skos:prefLabel>
    <skos:altLabel>Pyrus
communis</skos:altLabel>
    <skos:broader rdf:resource="&v;2"/>
  </skos:Concept>
  <skos:Concept rdf:about="&v;2">
    <skos:prefLabel>Fruit</skos:prefLabel>
    <skos:broader rdf:resource="&v;1"/>
    <skos:definition>Grows &amp; ripens.</skos:definition>
  </skos:Concept>
  <skos:Concept rdf:about="&v;3"><skos:altLabel>no name</skos:altLabel></skos:Concept>
</rdf:RDF>
"#;

    fn read(name: &str, file: &str) -> Result<Vec<(String, String)>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, file).unwrap();
        let read = read_others(&path, &crate::data::LabelSet::default())?;
        let both = read.labels().names().iter().zip(read.texts().iter());
        Ok(both
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect())
    }

    fn expected() -> Vec<(String, String)> {
        let of = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        vec![
            of("http://v/1", "Pear\nBirne\nPyrus communis"),
            of("http://v/2", "Fruit\nGrows & ripens."),
        ]
    }

    #[test]
    fn every_syntax_gives_the_same_concepts() {
        let turtle = "# fruits\n@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://v/1> skos:prefLabel \"Pear\"@en, \"Birne\"@de ; skos:altLabel \"Pyrus\\ncommunis\" ; skos:broader <http://v/2> .\n<http://v/2> skos:broader <http://v/1> ; skos:prefLabel \"Fruit\" ; skos:definition \"Grows & ripens.\" .\n<http://v/3> skos:altLabel \"no name\" .\n";
        let skos = "http://www.w3.org/2004/02/skos/core#";
        let triples = format!(
            "<http://v/1> <{skos}prefLabel> \"Pear\"@en .\n<http://v/1> <{skos}prefLabel> \"Birne\" .\n<http://v/1> <{skos}altLabel> \"Pyrus communis\" .\n<http://v/2> <{skos}prefLabel> \"Fruit\" .\n<http://v/2> <{skos}definition> \"Grows & ripens.\" .\n"
        );
        assert_eq!(read("v.rdf", XML).unwrap(), expected());
        assert_eq!(read("v.ttl", turtle).unwrap(), expected());
        assert_eq!(read("v.nt", &triples).unwrap(), expected());
    }

    #[test]
    fn damaged_files_are_errors() {
        for n_bytes in [60, 300, 420, 700, XML.len() - 12] {
            let error = read("v.rdf", &XML[..n_bytes]).unwrap_err().to_string();
            assert!(error.contains("v.rdf"), "{n_bytes}: {error}");
        }
        for file in [
            "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://v/1> skos:prefLabel \"Pear",
            "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://v/1> skos:broader <http://v/1> .\n",
            "@prefix skos <oops> .\n",
        ] {
            assert!(read("v.ttl", file).is_err(), "{file}");
        }
    }

    #[test]
    fn entities_that_grow_are_refused() {
        let file = |entities: &str| {
            format!("<?xml version=\"1.0\"?>\n<!DOCTYPE r [{entities}]>\n<r>&c;</r>\n")
        };
        let nested = "<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\"><!ENTITY c \"&b;&b;\">";
        let long = format!("<!ENTITY c \"{}\">", "a".repeat(1000));
        let many: String = (0..300).map(|n| format!("<!ENTITY c{n} \"a\">")).collect();
        for (entities, expected) in [
            (nested, "made of others"),
            (&long[..], "512 bytes"),
            (&many[..], "256 entities"),
        ] {
            let error = read("v.rdf", &file(entities)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
