//! Points of a Latin hypercube.

use pathweave_units::{Bytes, Duration, Rate, Rng};
use toml::Value;

use crate::sweep::model::{HypercubeAxis, LatinHypercube, Scale};

/// Most decimals of a value, about those of a 64-bit number.
const MOST_DECIMALS: usize = 15;

/// Domain from which a dimension draws its values.
#[derive(Clone, Debug, PartialEq)]
enum Domain {
    Values(Vec<Value>),
    Range { from: f64, to: f64, scale: Scale, form: NumberFormat },
}

/// Format of the values of a range.
#[derive(Clone, Debug, PartialEq)]
enum NumberFormat {
    Whole,
    /// Real number with six significant digits.
    Real,
    /// Text of a number with this many decimals and a unit.
    Text {
        decimals: usize,
        unit: String,
    },
}

/// Returns the points: for each sample the value of each axis. An error has the index of the axis, the field, and the
/// reason.
pub(crate) fn points(cube: &LatinHypercube) -> Result<Vec<Vec<Value>>, (usize, &'static str, String)> {
    let n = cube.samples;
    let mut columns = Vec::new();
    for (d, axis) in cube.axis.iter().enumerate() {
        let domain = domain(axis).map_err(|(field, why)| (d, field, why))?;
        let mut rng = Rng::for_component(cube.seed, "latin-hypercube", d as u64);
        let mut slices: Vec<u32> = (0..n).collect();
        rng.shuffle(&mut slices);
        let mut sample = |number: u32| domain.sample(Slice { number, of: n }, rng.unit_f64());
        columns.push(slices.into_iter().map(&mut sample).collect::<Vec<_>>());
    }
    Ok((0..n as usize).map(|i| columns.iter().map(|column| column[i].clone()).collect()).collect())
}

fn domain(axis: &HypercubeAxis) -> Result<Domain, (&'static str, String)> {
    let (from, to) = match (&axis.from, &axis.to, axis.values.is_empty()) {
        (Some(from), Some(to), true) => (from, to),
        (None, None, false) => return Ok(Domain::Values(axis.values.clone())),
        _ => return Err(("key", "give `from` and `to`, or `values`".to_owned())),
    };
    let (low, low_form) = parse_bound(from).map_err(|why| ("from", why))?;
    let (high, high_form) = parse_bound(to).map_err(|why| ("to", why))?;
    let form = match (low_form, high_form) {
        (NumberFormat::Whole, NumberFormat::Whole) => NumberFormat::Whole,
        (NumberFormat::Text { decimals: a, unit }, NumberFormat::Text { decimals: b, unit: other })
            if unit == other =>
        {
            NumberFormat::Text { decimals: a.max(b), unit }
        }
        (NumberFormat::Whole | NumberFormat::Real, NumberFormat::Whole | NumberFormat::Real) => {
            NumberFormat::Real
        }
        _ => return Err(("to", format!("{to} and {from} have not the same unit; write both with one"))),
    };
    if low >= high {
        return Err(("to", format!("{to} is not above {from}")));
    }
    if axis.scale == Scale::Log && low <= 0.0 {
        return Err(("from", format!("a logarithmic range begins above 0, not at {from}")));
    }
    Ok(Domain::Range { from: low, to: high, scale: axis.scale, form })
}

fn parse_bound(value: &Value) -> Result<(f64, NumberFormat), String> {
    match value {
        Value::Integer(value) => Ok((*value as f64, NumberFormat::Whole)),
        Value::Float(value) => Ok((*value, NumberFormat::Real)),
        Value::String(text) => {
            let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
            let unit = text[digits.len()..].trim().to_owned();
            let number = digits.parse().map_err(|_| format!("\"{text}\" is not a number with a unit"))?;
            let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            Ok((number, NumberFormat::Text { decimals, unit }))
        }
        other => Err(format!(
            "{} is no end of a range: expected a number, or a text with a unit",
            other.type_str()
        )),
    }
}

/// Slice of a range.
#[derive(Clone, Copy, Debug)]
struct Slice {
    number: u32,
    of: u32,
}

impl Slice {
    /// Returns the place of a point in the whole range, both from 0 to 1.
    fn place(self, point: f64) -> f64 {
        (f64::from(self.number) + point) / f64::from(self.of)
    }
}

/// Values of a slice: those from `low` up to, and for the last slice including, `high`.
#[derive(Clone, Copy, Debug)]
struct Ends {
    low: f64,
    high: f64,
    is_last: bool,
}

impl Ends {
    fn has(self, value: f64) -> bool {
        // The ends are rounded, too.
        let rounding = (self.high - self.low) * 1e-9;
        value >= self.low - rounding
            && (value < self.high - rounding || (self.is_last && value <= self.high + rounding))
    }

    /// Returns the text of the number with so many decimals that is nearest to `value`, or of the next one if only that is
    /// in the slice. `None` if neither is.
    fn rounded(self, value: f64, decimals: usize) -> Option<String> {
        let scale = libm::pow(10.0, decimals as f64);
        let (below, above) = (libm::floor(value * scale), libm::ceil(value * scale));
        let nearest_first =
            if value * scale - below <= above - value * scale { [below, above] } else { [above, below] };
        let text = |steps: f64| format!("{:.decimals$}", steps / scale);
        let is_inside = |text: &String| text.parse().is_ok_and(|number| self.has(number));
        nearest_first.into_iter().map(text).find(is_inside)
    }
}

/// Returns the value at a place of a range, from 0 to 1.
fn at((from, to): (f64, f64), scale: Scale, place: f64) -> f64 {
    let value = match scale {
        Scale::Linear => from + place * (to - from),
        Scale::Log => from * libm::pow(to / from, place),
    };
    // Rounding must not miss the ends.
    if place >= 1.0 { to } else { value.clamp(from, to) }
}

/// Returns true if a text is a quantity with a unit, which may have no finer values than bytes or picoseconds.
fn is_quantity(text: &str) -> bool {
    text.parse::<Bytes>().is_ok() || text.parse::<Duration>().is_ok() || text.parse::<Rate>().is_ok()
}

impl Domain {
    /// Returns the value at `point` of a slice, from 0 to 1. Rounding leaves it in its slice: a slice that has no value with
    /// the decimals of the ends has one with more, unless values are whole.
    fn sample(&self, slice: Slice, point: f64) -> Value {
        let (from, to, scale, form) = match self {
            Domain::Values(values) => {
                let index = (slice.place(point) * values.len() as f64) as usize;
                return values[index.min(values.len() - 1)].clone();
            }
            Domain::Range { from, to, scale, form } => (*from, *to, *scale, form),
        };
        let edge = |edge: f64| at((from, to), scale, slice.place(edge));
        let ends = Ends { low: edge(0.0), high: edge(1.0), is_last: slice.number + 1 == slice.of };
        let value = edge(point);
        match form {
            NumberFormat::Whole => Value::Integer(match ends.rounded(value, 0) {
                Some(whole) => whole.parse().expect("a number without decimals is whole"),
                // Slices are narrower than 1. The ends are to be as likely as the values between them.
                None if scale == Scale::Linear => {
                    let wide = at((from - 0.5, to + 0.5), scale, slice.place(point));
                    libm::round(wide).clamp(from, to) as i64
                }
                None => libm::round(value).clamp(from, to) as i64,
            }),
            NumberFormat::Real => {
                let number = |digits: usize| format!("{value:.digits$e}").parse().ok();
                let found = (5..MOST_DECIMALS).filter_map(number).find(|number: &f64| ends.has(*number));
                Value::Float(found.unwrap_or(value))
            }
            NumberFormat::Text { decimals, unit } => {
                let with_unit = |decimals: usize| Some(ends.rounded(value, decimals)? + unit);
                let same = with_unit(*decimals);
                let mut finer = (decimals + 1..=MOST_DECIMALS).filter_map(with_unit);
                let found = same.or_else(|| finer.find(|text| is_quantity(text)));
                Value::String(found.unwrap_or_else(|| format!("{value:.decimals$}{unit}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis(from: impl Into<Value>, to: impl Into<Value>, scale: Scale) -> HypercubeAxis {
        HypercubeAxis { key: "x".into(), from: Some(from.into()), to: Some(to.into()), scale, values: vec![] }
    }

    fn column(axis: HypercubeAxis, samples: u32) -> Vec<Value> {
        let cube = LatinHypercube { samples, seed: 7, axis: vec![axis] };
        points(&cube).unwrap().into_iter().map(|mut point| point.remove(0)).collect()
    }

    /// Place of a value among the slices of an axis, from the value and the axis's begin.
    type Place = Box<dyn Fn(f64, f64) -> f64>;

    /// Twelve slices of one ratio from 10 to 1,000 KB: each ends 10^(1/6) above its begin.
    #[test]
    fn each_slice_has_a_point_after_rounding() {
        for seed in 0..50 {
            let axes = [
                axis("10KB", "1000KB", Scale::Log),
                axis("10KB", "30KB", Scale::Linear),
                axis("1B", "13B", Scale::Linear),
                axis("0.1us", "2us", Scale::Log),
                axis(10, 1000, Scale::Log),
                axis(0, 24, Scale::Linear),
                axis(1.0, 1.0001, Scale::Linear),
            ];
            let cube = LatinHypercube { samples: 12, seed, axis: axes.to_vec() };
            let of_point = |value: &Value| match value {
                Value::String(text) => text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap(),
                Value::Integer(whole) => *whole as f64,
                other => other.as_float().unwrap(),
            };
            let log = |ratio: f64| move |value: f64, from: f64| (value / from).ln() / ratio.ln();
            let linear = |width: f64| move |value: f64, from: f64| (value - from) / width;
            let places: [(f64, Place); 7] = [
                (10.0, Box::new(log(100f64.powf(1.0 / 12.0)))),
                (10.0, Box::new(linear(20.0 / 12.0))),
                (1.0, Box::new(linear(1.0))),
                (0.1, Box::new(log(20f64.powf(1.0 / 12.0)))),
                (10.0, Box::new(log(100f64.powf(1.0 / 12.0)))),
                (0.0, Box::new(linear(2.0))),
                (1.0, Box::new(linear(0.0001 / 12.0))),
            ];
            let found = points(&cube).unwrap();
            for (d, (from, place)) in places.iter().enumerate() {
                let mut slices: Vec<f64> =
                    found.iter().map(|point| place(of_point(&point[d]), *from)).collect();
                slices.sort_by(f64::total_cmp);
                // The end of the last slice belongs to it.
                let inside =
                    |(place, slice): (&f64, f64)| (slice - 1e-6..=slice + 1.0 + 1e-6).contains(place);
                assert!(slices.iter().zip((0..12).map(f64::from)).all(inside), "axis {d}: {slices:?}");
            }
        }
    }

    #[test]
    fn whole_ends_give_whole_values_each_equally_often() {
        let mut values: Vec<_> =
            column(axis(1, 4, Scale::Linear), 8).iter().map(|v| v.as_integer().unwrap()).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn units_stay_and_decimals_are_those_of_the_ends() {
        for value in column(axis("0.5us", "2us", Scale::Linear), 15) {
            let text = value.as_str().unwrap();
            let number = text.strip_suffix("us").unwrap();
            assert_eq!(number.split_once('.').unwrap().1.len(), 1, "{text}");
            assert!((0.5..=2.0).contains(&number.parse::<f64>().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_logarithmic_range_has_as_many_points_a_decade() {
        let values = column(axis(1.0, 1000.0, Scale::Log), 30);
        let below = |limit: f64| values.iter().filter(|v| v.as_float().unwrap() < limit).count();
        assert_eq!((below(10.0), below(100.0), below(1000.1)), (10, 20, 30));
    }

    #[test]
    fn values_are_drawn_equally_often() {
        let two = HypercubeAxis {
            values: vec!["a".into(), "b".into()],
            from: None,
            to: None,
            ..axis(0, 1, Scale::Linear)
        };
        assert_eq!(column(two, 10).iter().filter(|v| v.as_str() == Some("a")).count(), 5);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let why = |axis: HypercubeAxis| domain(&axis).unwrap_err();
        assert!(why(axis("1us", "1ms", Scale::Linear)).1.contains("same unit"));
        assert!(why(axis(3, 3, Scale::Linear)).1.contains("not above"));
        assert!(why(axis(0, 3, Scale::Log)).1.contains("above 0"));
        assert!(why(axis("fast", "faster", Scale::Linear)).1.contains("not a number with a unit"));
        assert_eq!(why(HypercubeAxis { to: None, ..axis(0, 3, Scale::Linear) }).0, "key");
    }

    proptest! {
        #[test]
        fn every_slice_is_used_once(samples in 1u32..200, seed in any::<u64>()) {
            let cube = LatinHypercube { samples, seed, axis: vec![axis(0.0, 1.0, Scale::Linear), axis(2.0, 3.0, Scale::Linear)] };
            for d in 0..2 {
                let mut slices: Vec<u32> = points(&cube)
                    .unwrap()
                    .iter()
                    // Rounding to six digits may move a point to the border of its slice.
                    .map(|p| ((p[d].as_float().unwrap() - f64::from(d as u32) * 2.0) * f64::from(samples)) as u32)
                    .collect();
                slices.sort_unstable();
                let off = slices.iter().zip(0..).filter(|(slice, i)| slice.abs_diff(*i) > 1).count();
                prop_assert_eq!(off, 0);
            }
        }
    }
}
