//! Labels of pictures. They are wrapped to the width that they have, so that none overlaps its neighbour.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::paper::picture::{Area, Backend, DrawError, FONT, prepare_fonts};

/// Text of one size, centred.
#[derive(Clone, Copy)]
pub(crate) struct Lettering {
    pub(crate) points: u32,
    pub(crate) ink: RGBColor,
}

impl Lettering {
    /// Returns the distance of two lines.
    pub(crate) fn line(self) -> u32 {
        self.points + 2
    }

    /// Returns the width of a text, which is that of the font and an eighth more: viewers of an SVG may take a wider
    /// font. A text that the font cannot measure counts as wide.
    pub(crate) fn width(self, text: &str) -> u32 {
        prepare_fonts();
        let size = (FONT, self.points).into_font().box_size(text);
        size.map_or(text.chars().count() as u32 * self.points, |(width, _)| width + width / 8)
    }

    /// Returns the lines of a text that is wrapped to `most` points: between words, and within a word that is longer.
    pub(crate) fn wrap(self, text: &str, most: u32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            if let Some(last) = lines.last_mut() {
                let joined = format!("{last} {word}");
                if self.width(&joined) <= most {
                    *last = joined;
                    continue;
                }
            }
            lines.push(String::new());
            for letter in word.chars() {
                let last = lines.last_mut().expect("a line was added");
                let longer = format!("{last}{letter}");
                if last.is_empty() || self.width(&longer) <= most {
                    *last = longer;
                } else {
                    lines.push(letter.to_string());
                }
            }
        }
        lines
    }

    /// Draws lines below each other. `top` is the middle of the upper edge of the first.
    pub(crate) fn draw<B: Backend>(
        self,
        area: &Area<B>,
        lines: &[String],
        top: (i32, i32),
    ) -> Result<(), DrawError> {
        let centred = Pos::new(HPos::Center, VPos::Top);
        let style = TextStyle::from((FONT, self.points).into_font()).color(&self.ink).pos(centred);
        for (line, y) in lines.iter().zip((top.1..).step_by(self.line() as usize)) {
            area.draw_text(line, &style, (top.0, y))?;
        }
        Ok(())
    }
}

/// Labels of an axis whose positions are `slot` points apart: the number of positions for one label, and the lines
/// of each. Where every position needs its name, words are broken. Elsewhere labels are left out instead.
pub(crate) fn axis_labels(
    lettering: Lettering,
    names: &[String],
    slot: u32,
    each: bool,
) -> (usize, Vec<Vec<String>>) {
    const GAP: u32 = 6;
    let words = names.iter().flat_map(|name| name.split_whitespace());
    let widest = words.map(|word| lettering.width(word)).max().unwrap_or(0);
    let step = if each { 1 } else { (widest + GAP).div_ceil(slot.max(1)).max(1) };
    let most = (slot * step).saturating_sub(GAP);
    (step as usize, names.iter().map(|name| lettering.wrap(name, most)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Lettering = Lettering { points: 14, ink: BLACK };

    #[test]
    fn lines_are_as_wide_as_they_may_be() {
        let name = "70 %, one byte in five between sites";
        for most in [20, 60, 114, 400] {
            let lines = SMALL.wrap(name, most);
            assert!(lines.iter().all(|line| SMALL.width(line) <= most), "{most}: {lines:?}");
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(letters(&lines.concat()), letters(name));
        }
        assert_eq!(SMALL.wrap(name, 400), [name]);
        assert_eq!(SMALL.wrap("", 100), [""; 0]);
    }

    #[test]
    fn labels_are_left_out_where_not_all_are_needed() {
        let names: Vec<String> = (0..40).map(|n| format!("{n}00MB")).collect();
        let (step, lines) = axis_labels(SMALL, &names, 12, false);
        assert!(step > 1 && lines.iter().all(|lines| lines.len() == 1), "{step}");
        let (step, lines) = axis_labels(SMALL, &names, 12, true);
        assert!(step == 1 && lines.iter().all(|lines| lines.len() > 1));
    }
}
