//! Points of a Latin hypercube.

use pathweave_units::Rng;
use toml::Value;

use crate::sweep::model::{HypercubeAxis, LatinHypercube, Scale};

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
        let mut within = |slice: u32| (f64::from(slice) + rng.unit_f64()) / f64::from(n);
        columns.push(slices.into_iter().map(|slice| domain.sample(within(slice))).collect::<Vec<_>>());
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

impl Domain {
    /// Returns the value at `u`, from 0 to 1.
    fn sample(&self, u: f64) -> Value {
        let (from, to, scale, form) = match self {
            Domain::Values(values) => {
                return values[((u * values.len() as f64) as usize).min(values.len() - 1)].clone();
            }
            Domain::Range { from, to, scale, form } => (*from, *to, *scale, form),
        };
        let step = match form {
            NumberFormat::Real => 0.0,
            NumberFormat::Whole => 1.0,
            NumberFormat::Text { decimals, .. } => libm::pow(10.0, -(*decimals as f64)),
        };
        // The range is extended by half a step at both ends. After rounding, the ends are as likely as the values
        // between them.
        let (mut low, high) = (from - step / 2.0, to + step / 2.0);
        let value = match scale {
            Scale::Linear => low + u * (high - low),
            Scale::Log => {
                if low <= 0.0 {
                    low = from;
                }
                low * libm::pow(high / low, u)
            }
        };
        let value = value.clamp(from, to);
        match form {
            NumberFormat::Whole => Value::Integer(libm::round(value).clamp(from, to) as i64),
            NumberFormat::Real => {
                Value::Float(format!("{value:.5e}").parse().expect("a formatted number parses"))
            }
            NumberFormat::Text { decimals, unit } => Value::String(format!("{value:.decimals$}{unit}")),
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

    #[test]
    fn whole_ends_give_whole_values_each_equally_often() {
        let mut values: Vec<_> =
            column(axis(1, 4, Scale::Linear), 8).iter().map(|v| v.as_integer().unwrap()).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn units_stay_and_decimals_are_those_of_the_ends() {
        for value in column(axis("0.5us", "2us", Scale::Linear), 20) {
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
