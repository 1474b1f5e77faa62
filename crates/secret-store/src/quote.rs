//! Finds a secret in a text that a server has sent.

/// Shortest word of a secret that is looked for in messages.
const SHORTEST_WORD: usize = 8;

/// Returns true if the message quotes a word of the text, in whichever form the text was written.
pub(crate) fn quotes(message: &str, text: &str) -> bool {
    let is_in_word = |char: char| char.is_ascii_alphanumeric() || "+/=_-.".contains(char);
    let mut words = text.split(|char| !is_in_word(char)).filter(|word| word.len() >= SHORTEST_WORD);
    words.any(|word| message.contains(word))
}
