//! An HTTP body as it arrives: by length, in chunks, or until the connection ends.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use zeroize::Zeroizing;

/// The longest line of a head or of a chunk's size.
const LONGEST_LINE: u64 = 16 * 1024;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After the chunk of length 0.
    Chunked,
    /// With the connection.
    UntilEnd,
}

/// A body that is read piece by piece.
pub(super) struct Body<S> {
    stream: S,
    framing: Framing,
    /// What is left of the body, or of the chunk.
    left: u64,
    in_chunk: bool,
    ended: bool,
}

/// Reads a line and takes its end off; an error where the stream ends before.
pub(super) async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    (&mut *stream).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_not_text| io::ErrorKind::InvalidData.into())
}

/// Appends without leaving a copy behind where the buffer has to grow.
pub(super) fn append(buffer: &mut Zeroizing<Vec<u8>>, bytes: &[u8]) {
    if buffer.capacity() - buffer.len() < bytes.len() {
        let mut larger = Vec::with_capacity((buffer.len() + bytes.len()).next_power_of_two());
        larger.extend_from_slice(buffer);
        *buffer = Zeroizing::new(larger);
    }
    buffer.extend_from_slice(bytes);
}

impl<S: AsyncBufRead + Unpin> Body<S> {
    pub(super) fn new(stream: S, framing: Framing) -> Self {
        let left = if let Framing::Length(length) = framing { length } else { 0 };
        Self { stream, framing, left, in_chunk: false, ended: false }
    }

    /// Appends what has arrived, at least one byte; says whether there may be more.
    pub(super) async fn piece(&mut self, buffer: &mut Zeroizing<Vec<u8>>) -> io::Result<bool> {
        if self.ended || !self.begin().await? {
            self.ended = true;
            return Ok(false);
        }
        let arrived = self.stream.fill_buf().await?;
        if arrived.is_empty() {
            self.ended = true;
            return match self.framing {
                Framing::UntilEnd => Ok(false),
                Framing::Length(_) | Framing::Chunked => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let mut taken = arrived.len();
        if self.framing != Framing::UntilEnd {
            taken = taken.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= taken as u64;
        }
        append(buffer, arrived.get(..taken).unwrap_or_default());
        self.stream.consume(taken);
        Ok(true)
    }

    /// Goes to where the next bytes of content are; says whether there are any.
    async fn begin(&mut self) -> io::Result<bool> {
        match self.framing {
            Framing::UntilEnd => return Ok(true),
            Framing::Length(_) => return Ok(self.left > 0),
            Framing::Chunked if self.left > 0 => return Ok(true),
            Framing::Chunked => {}
        }
        if self.in_chunk && !line(&mut self.stream).await?.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let size = line(&mut self.stream).await?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        self.left = u64::from_str_radix(digits, 16).map_err(|_no_number| io::ErrorKind::InvalidData)?;
        self.in_chunk = true;
        if self.left == 0 {
            while !line(&mut self.stream).await?.is_empty() {}
        }
        Ok(self.left > 0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    async fn whole(text: &str, framing: Framing) -> Option<String> {
        // A buffer of three bytes: every boundary falls somewhere.
        let mut body = Body::new(tokio::io::BufReader::with_capacity(3, text.as_bytes()), framing);
        let mut buffer = Zeroizing::new(Vec::new());
        while body.piece(&mut buffer).await.ok()? {}
        Some(String::from_utf8(buffer.to_vec()).unwrap())
    }

    #[rstest]
    #[case::length("hello and more", Framing::Length(5), Some("hello"))]
    #[case::length_zero("more", Framing::Length(0), Some(""))]
    #[case::cut_short("hel", Framing::Length(5), None)]
    #[case::until_end("hello", Framing::UntilEnd, Some("hello"))]
    #[case::chunks("5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", Framing::Chunked, Some("hello!"))]
    #[case::trailers("A\r\n0123456789\r\n0\r\nX: y\r\n\r\n", Framing::Chunked, Some("0123456789"))]
    #[case::chunks_cut_short("5\r\nhello\r\n", Framing::Chunked, None)]
    #[case::no_number("x\r\nhello\r\n", Framing::Chunked, None)]
    #[case::negative("-5\r\nhello\r\n", Framing::Chunked, None)]
    #[case::larger_than_told("4\r\nhello\r\n0\r\n\r\n", Framing::Chunked, None)]
    #[case::beyond_all_numbers("fffffffffffffffff\r\n", Framing::Chunked, None)]
    #[tokio::test]
    async fn bodies(#[case] text: &str, #[case] framing: Framing, #[case] expected: Option<&str>) {
        assert_eq!(whole(text, framing).await.as_deref(), expected);
    }
}
