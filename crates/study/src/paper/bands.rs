//! Published bands in a picture: the range in which a claim places its curve, relative to the value it is compared
//! with in this run.

use crate::paper::chart::Band;
use crate::paper::claims::{Weight, covered_points};
use crate::paper::draw::look;
use crate::paper::model::{Claim, Compare, Series, Variant};
use crate::paper::plan::{FigurePlan, Point};

/// Returns the bands of the published claims about `measure` at `point`, drawn at `x`. Ends are in the measure's base
/// unit divided by `unit`.
pub(crate) fn bands(figure: &FigurePlan, point: &Point, measure: &str, x: f64, unit: f64) -> Vec<Band> {
    let file = &figure.figure.file;
    let series = &file.series[point.series];
    if !carries_published(&file.series, series) {
        return Vec::new();
    }
    let at = (point.panel, point.x);
    let about = |claim: &&Claim| {
        claim.series == series.name
            && claim.measure == measure
            && Weight::of(claim) == Weight::Counts
            && covered_points(figure, claim).contains(&at)
    };
    let band = |claim: &Claim| {
        let (base, of) = match &claim.versus {
            None => (None, point.series),
            Some(versus) => {
                let plain = versus.panel.is_none() && versus.measure.is_none() && versus.at.is_none();
                let name = versus.series.as_ref().filter(|_| plain)?;
                let of = figure.point(at, name, series.variant.as_ref())?;
                let measure = file.measure.iter().position(|known| known.name == measure)?;
                (Some(figure.estimate(of, measure)?.mean), of.series)
            }
        };
        // A band includes its tolerance. A bound is a single line.
        let limits = match (claim.at_least, claim.at_most) {
            (Some(least), Some(most)) => [least - claim.tolerance, most + claim.tolerance],
            (least, most) => [least.or(most)?; 2],
        };
        let [a, b] = limits.map(|limit| match (base, claim.compare) {
            (None, _) => limit,
            (Some(base), Compare::Ratio) => base * limit,
            (Some(base), Compare::Reduction) => base * (1.0 - limit),
            (Some(base), Compare::Increase) => base * (1.0 + limit),
            (Some(base), Compare::Difference) => base + limit,
        });
        let colour = look(&file.series, of, false).colour;
        Some(Band { x, low: a.min(b) / unit, high: a.max(b) / unit, colour, place: (0, 1) })
    };
    let mut bands: Vec<Band> = file.claim.iter().filter(about).filter_map(band).collect();
    let count = bands.len();
    for (place, band) in bands.iter_mut().enumerate() {
        band.place = (place, count);
    }
    bands
}

/// Returns true for the curve at which published numbers are drawn, among the curves of one name: the first reading,
/// else the one as printed, else the only one.
fn carries_published(all: &[Series], series: &Series) -> bool {
    let rank = |series: &Series| match series.variant.as_ref().map(Variant::name) {
        Some(Variant::OURS) => 2,
        Some(Variant::AS_PRINTED) => 1,
        _ => 0,
    };
    let same = all.iter().filter(|other| other.name == series.name);
    same.min_by_key(|other| rank(other)).is_some_and(|told| std::ptr::eq(told, series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::testing::map;

    #[test]
    fn a_band_is_where_the_published_number_would_be() {
        let head = "text = 't'\nsource = 'section 1'\npublished = 'p'\nmeasure = 'm'\nseries = 'a'\nshow = 'percent'\n";
        let claims = format!(
            "[[claim]]\n{head}versus = {{ series = 'b' }}\ncompare = 'reduction'\nat_least = 0.2\nat_most = 0.4\ntolerance = 0.1\n\
             [[claim]]\n{head}at_most = 3.0\npanels = ['second']\n\
             [[claim]]\naside = true\n{head}at_most = 9.0\n"
        );
        let row: [&[Option<f64>]; 3] = [&[Some(5.0)], &[Some(10.0)], &[Some(1.0)]];
        let figure = map(&claims, &[&row, &row]);
        let of = |point: usize| {
            let bands = bands(&figure, &figure.points[point], "m", 7.0, 2.0);
            bands.iter().map(|band| (band.x, band.low, band.high)).collect::<Vec<_>>()
        };
        // 10 to 50 % below 10, divided by the unit of 2.
        assert_eq!(of(0), [(7.0, 2.5, 4.5)]);
        assert_eq!(of(3), [(7.0, 2.5, 4.5), (7.0, 1.5, 1.5)]);
        assert!(of(1).is_empty());
    }
}
