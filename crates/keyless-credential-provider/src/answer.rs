//! The answer of an HTTP/1.1 server, from the bytes of its connection.

use httparse::Status;
use zeroize::Zeroizing;

/// The most bytes of an answer, head and body together; Quay's has two thousand.
pub(crate) const LONGEST_ANSWER: usize = 64 * 1024;
/// The most headers.
const MOST_HEADERS: usize = 64;
/// The statuses that another answer follows.
const INTERIM: std::ops::Range<u16> = 100..200;

/// A complete answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

/// The place of a body's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunked,
    /// The connection's end.
    Open,
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Length,
    size: usize,
}

/// Reads an answer from what has arrived; `None` if more is to come. `is_whole` tells that the connection has ended.
pub(crate) fn read(bytes: &[u8], is_whole: bool) -> Result<Option<Answer>, &'static str> {
    let answer = read_arrived(bytes, is_whole)?;
    if answer.is_none() && is_whole {
        return Err("it ends too early");
    }
    if answer.is_none() && bytes.len() >= LONGEST_ANSWER {
        return Err("it is too large");
    }
    Ok(answer)
}

fn read_arrived(mut bytes: &[u8], is_whole: bool) -> Result<Option<Answer>, &'static str> {
    let head = loop {
        let Some(head) = head(bytes)? else { return Ok(None) };
        bytes = bytes.get(head.size..).unwrap_or_default();
        if !INTERIM.contains(&head.status) {
            break head;
        }
    };
    let body = match head.length {
        Length::Bytes(length) if length > LONGEST_ANSWER => return Err("it is too large"),
        Length::Bytes(length) => bytes.get(..length).map(|body| Zeroizing::new(body.to_vec())),
        Length::Chunked => chunks(bytes)?,
        Length::Open => is_whole.then(|| Zeroizing::new(bytes.to_vec())),
    };
    Ok(body.map(|body| Answer { status: head.status, body }))
}

fn head(bytes: &[u8]) -> Result<Option<Head>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let Status::Complete(size) = response.parse(bytes).map_err(|_malformed| "it is no HTTP")? else {
        return Ok(None);
    };
    let status = response.code.ok_or("it is no HTTP")?;
    let mut length = Length::Open;
    for header in response.headers.iter() {
        let found = if header.name.eq_ignore_ascii_case("content-length") {
            let text = str::from_utf8(header.value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            Length::Bytes(text.and_then(|text| text.parse().ok()).ok_or("its length is unclear")?)
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            header.value.eq_ignore_ascii_case(b"chunked").then_some(Length::Chunked).ok_or("its length is unclear")?
        } else {
            continue;
        };
        // Two lengths, even if only one of them is wrong, are how an answer is smuggled.
        if length != Length::Open && length != found {
            return Err("its length is unclear");
        }
        length = found;
    }
    Ok(Some(Head { status, length, size }))
}

/// Joins the pieces of a body; `None` if its end has not arrived.
fn chunks(mut bytes: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, &'static str> {
    const MALFORMED: &str = "its pieces are malformed";
    let mut body = Zeroizing::new(Vec::with_capacity(bytes.len()));
    loop {
        let size = httparse::parse_chunk_size(bytes).map_err(|_malformed| MALFORMED)?;
        let Status::Complete((start, size)) = size else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST_ANSWER).ok_or("it is too large")?;
        let Some(piece) = bytes.get(start..start + size) else { return Ok(None) };
        body.extend_from_slice(piece);
        bytes = bytes.get(start + size..).unwrap_or_default();
        bytes = match bytes {
            [b'\r', b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(MALFORMED),
        };
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The outcome for an answer that arrives byte by byte, and for one that arrives at once.
    fn arrived(text: &str) -> Result<(u16, String), &'static str> {
        let bytes = text.as_bytes();
        let slowly = (0..bytes.len()).map(|end| read(&bytes[..end], false)).chain([read(bytes, true)]);
        let slowly = slowly.into_iter().find_map(Result::transpose).unwrap();
        let read_from = |answer: Answer| (answer.status, String::from_utf8(answer.body.to_vec()).unwrap());
        let at_once = read(bytes, true).map(|answer| read_from(answer.unwrap()));
        let slowly = slowly.map(read_from);
        assert_eq!(slowly, at_once);
        slowly
    }

    #[rstest]
    #[case::length("Content-Length: 5\r\n\r\nhello", Ok("hello"))]
    #[case::length_zero("content-length: 0\r\n\r\n", Ok(""))]
    #[case::same_length_twice("Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", Ok("ab"))]
    #[case::until_end("\r\nhello", Ok("hello"))]
    #[case::chunks("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", Ok("hello!"))]
    #[case::hexadecimal("Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", Ok("0123456789"))]
    #[case::cut_short("Content-Length: 5\r\n\r\nhel", Err("it ends too early"))]
    #[case::head_cut_short("Content-Length: 5\r\n", Err("it ends too early"))]
    #[case::chunks_cut_short("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Err("it ends too early"))]
    #[case::two_lengths("Content-Length: 2\r\nContent-Length: 3\r\n\r\nab", Err("its length is unclear"))]
    #[case::length_and_chunks(
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Err("its length is unclear")
    )]
    #[case::negative("Content-Length: -2\r\n\r\nab", Err("its length is unclear"))]
    #[case::signed("Content-Length: +2\r\n\r\nab", Err("its length is unclear"))]
    #[case::compressed("Transfer-Encoding: gzip\r\n\r\nab", Err("its length is unclear"))]
    #[case::no_number("Transfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n", Err("its pieces are malformed"))]
    #[case::longer_piece("Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n", Err("its pieces are malformed"))]
    #[case::huge_piece("Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", Err("it is too large"))]
    #[case::huge("Content-Length: 65537\r\n\r\n", Err("it is too large"))]
    #[case::bad_header("X\u{1}: y\r\n\r\n", Err("it is no HTTP"))]
    fn bodies(#[case] text: &str, #[case] expected: Result<&str, &'static str>) {
        let expected = expected.map(|body| (200, body.to_owned()));
        assert_eq!(arrived(&format!("HTTP/1.1 200 OK\r\n{text}")), expected);
    }

    #[rstest]
    #[case("SSH-2.0-OpenSSH_9.2\r\n", Err("it is no HTTP"))]
    #[case("", Err("it ends too early"))]
    #[case("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 400 No\r\nContent-Length: 1\r\n\r\nx", Ok((400, "x")))]
    #[case("HTTP/1.1 100 Continue\r\n\r\n", Err("it ends too early"))]
    fn heads(#[case] text: &str, #[case] expected: Result<(u16, &str), &'static str>) {
        assert_eq!(arrived(text), expected.map(|(status, body)| (status, body.to_owned())));
    }

    #[test]
    fn an_answer_without_end_is_too_large() {
        let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(LONGEST_ANSWER));
        assert_eq!(read(long.as_bytes(), false).err(), Some("it is too large"));
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(LONGEST_ANSWER));
        assert_eq!(read(long.as_bytes(), false).err(), Some("it is too large"));
    }
}
