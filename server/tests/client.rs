//! A client of HTTP that is as rude as a test wants it to be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// A connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    /// The kind of an error.
    pub(crate) fn error_type(&self) -> String {
        let body = self.json();
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|words| !words.is_empty())
        );
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
        body["error_type"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// As [`Client::write`], to a peer that may have hung up.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request with a body and waits for its answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, more: &str, body: &[u8]) -> Reply {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {}\r\n\r\n",
            body.len()
        );
        self.write(&[head.as_bytes(), body].concat());
        self.read(method)
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.write(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes());
        self.read("GET")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Reply {
        let kind = "content-type: application/json\r\n";
        self.send("POST", path, kind, body.to_string().as_bytes())
    }

    /// Reads an answer.
    pub(crate) fn read(&mut self, method: &str) -> Reply {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let n_read = self.stream.read_line(&mut head).unwrap();
            assert_ne!(n_read, 0, "the connection ended after {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply {
            status,
            head,
            body: Vec::new(),
        };
        if let Some(length) = reply.header("content-length")
            && method != "HEAD"
        {
            reply.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut reply.body).unwrap();
        }
        reply
    }

    /// Reads until the other side closes the connection.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}
