//! Pipes, archives and devices as sources.

use super::*;

/// All lines, each as its text or the message of its error.
fn read_all(bytes: &[u8], max_line_bytes: usize) -> Vec<String> {
    let mut lines = Lines::new("input".into(), Box::new(Cursor::new(bytes))).unwrap();
    lines.max_line_bytes = max_line_bytes;
    let mut found = Vec::new();
    loop {
        match lines.next() {
            Ok(None) => return found,
            Ok(Some(line)) => found.push(line.text.to_owned()),
            Err(error) => found.push(error.to_string()),
        }
    }
}

#[test]
fn reading_continues_after_a_line_that_is_not_text() {
    assert_eq!(
        read_all(b"a\nb\xff\r\nc", MAX_LINE_BYTES),
        [
            "a",
            "input:2: found byte 0xff at byte offset 3 of the file, expected UTF-8 text; if it was saved as Latin-1 or by Excel, convert it: iconv -f WINDOWS-1252 -t UTF-8 in > out",
            "c"
        ]
    );
}

#[test]
fn reading_continues_after_a_line_that_is_too_long() {
    let too_long = "x".repeat(3 * READ_BYTES);
    let found = read_all(format!("a\n{too_long}\nb\né").as_bytes(), 100_000);
    assert_eq!(found[0], "a");
    let expected = "input:2: found more than 100000 bytes without a line end, expected lines of text: \
         check that this is a text file, or split its longest texts";
    assert_eq!(found[1], expected);
    assert_eq!(found[2..], ["b", "é"]);
    let at_the_end = read_all(too_long.as_bytes(), 100_000);
    assert_eq!(at_the_end, [expected.replace(":2:", ":1:")]);
}

#[test]
fn data_after_a_gzip_stream_is_named_as_such() {
    use std::io::Write;
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(b"a\nb\n").unwrap();
    let stream = stream.finish().unwrap();
    assert_eq!(
        read_all(&[&stream[..], &stream].concat(), 100),
        ["a", "b", "a", "b"]
    );
    for garbage in [&b"garbage, and more of it"[..], &[0; 512]] {
        let mut lines = Lines::new(
            "input".into(),
            Box::new(Cursor::new([&stream, garbage].concat())),
        );
        let lines = lines.as_mut().unwrap();
        let mut next = || lines.next().map(|line| line.is_some());
        let error = std::iter::repeat_with(&mut next)
            .find_map(Result::err)
            .unwrap();
        let message = error.to_string();
        assert!(
            message.contains("after the end of the gzip stream (4 bytes"),
            "{message}"
        );
    }
}
