//! Percentiles of few flows.

/// Smallest number of flows of which a P99 is shown without a caution, and a P99.9 at all. Ten of 1,000 flows are slower
/// than their P99, and its 95 % interval lies between the fourth and the sixteenth slowest flow. With fewer, single
/// flows decide the P99, and the P99.9 is the slowest flow.
pub(crate) const FEWEST_FLOWS: u64 = 1_000;

/// Result that few slow flows leave unsure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsure {
    /// Value of one run.
    Value,
    /// Order of several runs.
    Order,
}

/// Returns a clause if a P99 of so many flows rests on a few of them.
pub(crate) fn few_flows(flows: u64, unsure: Unsure) -> Option<String> {
    if flows == 0 || flows >= FEWEST_FLOWS {
        return None;
    }
    // The rank of the percentile is rounded up.
    let slowest = flows - (flows * 99).div_ceil(100) + 1;
    let rests = if slowest == 1 { "the slowest".to_owned() } else { format!("the {slowest} slowest") };
    let of = if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") };
    let change = match unsure {
        Unsure::Value => "change it",
        Unsure::Order => "turn the order",
    };
    Some(format!("a P99 of {of} rests on {rests}, so another seed may {change}"))
}

/// Returns the words of [`few_flows`] with a capital letter.
pub fn few_flows_sentence(flows: u64, unsure: Unsure) -> Option<String> {
    few_flows(flows, unsure).map(|words| words.replacen('a', "A", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_slowest_flows_is_that_of_the_nearest_rank() {
        let words = |flows| few_flows(flows, Unsure::Order);
        // 99 % of 133 are 131.67, so the rank is 132: two flows are as slow or slower.
        assert_eq!(
            words(133).as_deref(),
            Some("a P99 of 133 flows rests on the 2 slowest, so another seed may turn the order")
        );
        assert_eq!(
            few_flows(16, Unsure::Value).as_deref(),
            Some("a P99 of 16 flows rests on the slowest, so another seed may change it")
        );
        assert!(words(999).is_some_and(|words| words.contains("the 10 slowest")));
        assert_eq!((words(1_000), words(0)), (None, None));
    }
}
