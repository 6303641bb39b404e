//! Distributions of message sizes: parsing, mean, sampling.

use std::fmt;

use pathweave_units::{Bytes, Rng, closest_name, suggestion};

use crate::error::{FileError, shorten};
use crate::graph::MAX_MESSAGE_SIZE;

macro_rules! builtin {
    ($($name:literal: $help:literal,)*) => {
        &[$(BuiltinCdf {
            name: $name,
            help: $help,
            text: include_str!(concat!("../cdf/", $name, ".txt")),
        },)*]
    };
}

/// A distribution built into the program. Its sources are listed in `data/cdf/README.md`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinCdf {
    /// Name in scenario files.
    pub name: &'static str,
    /// Description of the distribution, for users.
    pub help: &'static str,
    text: &'static str,
}

const BUILTIN: &[BuiltinCdf] = builtin! {
    "websearch": "web search cluster (DCTCP, 2010)",
    "alistorage": "distributed storage at Alibaba, 2019",
    "hadoop": "Hadoop cluster at Facebook, 2015",
    "googlerpc": "remote procedure calls at Google, before 2008",
    "solar": "block storage at Alibaba (Solar, 2022)",
    "datamining": "data mining cluster (VL2, 2009)",
    "rpc-homa": "remote procedure calls, as in the evaluation of LAPS",
    "cachefollower": "cache follower servers, by its name",
    "webserver": "web servers, by its name",
    "websearch-conga": "web search in other points, by its name as with CONGA",
    "datamining-conga": "data mining in other points, by its name as with CONGA",
    "llm-infer-gpt3": "messages of 192 MB (inference with GPT-3)",
    "llm-infer-llama": "messages of 64 MB (inference with LLaMA)",
};

impl BuiltinCdf {
    /// Returns the distribution.
    pub fn cdf(&self) -> SizeCdf {
        SizeCdf::parse(self.text, self.name).expect("distributions in the program are tested")
    }
}

/// Returns the distributions built into the program.
pub fn builtin_cdfs() -> &'static [BuiltinCdf] {
    BUILTIN
}

/// Scale of the probabilities in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdfScale {
    /// Probabilities from 0 to 1.
    Fraction,
    /// Probabilities from 0 to 100.
    Percent,
}

impl fmt::Display for CdfScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CdfScale::Fraction => "0 to 1",
            CdfScale::Percent => "0 to 100",
        })
    }
}

/// A cumulative distribution of message sizes, linear between its points.
///
/// A first point above probability 0 is an atom: that share of the messages has exactly its size. (Some tools
/// interpolate from 0 bytes instead, others refuse the file.) Two points of one size are an atom as well.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCdf {
    /// (bytes, probability), both ascending; the last probability is 1.
    points: Vec<(f64, f64)>,
    scale: CdfScale,
    /// Notes for the user on parts of the file that needed an interpretation.
    notes: Vec<String>,
}

/// Payload of an ns-2 packet in files of pFabric, bytes.
const NS2_PACKET_BYTES: f64 = 1_460.0;

/// Columns of the lines of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// BYTES PROBABILITY.
    Two,
    /// PACKETS COUNT PROBABILITY, the form of ns-2.
    Three,
}

impl SizeCdf {
    /// Returns a distribution built into the program. The error text suggests the nearest name.
    pub fn builtin(name: &str) -> Result<Self, String> {
        match BUILTIN.iter().find(|b| b.name == name) {
            Some(builtin) => Ok(builtin.cdf()),
            None => {
                let hint = suggestion(closest_name(name, BUILTIN.iter().map(|b| b.name)));
                let names: Vec<&str> = BUILTIN.iter().map(|b| b.name).collect();
                Err(format!(
                    "no distribution of this name{hint}; expected one of {}, or a path of a file",
                    names.join(", ")
                ))
            }
        }
    }

    /// Parses lines of "BYTES PROBABILITY", separated by blanks or a comma. Skips blank lines and lines that
    /// begin with `#`. `file` is the name in error messages.
    ///
    /// Also accepts, with a note, forms of other programs: a line of headings; the mean alone on the first
    /// line (Homa); and lines of "PACKETS COUNT PROBABILITY" with packets of 1,460 bytes (ns-2, pFabric).
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut notes = Vec::new();
        let mut form = None;
        let mut last_line = 0;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let fail = |what: String| Err(FileError::at(file, line, what));
            let blank = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
            let columns: Vec<&str> = content.split(blank).filter(|word| !word.is_empty()).take(9).collect();
            if points.is_empty() && notes.is_empty() {
                let is_number = |word: &&str| word.parse::<f64>().is_ok();
                let what = match columns[..] {
                    [mean] if is_number(&mean) => {
                        Some(format!("the first line, {mean}, is taken for the mean and not used"))
                    }
                    [_, _, ..] if !columns.iter().any(is_number) => {
                        Some("the first line is taken for headings".to_owned())
                    }
                    _ => None,
                };
                if let Some(what) = what {
                    notes.push(what);
                    continue;
                }
            }
            let (bytes, probability, columns) = match columns[..] {
                [bytes, probability] => (bytes, probability, Columns::Two),
                [packets, _, probability] => (packets, probability, Columns::Three),
                _ => return fail(format!("{} columns; expected 2: BYTES PROBABILITY", columns.len())),
            };
            if *form.get_or_insert(columns) != columns {
                return fail("another number of columns than on the lines before".to_owned());
            }
            let unit = if columns == Columns::Three { NS2_PACKET_BYTES } else { 1.0 };
            let limit = MAX_MESSAGE_SIZE.get() as f64;
            let Some(bytes) = bytes.parse().ok().map(|b: f64| b * unit).filter(|b| (0.0..=limit).contains(b))
            else {
                return fail(format!("bytes = {}: expected a number from 0 to {limit}", shorten(bytes)));
            };
            let Some(value) = probability.parse().ok().filter(|p| (0.0..=100.0).contains(p)) else {
                return fail(format!(
                    "probability = {}: expected a number from 0 to 1, or to 100",
                    shorten(probability)
                ));
            };
            if let Some(&(before, below)) = points.last() {
                if bytes < before {
                    return fail(format!(
                        "bytes = {bytes}: less than {before} on the line before; must rise"
                    ));
                }
                if value < below {
                    return fail(format!("probability = {value}: less than {below} before it; must rise"));
                }
            }
            points.push((bytes, value));
            last_line = line;
        }
        let Some(&(most, end)) = points.last() else {
            return Err(FileError::whole(file, "no points; expected lines of BYTES PROBABILITY"));
        };
        let fail = |what: String| Err(FileError::at(file, last_line, what));
        let scale = if (end - 1.0).abs() < 1e-9 {
            CdfScale::Fraction
        } else if (end - 100.0).abs() < 1e-7 {
            CdfScale::Percent
        } else {
            return fail(format!(
                "the last probability is {end}; it must be 1, or 100 on a scale of 0 to 100"
            ));
        };
        if most < 1.0 {
            return fail(format!("the largest size is {most} bytes; it must be at least 1"));
        }
        for point in &mut points {
            point.1 /= end;
        }
        if form == Some(Columns::Three) {
            let packet = NS2_PACKET_BYTES;
            notes.push(format!("three columns are taken to be PACKETS COUNT PROBABILITY of ns-2, of packets of {packet} bytes"));
        }
        Ok(SizeCdf { points, scale, notes })
    }

    /// Returns notes for the user on parts of the file that needed an interpretation.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the scale of the file's probabilities, derived from its last probability.
    pub fn scale(&self) -> CdfScale {
        self.scale
    }

    /// Returns the mean size in bytes, before rounding to whole bytes.
    pub fn mean_bytes(&self) -> f64 {
        let atom = self.points[0].0 * self.points[0].1;
        let pieces = self.points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 + w[1].0) / 2.0);
        atom + pieces.sum::<f64>()
    }

    /// Returns the size in bytes below which a share `p` (0 to 1) of the messages lies.
    pub fn quantile(&self, p: f64) -> f64 {
        let above = self.points.partition_point(|point| point.1 <= p);
        match (above.checked_sub(1).map(|i| self.points[i]), self.points.get(above)) {
            (None, _) => self.points[0].0,
            (Some((bytes, _)), None) => bytes,
            (Some((b0, p0)), Some(&(b1, p1))) => b0 + (b1 - b0) * ((p - p0) / (p1 - p0)),
        }
    }

    /// Draws a size: whole bytes, at least 1.
    pub fn sample(&self, rng: &mut Rng) -> Bytes {
        Bytes::new(((self.quantile(rng.unit_f64()) + 0.5) as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    #[test]
    fn means_of_the_distributions_in_the_program() {
        let expected = [
            ("websearch", 1.711e6),
            ("hadoop", 122e3),
            ("alistorage", 40.9e3),
            ("googlerpc", 2.97e3),
            ("solar", 39.4e3),
            ("datamining", 12.66e6),
            ("rpc-homa", 1.66e6),
        ];
        for (name, mean) in expected {
            let found = SizeCdf::builtin(name).unwrap().mean_bytes();
            assert!((found / mean - 1.0).abs() < 0.003, "{name}: {found} bytes, expected {mean}");
        }
        assert!(builtin_cdfs().iter().all(|b| SizeCdf::parse(b.text, b.name).is_ok()));
    }

    #[test]
    fn shares_of_web_search_that_reflex_rests_on() {
        let cdf = SizeCdf::builtin("websearch").unwrap();
        // The points are 10 MB at 0.97 and 30 MB at 1. 12.5 MB, the bandwidth-delay product of 1 ms at 100
        // Gb/s, lies an eighth of the distance between them.
        assert!((cdf.quantile(0.97) - 10e6).abs() < 1.0);
        assert!((cdf.quantile(0.973_75) - 12.5e6).abs() < 1.0);
        let (mut rng, n) = (Rng::for_component(1, "cdf", 1), 200_000);
        let sizes: Vec<u64> = (0..n).map(|_| cdf.sample(&mut rng).get()).collect();
        for (most, share) in [(12_500_000, 0.973_75), (10_000_000, 0.97)] {
            let found = sizes.iter().filter(|&&size| size <= most).count() as f64 / f64::from(n);
            // Three standard deviations of a share of 0.97 of 200,000 are 0.0011.
            assert!((found - share).abs() < 0.0012, "{found} up to {most} bytes, expected {share}");
        }
    }

    #[test]
    fn percent_and_fraction_are_the_same_distribution() {
        let percent = SizeCdf::parse("0 0\n1000 25\n2000 100\n", "a").unwrap();
        let fraction = SizeCdf::parse("# sizes\n0 0\n\n1000 0.25\n2000 1.0", "b").unwrap();
        assert_eq!((percent.scale(), fraction.scale()), (CdfScale::Percent, CdfScale::Fraction));
        assert_eq!(percent.points, fraction.points);
        // 0.25 * 500 + 0.75 * 1500
        assert_eq!(percent.mean_bytes(), 1250.0);
        assert_eq!(percent.quantile(0.125), 500.0);
        assert_eq!(percent.quantile(0.625), 1500.0);
        assert_eq!(percent.quantile(1.0), 2000.0);
    }

    #[test]
    fn other_forms_are_read_with_a_note() {
        let plain = SizeCdf::parse("0 0\n1460 0.5\n2920 1\n", "plain").unwrap();
        for (text, note) in [
            ("0, 0\n1460,0.5\n2920;1\n", None),
            ("bytes,cdf\n0,0\n1460,0.5\n2920,1\n", Some("the first line is taken for headings")),
            (
                "1460.5\n0 0\n1460 0.5\n2920 1\n",
                Some("the first line, 1460.5, is taken for the mean and not used"),
            ),
            ("0 1 0\n1 1 0.5\n2 1 1\n", Some("three columns are taken to be PACKETS COUNT PROBABILITY")),
        ] {
            let read = SizeCdf::parse(text, "other").unwrap();
            assert_eq!(read.points, plain.points, "{text}");
            assert_eq!(read.notes().len(), note.iter().count(), "{text}");
            assert!(note.is_none_or(|note| read.notes()[0].starts_with(note)), "{:?}", read.notes());
        }
        let mixed = SizeCdf::parse("0 0\n1 1 1\n", "f").unwrap_err().to_string();
        assert_eq!(mixed, "f:2: another number of columns than on the lines before");
    }

    #[test]
    fn the_first_point_and_steps_are_atoms() {
        let cdf = SizeCdf::parse("100 0.5\n200 0.5\n200 1", "steps").unwrap();
        assert_eq!(cdf.mean_bytes(), 150.0);
        assert_eq!((cdf.quantile(0.0), cdf.quantile(0.49), cdf.quantile(0.5)), (100.0, 100.0, 200.0));
    }

    #[test]
    fn samples_follow_the_distribution() {
        let mut rng = Rng::for_component(1, "cdf", 0);
        for name in ["alistorage", "websearch", "solar"] {
            let cdf = SizeCdf::builtin(name).unwrap();
            let n = 200_000;
            let sum: u64 = (0..n).map(|_| cdf.sample(&mut rng).get()).sum();
            let ratio = sum as f64 / f64::from(n) / cdf.mean_bytes();
            assert!((ratio - 1.0).abs() < 0.02, "{name}: mean of samples is {ratio} of the mean");
        }
    }

    #[test]
    fn errors_name_line_value_and_what_is_allowed() {
        let error = |text: &str| SizeCdf::parse(text, "f.txt").unwrap_err().to_string();
        assert_eq!(
            error("0 0\n10 0.5\n5 1"),
            "f.txt:3: bytes = 5: less than 10 on the line before; must rise"
        );
        assert_eq!(
            error("0 0\n10 0.5\n20 0.4"),
            "f.txt:3: probability = 0.4: less than 0.5 before it; must rise"
        );
        assert_eq!(
            error("0 0\n10 0.97"),
            "f.txt:2: the last probability is 0.97; it must be 1, or 100 on a scale of 0 to 100"
        );
        assert_eq!(error("0 0\n10"), "f.txt:2: 1 columns; expected 2: BYTES PROBABILITY");
        assert_eq!(error("-1 0\n10 1"), "f.txt:1: bytes = -1: expected a number from 0 to 4294967296");
        assert_eq!(
            error("0 NaN\n10 1"),
            "f.txt:1: probability = NaN: expected a number from 0 to 1, or to 100"
        );
        assert_eq!(error("\n# nothing\n"), "f.txt: no points; expected lines of BYTES PROBABILITY");
        assert!(SizeCdf::builtin("websaerch").unwrap_err().contains("did you mean \"websearch\"?"));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-z.eE#,; -]{0,12}\n){0,6}") {
            let _ = SizeCdf::parse(&text, "any");
        }

        #[test]
        fn quantiles_stay_between_their_points(mut raw in prop::collection::vec((1u32..1_000_000, 0u32..1000), 1..20), p in 0.0f64..1.0) {
            raw.sort_unstable();
            let mut probabilities: Vec<u32> = raw.iter().map(|r| r.1).collect();
            probabilities.sort_unstable();
            *probabilities.last_mut().unwrap() = 1000;
            let text: String = raw.iter().zip(&probabilities)
                .map(|(r, p)| format!("{} {}\n", r.0, f64::from(*p) / 1000.0)).collect();
            let cdf = SizeCdf::parse(&text, "generated").unwrap();
            let (low, high) = (f64::from(raw[0].0), f64::from(raw.last().unwrap().0));
            prop_assert!((low..=high).contains(&cdf.quantile(p)));
            prop_assert!((low..=high).contains(&cdf.mean_bytes()));
        }
    }
}
