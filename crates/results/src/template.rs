//! Built pages (`web/dist`) with places for what a run or a sweep has to show.

use serde::Serialize;

/// A page that needs no script but for its theme.
const PLAIN: &str = include_str!("page.html");
/// The style of reports.
const STYLE: &str = include_str!("../style.css");

/// A page in the look of reports, with a style of its own besides: `title` is text, `body` is HTML.
pub fn plain_page(title: &str, style: &str, body: &str) -> String {
    let texts = [("title", escape(title)), ("style", format!("{STYLE}{style}")), ("body", body.to_owned())];
    fill(PLAIN, &texts)
}

/// `text` with the characters HTML gives a meaning replaced; safe in an attribute too.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A page with texts in the places named `[[name]]`, each of which it has once and in this order. What is inserted is
/// not searched for places.
///
/// # Panics
/// If the page lacks a place.
pub fn fill(page: &str, texts: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(page.len() + texts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = page;
    for (name, text) in texts {
        let (before, after) =
            rest.split_once(&format!("[[{name}]]")).expect("the viewer has a place for every text");
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out + rest
}

/// JSON that cannot end the script element it is in.
///
/// # Panics
/// If `value` is more than plain data with text keys.
pub fn script_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain data with text keys serialises");
    text.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inserted_is_not_searched_for_places() {
        let page = fill("a [[x]] b [[y]] c", &[("x", "[[y]]".to_owned()), ("y", "2".to_owned())]);
        assert_eq!(page, "a [[y]] b 2 c");
    }

    #[test]
    fn data_cannot_end_its_script() {
        assert_eq!(script_json(&"</script>"), "\"\\u003c/script>\"");
    }
}
