//! Built pages (`web/dist`), with placeholders for the data of a run or a sweep.

use serde::Serialize;

use crate::saved::PNG_SCRIPT;

/// A page that needs no script except for its theme.
const PLAIN: &str = include_str!("page.html");
/// Style of reports.
pub(crate) const STYLE: &str = include_str!("../style.css");

/// Returns a page in the style of reports, with additional `style`. `title` is text, `body` is HTML.
pub fn plain_page(title: &str, style: &str, body: &str) -> String {
    let texts = [
        ("title", escape(title)),
        ("style", format!("{STYLE}{style}")),
        ("body", body.to_owned()),
        ("png", PNG_SCRIPT.to_owned()),
    ];
    fill(PLAIN, &texts)
}

/// Escapes the characters that have a meaning in HTML. The result is safe in attributes, too.
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

/// Fills the placeholders `[[name]]` of a page with texts. The page has each placeholder once, and in this order.
/// Inserted texts are not searched for placeholders.
///
/// # Panics
/// Panics if the page lacks a placeholder.
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

/// Serializes JSON that cannot end the script element that contains it.
///
/// # Panics
/// Panics if `value` is more than plain data with text keys.
pub fn script_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain data with text keys serialises");
    text.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_text_is_not_searched_for_places() {
        let page = fill("a [[x]] b [[y]] c", &[("x", "[[y]]".to_owned()), ("y", "2".to_owned())]);
        assert_eq!(page, "a [[y]] b 2 c");
    }

    #[test]
    fn data_cannot_end_its_script() {
        assert_eq!(script_json(&"</script>"), "\"\\u003c/script>\"");
    }
}
