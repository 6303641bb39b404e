//! Process groups as PyTorch writes them into a trace.

use serde::Deserialize;

/// A process group as one rank knows it. On another rank, the same name may denote another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChakraGroup {
    /// Name of the group, unique on a rank.
    pub name: String,
    /// Ranks of the group; empty if it contains all ranks.
    pub ranks: Vec<u32>,
    /// Number of ranks, if the trace states it.
    pub size: Option<u32>,
}

#[derive(Deserialize)]
struct Written {
    pg_name: String,
    #[serde(default)]
    ranks: Ranks,
    group_size: Option<u32>,
}

/// Ranks as a list, or as a map from rank to the number within the group.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ranks {
    List(Vec<u32>),
    Numbered(std::collections::BTreeMap<String, u32>),
}

impl Default for Ranks {
    fn default() -> Self {
        Ranks::List(Vec::new())
    }
}

/// Parses the groups in the inputs of a node `## process_group:init ##`: a Python list that contains JSON
/// text.
pub(super) fn parse(values: &str) -> Result<Vec<ChakraGroup>, String> {
    let wrong = |why: &dyn std::fmt::Display| {
        format!("inputs.values: expected [{{\"pg_name\": .., \"ranks\": [..], ..}}, ..]: {why}")
    };
    let json = match (values.find("[{"), values.rfind("}]")) {
        (Some(from), Some(to)) if from < to => &values[from..to + 2],
        _ => return Err(wrong(&"no such list in it")),
    };
    // Within a Python list, quotes may be escaped with a backslash.
    let plain = json.replace("\\\"", "\"");
    let groups: Vec<Written> = serde_json::from_str(&plain).map_err(|why| wrong(&why))?;
    groups.into_iter().map(|group| named(group).map_err(|why| wrong(&why))).collect()
}

fn named(group: Written) -> Result<ChakraGroup, String> {
    let ranks = match group.ranks {
        Ranks::List(ranks) => ranks,
        Ranks::Numbered(numbers) => {
            let mut by_number = Vec::with_capacity(numbers.len());
            for (rank, number) in numbers {
                let rank: u32 = rank.parse().map_err(|_| format!("\"{rank}\" is no rank"))?;
                by_number.push((number, rank));
            }
            by_number.sort_unstable();
            by_number.into_iter().map(|(_, rank)| rank).collect()
        }
    };
    Ok(ChakraGroup { name: group.pg_name, ranks, size: group.group_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_several_versions_of_pytorch() {
        let all = r#"['[{"pg_name": "0", "backend_config": "cuda:nccl", "ranks": [], "group_size": 2, "group_count": 1}]']"#;
        let group =
            |name: &str, ranks: &[u32], size| ChakraGroup { name: name.into(), ranks: ranks.to_vec(), size };
        assert_eq!(parse(all).unwrap(), [group("0", &[], Some(2))]);
        let numbered = r#"[[{\"pg_name\": \"1\", \"ranks\": {\"3\": 1, \"7\": 0}}]]"#;
        assert_eq!(parse(numbered).unwrap(), [group("1", &[7, 3], None)]);
        assert!(parse("[]").unwrap_err().contains("no such list"));
        assert!(parse("[{}]").unwrap_err().contains("missing field `pg_name`"));
        assert!(parse(r#"[{"pg_name": "1", "ranks": {"x": 0}}]"#).unwrap_err().contains("\"x\" is no rank"));
    }
}
