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
    /// Number of switches.
    pub switches: u32,
    /// Number of switch ports with a link.
    pub switch_ports: u64,
    /// Number of transceivers on links between switches.
    pub optics: u64,
    /// Number of links of hosts.
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
            switches: topology.switches().len() as u32,
            cost: extra + f64::from(topology.hosts()) * self.host,
            ..Cost::default()
        };
        for link in topology.links() {
            let Some(price) = self.of.iter().find(|price| price.rate == link.rate) else {
                let known: Vec<String> = self.of.iter().map(|price| price.rate.to_string()).collect();
                let message = format!("links of {} have no price, and fabric \"{name}\" has some", link.rate);
                let place = FieldPath::root().key("prices").key("of");
                let allowed = format!("prices are of {}", known.join(", "));
                return Err(Diagnostic::new(place, message).allowed(allowed));
            };
            let hosts = [link.a, link.b].into_iter().filter(|&node| topology.is_host(node)).count();
            if hosts == 0 {
                cost.switch_ports += 2;
                cost.optics += 2;
                cost.cost += 2.0 * (price.switch_port + price.optics);
            } else {
                let switch_ports = 2 - hosts;
                cost.switch_ports += switch_ports as u64;
                cost.host_links += 1;
                cost.cost += switch_ports as f64 * price.switch_port;
                cost.cost += hosts as f64 * price.host_port + price.host_link;
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
    use super::*;

    /// 4 years are 126,230,400 s: at 10^6 tokens a second, 126,230,400 times 10^6 tokens.
    #[test]
    fn tokens_cost_their_part_of_the_years() {
        assert!((Prices::of_million_tokens(4.0, 126_230_400.0, 1e6) - 1.0).abs() < 1e-12);
        assert!((Prices::of_million_tokens(2.0, 126_230_400.0, 1e6) - 2.0).abs() < 1e-12);
    }
}
