//! Verdict on the runs of a comparison, for files.

use pathweave_records::{GroupJobs, Summary};
use serde::Serialize;

use crate::export::quoted;
use crate::judge::{Judgement, Measure};
use crate::metrics::figures;
use crate::overview;

/// File of a comparison with a line for each run.
pub const COMPARISON_FILE: &str = "comparison.csv";

/// Verdict on the runs of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The verdict in one sentence.
    pub sentence: String,
    measure: Measure,
    /// The runs, best first.
    pub order: Vec<Place>,
}

/// Place of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Name of the run: its scheme.
    pub run: String,
    /// Index of the run in the comparison.
    #[serde(skip)]
    index: usize,
    #[serde(skip)]
    without_value: &'static str,
    /// Value of the measure: nanoseconds for a time. `None` if a job, or for the slowdown a flow, did not finish.
    pub value: Option<f64>,
    /// Ratio of the value to the best one.
    pub over_best: Option<f64>,
    /// Jobs by workload group.
    pub jobs: Vec<GroupJobs>,
    /// P99 of the slowdown of finished flows; `None` without one.
    pub slowdown_p99: Option<f64>,
    /// Mean of the slowdown of finished flows, likewise.
    pub slowdown_mean: Option<f64>,
    /// Number of flows that did not finish.
    pub unfinished_flows: u64,
    /// Retransmission timeouts, if no packet was lost; `None` otherwise.
    pub spurious_timeouts: Option<u64>,
}

impl Place {
    /// Returns the word in place of the value of a run that has none.
    pub(crate) fn without_value(&self) -> &'static str {
        self.without_value
    }

    /// Returns the index of the run among those that were judged.
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

impl Verdict {
    /// Judges runs by job time, or if one of them has no jobs by the P99 of the slowdown, or of the completion time where the
    /// same flows have other ideal times under other schemes.
    ///
    /// # Panics
    /// Panics without a run.
    pub fn of(runs: &[&Summary]) -> Verdict {
        let judged = Judgement::of(runs);
        let place = |&index: &usize| {
            let flows = runs[index].measured();
            let finished = |value: f64| (flows.finished > 0).then_some(value);
            Place {
                run: judged.runs[index].name.clone(),
                index,
                without_value: judged.runs[index].without_value(),
                value: judged.runs[index].value,
                over_best: judged.over_best(index),
                jobs: runs[index].jobs.by_group.clone(),
                slowdown_p99: finished(flows.slowdown.p99),
                slowdown_mean: finished(flows.slowdown.mean),
                unfinished_flows: flows.unfinished + flows.failed,
                spurious_timeouts: runs[index].spurious_timeouts(),
            }
        };
        Verdict {
            sentence: overview::words(runs),
            measure: judged.measure,
            order: judged.order.iter().map(place).collect(),
        }
    }

    /// Returns the name of the measure: "job time", "P99 slowdown" or "P99 completion time".
    pub fn measure(&self) -> &'static str {
        self.measure.name()
    }

    pub(crate) fn judged_by(&self) -> Measure {
        self.measure
    }

    /// Returns a line for each run, best first, with every figure of tables. `runs` are the runs that were judged.
    pub fn csv(&self, runs: &[&Summary]) -> String {
        let value = match self.measure {
            Measure::JobTime | Measure::TailTime => "value_ns",
            Measure::TailSlowdown => "value",
        };
        let mut head = format!("place,run,measure,{value},over_best,unfinished_flows");
        let groups = self.order.first().map_or(&[][..], |first| &first.jobs);
        for group in groups {
            head += &format!(",{}", quoted(&format!("job_time_{}_ns", group.group)));
        }
        let names = runs.first().map(|first| figures(first)).unwrap_or_default();
        names.iter().for_each(|figure| head += &format!(",{}", figure.name));
        let mut text = head + "\n";
        for (number, place) in self.order.iter().enumerate() {
            // A run without a value has no place.
            let number = place.value.map_or(String::new(), |_| (number + 1).to_string());
            text += &format!(
                "{number},{},{},{},{},{}",
                quoted(&place.run),
                self.measure.name(),
                number_or_nothing(place.value),
                number_or_nothing(place.over_best),
                place.unfinished_flows
            );
            for group in groups {
                let same = place.jobs.iter().find(|jobs| jobs.group == group.group);
                text += &format!(",{}", number_or_nothing(same.and_then(|jobs| jobs.time_ns)));
            }
            let all = figures(runs[place.index]);
            all.iter().for_each(|figure| text += &format!(",{}", number_or_nothing(figure.value)));
            text += "\n";
        }
        text
    }
}

fn number_or_nothing(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus, JobRecord, RunResult};

    /// Run of two jobs, of 2 us and of the given time.
    fn run(name: &str, us: Option<u64>) -> Summary {
        let job = |group, us: Option<u64>| JobRecord {
            group,
            finish_ps: us.map(|us| us * 1_000_000),
            ..JobRecord::default()
        };
        let flow = FlowRecord {
            finish_ps: Some(3_000),
            ideal_fct_ps: 1_000,
            timeouts: 4,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let mut run =
            RunResult { flows: vec![flow], jobs: vec![job(0, Some(2)), job(1, us)], ..RunResult::default() };
        run.info.name = name.to_owned();
        run.info.schemes = vec![name.to_owned()];
        run.info.groups = vec!["a".to_owned(), "b, c".to_owned()];
        Summary::from_run(&run)
    }

    #[test]
    fn files_have_the_order_and_what_is_behind_it() {
        let runs = [run("open", None), run("slow", Some(72)), run("fast", Some(8))];
        let runs: Vec<&Summary> = runs.iter().collect();
        let verdict = Verdict::of(&runs);
        // The square roots of 2 x 8 and 2 x 72.
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!(
            (json["measure"].as_str(), json["order"][0]["run"].as_str()),
            (Some("job time"), Some("fast"))
        );
        assert!((json["order"][0]["value"].as_f64().unwrap() - 4_000.0).abs() < 1e-6);
        assert!((json["order"][1]["over_best"].as_f64().unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(json["order"][2]["value"], serde_json::Value::Null);
        assert_eq!(json["order"][2]["jobs"][1]["unfinished"], 1);
        assert_eq!(json["order"][0]["spurious_timeouts"], 4);
        assert_eq!(
            verdict.sentence,
            "fast has the shortest job time, 4 us, the geometric mean of a and b, c; slow (3.0x) follows; \
             open does not finish its job."
        );
        let csv = verdict.csv(&runs);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(
            lines[0].starts_with(
                "place,run,measure,value_ns,over_best,unfinished_flows,job_time_a_ns,\"job_time_b, c_ns\",flows,"
            ),
            "{csv}"
        );
        assert!(lines[3].starts_with(",open,job time,,,0,2000,,1,"), "{csv}");
        let columns = |line: &str| line.split(',').count();
        // The comma of the quoted name is in the heading only.
        assert_eq!(
            lines.iter().map(|line| columns(line)).collect::<Vec<_>>()[1..],
            [columns(lines[0]) - 1; 3]
        );
    }
}
