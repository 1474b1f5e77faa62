//! Lines out of the pieces in which a connection delivers them.

use futures_util::stream::{BoxStream, StreamExt as _};

use crate::error::Error;

/// The pieces of an answer that has no end.
pub(crate) type Chunks = BoxStream<'static, Result<Vec<u8>, Error>>;

/// Cuts what arrives into lines of bounded length.
pub(crate) struct Lines {
    chunks: Chunks,
    buffer: Vec<u8>,
    /// Up to where the buffer is known to hold no line feed.
    searched: usize,
    longest: usize,
    ended: bool,
}

/// The next item.
#[derive(Debug)]
pub(crate) enum Next {
    /// A line, without its line feed.
    Line(Vec<u8>),
    /// The connection ended; with what had begun of a line.
    End(Vec<u8>),
    /// A line is longer than is read.
    TooLong,
    /// The connection broke.
    Broken(Error),
}

// === impl Lines ===

impl Lines {
    pub(crate) fn new(chunks: Chunks, longest: usize) -> Self {
        Self { chunks, buffer: Vec::new(), searched: 0, longest, ended: false }
    }

    /// The next item. Cancel-safe: nothing is lost if this is dropped before it is done.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(position) = unsearched.iter().position(|&byte| byte == b'\n') {
                let rest = self.buffer.split_off(self.searched + position + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                line.pop();
                return if line.len() > self.longest { Next::TooLong } else { Next::Line(line) };
            }
            self.searched = self.buffer.len();
            if self.searched > self.longest {
                return Next::TooLong;
            }
            if self.ended {
                return Next::End(std::mem::take(&mut self.buffer));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(&chunk),
                Some(Err(error)) => return Next::Broken(error),
                None => self.ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn lines(chunks: &[&str]) -> Vec<String> {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(chunk.as_bytes().to_vec())).collect();
        let mut lines = Lines::new(stream::iter(chunks).boxed(), 10);
        let mut items = Vec::new();
        loop {
            match lines.next().await {
                Next::Line(line) => items.push(String::from_utf8(line).unwrap()),
                Next::End(rest) => break items.push(format!("end {}", String::from_utf8(rest).unwrap())),
                Next::TooLong => break items.push("too long".to_owned()),
                Next::Broken(error) => panic!("{error}"),
            }
        }
        items
    }

    #[tokio::test]
    async fn lines_are_put_together_however_they_arrive() {
        assert_eq!(lines(&["a\nb", "c", "", "d\n\ne\n"]).await, ["a", "bcd", "", "e", "end "]);
        assert_eq!(lines(&["a\nb"]).await, ["a", "end b"]);
        assert_eq!(lines(&[]).await, ["end "]);
    }

    #[tokio::test]
    async fn a_line_has_a_longest_length() {
        assert_eq!(lines(&["0123456789\n", "01234567890\n"]).await, ["0123456789", "too long"]);
        assert_eq!(lines(&["01234", "56789", "0"]).await, ["too long"]);
    }
}
