//! Claims that are not decided yet, and the runs that they need at each of the [looks](crate::paper::looks).

use std::collections::BTreeSet;

use crate::paper::claims::{curves, judge, place_of_other};
use crate::paper::looks::Looks;
use crate::paper::model::{Claim, Variant};
use crate::paper::plan::{FigurePlan, Plan};
use crate::paper::record::RecordedVerdict;
use crate::paper::rivals;
use crate::paper::standing::{Standing, judgement};
use crate::paper::state::State;

impl FigurePlan {
    /// Returns the number of leading seeds that judge a claim: all of them, or with looks those of the last look at
    /// which each of `points` has run.
    pub(crate) fn judged_seeds(&self, points: &BTreeSet<usize>) -> usize {
        let Some(looks) = &self.looks else { return self.seeds.len() };
        let has_run = |seed: usize| points.iter().all(|point| self.points[*point].observed[seed].is_some());
        let run = (0..self.seeds.len()).take_while(|seed| has_run(*seed)).count();
        looks.seeds().iter().copied().filter(|at| *at <= run).max().unwrap_or(0)
    }

    /// Returns the description of the seeds for the page.
    pub(crate) fn seeds_text(&self) -> String {
        match (&self.looks, self.seeds.len()) {
            (None, 1) => "1 seed".to_owned(),
            (None, seeds) => format!("{seeds} seeds"),
            (Some(looks), _) => {
                let at: Vec<String> = looks.seeds().iter().map(usize::to_string).collect();
                format!(
                    "Claims of the judged variant are judged after {} seeds, until they are decided; their intervals hold at \
                     all of these looks together",
                    at.join(", ")
                )
            }
        }
    }

    /// Returns the claims that decide the standing of the figure, each with its verdict's variant and state.
    fn open_claims(&self, judged: Option<&Variant>) -> Vec<(&Claim, Option<Variant>)> {
        let verdicts: Vec<(&Claim, RecordedVerdict, bool)> = self
            .figure
            .file
            .claim
            .iter()
            .flat_map(|claim| judge(self, claim).into_iter().map(move |verdict| (claim, verdict)))
            .map(|(claim, verdict)| (claim, RecordedVerdict::from(&verdict), verdict.detail.seeds == 0))
            .collect();
        let Some(judgement) = judgement(verdicts.iter().map(|(_, verdict, _)| verdict), judged) else {
            return Vec::new();
        };
        if judgement.standing == Standing::Fitted {
            return Vec::new();
        }
        let counts = |verdict: &RecordedVerdict| {
            judgement.claims.iter().any(|one| one.claim == verdict.claim && one.variant == verdict.variant)
        };
        // A claim that has run and yet has no number gets none from further seeds.
        let is_open = |verdict: &RecordedVerdict, is_new: bool| {
            verdict.state == State::Undecided && (is_new || verdict.mean.is_some())
        };
        let open =
            verdicts.iter().filter(|(_, verdict, is_new)| counts(verdict) && is_open(verdict, *is_new));
        open.map(|(claim, verdict, _)| {
            (*claim, (!verdict.variant.is_empty()).then(|| Variant::new(&verdict.variant)))
        })
        .collect()
    }

    /// Returns the indices of the points that a claim compares.
    pub(crate) fn points_of(&self, claim: &Claim, variant: Option<&Variant>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for (panel, xs, curve) in curves(self, claim, variant) {
            let own = curve.variant.as_ref();
            found.extend(xs.iter().filter_map(|x| self.point_index((panel, *x), &curve.name, own)));
            let Some(versus) = &claim.versus else { continue };
            let Some((panel, xs)) = place_of_other(self, versus, panel, &xs) else { continue };
            let names = match versus.against {
                None => vec![versus.series.as_deref().unwrap_or(&curve.name)],
                Some(_) => rivals::others(self, claim),
            };
            let places = xs.iter().flat_map(|x| names.iter().map(move |name| (*x, *name)));
            found.extend(places.filter_map(|(x, name)| self.point_index((panel, x), name, variant)));
        }
        found
    }
}

impl Plan {
    /// Lets the runs stop once the claims of the judged variant are decided. Each figure has a schedule of looks up to
    /// its number of seeds.
    #[must_use]
    pub fn until_decided(mut self) -> Self {
        for figure in &mut self.figures {
            figure.looks = Some(Looks::up_to(figure.seeds.len()));
        }
        self
    }

    /// Returns the runs of a look that are not recorded, `None` after the last look. Without looks there is one, with
    /// all runs. Otherwise a look has its number of seeds for the points that undecided claims compare.
    pub fn runs_of_look(&self, look: usize) -> Option<Vec<usize>> {
        let seeds = |figure: &FigurePlan| match &figure.looks {
            None => (look == 0).then_some(figure.seeds.len()),
            Some(looks) => looks.seeds().get(look).copied(),
        };
        let wanted: Vec<Option<(usize, BTreeSet<usize>)>> =
            self.figures.iter().map(|figure| Some((seeds(figure)?, self.open_points(figure)))).collect();
        if wanted.iter().all(Option::is_none) {
            return None;
        }
        let is_wanted = |run: usize| {
            self.uses(run).any(|at| {
                let of_figure = wanted[at.figure].as_ref();
                let is_new = self.figures[at.figure].points[at.point].observed[at.seed].is_none();
                is_new
                    && of_figure.is_some_and(|(seeds, points)| at.seed < *seeds && points.contains(&at.point))
            })
        };
        Some((0..self.runs.len()).filter(|run| is_wanted(*run)).collect())
    }

    /// Returns the points of a figure that must run: those of its undecided claims, or all without looks.
    fn open_points(&self, figure: &FigurePlan) -> BTreeSet<usize> {
        if figure.looks.is_none() {
            return (0..figure.points.len()).collect();
        }
        let open = figure.open_claims(self.paper.file.judged.as_ref()).into_iter();
        // A claim about the other size stays undecided whatever runs.
        let open = open.filter(|(claim, _)| self.size.allowed_by(claim.only));
        open.flat_map(|(claim, variant)| figure.points_of(claim, variant.as_ref())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::claims::covered_points;
    use crate::paper::testing;

    const CLAIMS: &str = "[[claim]]\ntext = 'near'\nsource = 'section 1'\npublished = 'p'\nmeasure = 'm'\n\
        show = 'ratio'\nseries = 'a'\npanels = ['first']\nversus = { series = 'b' }\nat_most = 1.0\n\
        [[claim]]\ntext = 'far'\nsource = 'section 1'\npublished = 'p'\nmeasure = 'm'\n\
        show = 'ratio'\nseries = 'a'\npanels = ['second']\nversus = { series = 'c' }\nat_most = 1.0\n\
        [[claim]]\ntext = 'a bar'\nsource = 'bar of this project'\npublished = 'p'\nmeasure = 'm'\n\
        show = 'ratio'\nseries = 'b'\npanels = ['second']\nat_most = 1.0\n";

    /// Figure of two rows with the curves a, b and c, six seeds, of which `seen` have run.
    fn figure(seen: usize) -> FigurePlan {
        let some = |values: [f64; 6]| values.map(Some);
        // Row 1: a over b is 0.5 or 1.5 in turn. Row 2: a over c is 0.5 or 0.51.
        let a = some([1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
        let two = some([2.0; 6]);
        let c = some([2.0, 5.9, 2.0, 5.9, 2.0, 5.9]);
        let mut figure = testing::map(CLAIMS, &[&[&a, &two, &c], &[&a, &two, &c]]);
        figure.looks = Some(Looks::up_to(6));
        for point in &mut figure.points {
            point.observed[seen..].iter_mut().for_each(|observed| *observed = None);
        }
        figure
    }

    #[test]
    fn open_claims_run_on_and_decided_ones_stop() {
        let open = |seen| {
            let figure = figure(seen);
            let names = figure.open_claims(None).into_iter().map(|(claim, _)| claim.text.clone());
            (names.collect::<Vec<_>>(), figure.judged_seeds(&BTreeSet::from([0])))
        };
        assert_eq!(open(0), (vec!["near".to_owned(), "far".to_owned()], 0));
        // Two of three seeds are no look.
        assert_eq!(open(2), (vec!["near".to_owned(), "far".to_owned()], 0));
        assert_eq!(open(3), (vec!["near".to_owned()], 3));
        assert_eq!(open(5), (vec!["near".to_owned()], 3));
        assert_eq!(open(6), (vec!["near".to_owned()], 6));
    }

    #[test]
    fn a_claim_needs_its_curves_in_its_panels() {
        let figure = figure(0);
        let points = |claim: usize| {
            let points = figure.points_of(&figure.figure.file.claim[claim], None);
            let of = |at: usize| (figure.points[at].panel, figure.points[at].series);
            points.into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!((points(0), points(1)), (vec![(0, 0), (0, 1)], vec![(1, 0), (1, 2)]));
        let mut claim = figure.figure.file.claim[0].clone();
        claim.versus.as_mut().unwrap().against = Some(crate::paper::model::Against::EveryOther);
        assert_eq!(figure.points_of(&claim, None).len(), 3);
        assert_eq!(covered_points(&figure, &claim), [(0, 0)]);
    }

    #[test]
    fn intervals_of_looks_are_wider() {
        let figure = figure(6);
        let found = judge(&figure, &figure.figure.file.claim[1]).remove(0);
        // Ratios 0.5 and 3/5.9 in turn: mean 0.5042, standard error 0.0019. The second of the looks 3 and 6 has two
        // thirds of the error: t(5) at 0.0333 is 2.91.
        let estimate = found.detail.estimate.unwrap();
        assert!((estimate.mean - 0.504_237).abs() < 1e-6, "{}", estimate.mean);
        let standard_error = (3.0_f64 / 5.9 - 0.5) / 2.0 * (6.0_f64 / 5.0).sqrt() / 6.0_f64.sqrt();
        assert!((estimate.ci95.unwrap() / standard_error - 2.910).abs() < 0.005, "{estimate:?}");
        assert_eq!((found.detail.seeds, found.state), (6, State::Agrees));
    }
}
