//! Prices of the parts of a fabric, and the cost of a fabric.

use pathweave_scenario::units::Rate;
use pathweave_scenario::{Diagnostic, FieldPath, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A price list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency of the prices. Default: "USD".
    #[serde(default = "usd")]
    pub currency: String,
    /// Price of a host: a GPU with its share of a server. Default: 0.
    #[serde(default)]
    pub host: f64,
    /// Years over which the cost is spread, for the cost of a token. Default: 4.
    #[serde(default = "four")]
    pub years: f64,
    /// Prices for each rate of a fabric's links.
    pub of: Vec<RatePrices>,
}

/// Prices of the parts for one rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePrices {
    /// Rate of the link.
    pub rate: Rate,
    /// Price of a switch port.
    pub switch_port: f64,
    /// Price of an optical transceiver. A link between switches has two.
    pub optics: f64,
    /// Price of a host port: its share of a network adapter. Default: 0.
    #[serde(default)]
    pub host_port: f64,
    /// Price of a host's link: a copper cable, or two transceivers. Default: 0.
    #[serde(default)]
    pub host_link: f64,
}

fn usd() -> String {
    "USD".to_owned()
}
fn four() -> f64 {
    4.0
}

/// Seconds of a year, which has 365.25 days.
const YEAR_S: f64 = 31_557_600.0;

/// Components of a fabric and their cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches, without parts of servers.
    pub switches: u32,
    /// Number of switch ports with a link.
    pub switch_ports: u64,
    /// Number of transceivers on links between switches.
    pub optics: u64,
    /// Number of cables of hosts or of their NICs.
    pub host_links: u64,
    /// Total cost in the currency of the prices.
    pub cost: f64,
}

impl Prices {
    /// Checks rules that the schema cannot express.
    pub(crate) fn check(&self) -> Vec<Diagnostic> {
        let prices = FieldPath::root().key("prices");
        let mut found = Vec::new();
        let mut amount = |place: FieldPath, field: &str, value: f64| {
            if !(value.is_finite() && value >= 0.0) {
                let message = format!("`{field}` cannot be {value}: expected 0 or more");
                found.push(Diagnostic::new(place.key(field), message));
            }
        };
        amount(prices.clone(), "host", self.host);
        for (i, price) in self.of.iter().enumerate() {
            let place = prices.key("of").index(i);
            amount(place.clone(), "switch_port", price.switch_port);
            amount(place.clone(), "optics", price.optics);
            amount(place.clone(), "host_port", price.host_port);
            amount(place, "host_link", price.host_link);
        }
        if !(self.years.is_finite() && self.years > 0.0) {
            let message = format!("`years` cannot be {}: expected a number above 0, such as 4", self.years);
            found.push(Diagnostic::new(prices.key("years"), message));
        }
        for (i, price) in self.of.iter().enumerate() {
            if self.of[..i].iter().any(|other| other.rate == price.rate) {
                let message = format!("{} has prices twice", price.rate);
                found.push(Diagnostic::new(prices.key("of").index(i).key("rate"), message));
            }
        }
        found
    }

    /// Returns the cost of a fabric by its parts, and `extra` more.
    pub(crate) fn cost(&self, topology: &Topology, name: &str, extra: f64) -> Result<Cost, Diagnostic> {
        let mut cost = Cost {
            hosts: topology.hosts(),
            switches: topology.network_switches(),
            cost: extra + f64::from(topology.hosts()) * self.host,
            ..Cost::default()
        };
        for cable in topology.cables() {
            let link = cable.link;
            let Some(price) = self.of.iter().find(|price| price.rate == link.rate) else {
                let known: Vec<String> = self.of.iter().map(|price| price.rate.to_string()).collect();
                let message = format!("links of {} have no price, and fabric \"{name}\" has some", link.rate);
                let place = FieldPath::root().key("prices").key("of");
                let allowed = format!("prices are of {}", known.join(", "));
                return Err(Diagnostic::new(place, message).allowed(allowed));
            };
            cost.switch_ports += u64::from(cable.switch_ports);
            cost.cost += f64::from(cable.switch_ports) * price.switch_port;
            cost.cost += f64::from(cable.host_ports) * price.host_port;
            if cable.host_ports == 0 {
                cost.optics += 2;
                cost.cost += 2.0 * price.optics;
            } else {
                cost.host_links += 1;
                cost.cost += price.host_link;
            }
        }
        Ok(cost)
    }

    /// Returns the cost of 10^6 tokens of a cluster of this cost, over the years that it lasts.
    pub(crate) fn of_million_tokens(years: f64, cost: f64, tokens_per_s: f64) -> f64 {
        1e6 * cost / (years * YEAR_S * tokens_per_s)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sweep::cluster::ClusterPlan;

    /// Returns the cost of four servers on leaves of four hosts and four spines.
    fn of_servers(server: &str, leaves: u32) -> Cost {
        let text = format!(
            "[[scenario.workload]]\nkind = 'collective'\noperation = 'all-reduce'\nsize = '64KB'\n\
             [[fabric]]\nname = 'servers'\n[fabric.topology]\nkind = 'cluster'\nservers = 4\nserver = {server}\n\
             scale_out = {{ kind = 'leaf-spine', leaves = {leaves}, spines = 4, hosts_per_leaf = 4, host_rate = '400Gbps' }}\n\
             [prices]\nof = [{{ rate = '400Gbps', switch_port = 600, optics = 500, host_port = 40, host_link = 3 }}]\n"
        );
        let plan = ClusterPlan::parse(&text, "c.toml", Path::new("")).unwrap_or_else(|why| panic!("{why}"));
        plan.costs[0].clone()
    }

    /// L leaves have 4 L links of 2 x (600 + 500) to spines, and 4 L of 600 + 40 + 3 to NICs. A NIC that GPUs share, a
    /// PCIe link, the chip of a scale-up network, and their links are parts of servers, whose rates need no price.
    #[test]
    fn parts_of_servers_are_no_parts_of_the_network() {
        let counts = |cost: &Cost| (cost.switches, cost.switch_ports, cost.optics, cost.host_links);
        for server in [
            "{ gpus = 8, nics = 4 }",
            "{ gpus = 8, nics = 4, pcie_rate = '252Gbps' }",
            "{ gpus = 8, nics = 4, scale_up = { kind = 'switch', rate = '3600Gbps', packets = true } }",
            "{ gpus = 4, pcie_rate = '252Gbps' }",
            "{ gpus = 4, scale_up = { kind = 'ring', rate = '900Gbps', packets = true } }",
            "{ gpus = 4, scale_up = { kind = 'full-mesh', rate = '900Gbps', packets = true } }",
            "{ gpus = 4 }",
        ] {
            let cost = of_servers(server, 4);
            assert_eq!(counts(&cost), (8, 48, 32, 16), "{server}");
            assert!((cost.cost - (16.0 * 2_200.0 + 16.0 * 643.0)).abs() < 1e-6, "{server}: {}", cost.cost);
        }
        for server in ["{ gpus = 8 }", "{ gpus = 4, nic_ports = 2 }", "{ gpus = 8, nics = 4, nic_ports = 2 }"]
        {
            let cost = of_servers(server, 8);
            assert_eq!(counts(&cost), (12, 96, 64, 32), "{server}");
            assert!((cost.cost - (32.0 * 2_200.0 + 32.0 * 643.0)).abs() < 1e-6, "{server}: {}", cost.cost);
        }
    }

    /// 4 years are 126,230,400 s: at 10^6 tokens a second, 126,230,400 times 10^6 tokens.
    #[test]
    fn tokens_cost_their_part_of_the_years() {
        assert!((Prices::of_million_tokens(4.0, 126_230_400.0, 1e6) - 1.0).abs() < 1e-12);
        assert!((Prices::of_million_tokens(2.0, 126_230_400.0, 1e6) - 2.0).abs() < 1e-12);
    }
}
