//! Testbed figures repeated in a lab: their selection and their runs.
//!
//! Each measured curve becomes two curves of the same name. One is run by real hosts in a lab, the other by the
//! simulator from the same scenario.

use toml::Value;

use crate::paper::catalogue::{Catalogue, Paper};
use crate::paper::error::PaperError;
use crate::paper::model::{FigureFile, Series, Testbed, Variant};
use crate::paper::select::can_be_judged;

/// Scenario field and value that make the simulator count packet bytes as the datapath sends them.
const FRAMING: (&str, &str) = ("network.framing", "pathweave");

impl Paper {
    /// Returns the ids of the figures that were measured on a testbed.
    pub fn testbed_figures(&self) -> impl Iterator<Item = &str> {
        let figures = self.figures.iter().filter(|figure| figure.file.testbed.is_some());
        figures.map(|figure| figure.id.as_str())
    }

    /// Reduces the paper to its testbed figures, each with measured and simulated curves. `wanted` is a figure that
    /// the user asked for. `carrier` names the transport that carries packets, for the page.
    ///
    /// # Errors
    /// If the paper has no testbed figure, or if `wanted` is not one.
    pub fn on_testbed(
        mut self,
        catalogue: &Catalogue,
        wanted: Option<&str>,
        carrier: &str,
    ) -> Result<Paper, PaperError> {
        let known: Vec<&str> = self.testbed_figures().collect();
        if known.is_empty() {
            let mut papers = Vec::new();
            for name in catalogue.names() {
                if catalogue.paper(name)?.testbed_figures().next().is_some() {
                    papers.push(name);
                }
            }
            let known = if papers.is_empty() {
                "no paper has any".to_owned()
            } else {
                format!("papers with such figures: {}", papers.join(", "))
            };
            return Err(PaperError::NoTestbed { what: format!("{} has no figures", self.name), known });
        }
        if let Some(id) = wanted {
            let figure = self.figure(id)?;
            if figure.file.testbed.is_none() {
                let known = format!("figures of a testbed: {}", known.join(", "));
                return Err(PaperError::NoTestbed {
                    what: format!("figure {} of {} is not", figure.id, self.name),
                    known,
                });
            }
        }
        self.figures.retain(|figure| figure.file.testbed.is_some());
        for figure in &mut self.figures {
            split_curves(&mut figure.file);
        }
        let file = &mut self.file;
        file.title =
            format!("{}: figures of the testbed, in a lab", file.title.split(':').next().unwrap_or_default());
        file.judged = Some(Variant::new(Variant::MEASURED));
        file.notes = vec![
            format!(
                "Measured: real traffic in a lab on one machine, with network namespaces for hosts and switches, virtual Ethernet \
                 links with token buckets, and the kernel's forwarding. The real datapath moves it over {carrier}, with the \
                 scheme as it runs on hosts made of software. Rates of links are scaled down, and times are told in the \
                 scenario's time: at 1/100, a second in the lab is 10 ms here."
            ),
            "Simulated: the same scenario at its own rates, which is the scaled one in the scenario's time; packets take the bytes \
             that the datapath sends. The lab has no delays of links: what hosts made of software take stands in their place."
                .to_owned(),
        ];
        Ok(self)
    }
}

/// Replaces the curves of a testbed figure by measured and simulated ones, and drops the claims about other curves.
fn split_curves(file: &mut FigureFile) {
    let Some(Testbed { schemes, says, seeds, set }) = file.testbed.clone() else { return };
    let is_measured =
        |series: &&Series| series.scheme.as_ref().is_some_and(|scheme| schemes.contains(scheme));
    let twice = |series: &Series| {
        [Variant::MEASURED, Variant::SIMULATED].map(|variant| {
            let mut series = Series { variant: Some(Variant::new(variant)), ..series.clone() };
            series.set.extend(set.clone());
            series
        })
    };
    file.series = file.series.iter().filter(is_measured).flat_map(twice).collect();
    let names: Vec<&str> = file.series.iter().map(|series| series.name.as_str()).collect();
    file.claim.retain(|claim| can_be_judged(claim, &names));
    file.published.retain(|published| names.contains(&published.series.as_str()));
    file.set.insert(FRAMING.0.to_owned(), Value::String(FRAMING.1.to_owned()));
    for change in [&mut file.quick, &mut file.full] {
        change.seeds = seeds.or(change.seeds);
        change.says = [change.says.as_str(), says.as_str()].join(" ").trim().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_a_testbed_is_measured_and_simulated_and_claims_about_others_go() {
        let mut file: FigureFile = toml::from_str(
            r#"
            title = "t"
            section = "s"
            scenario = "s.toml"
            series = [
                { name = "A", variant = "ours", scheme = "udmp" },
                { name = "A", variant = "as printed", scheme = "udmp-published" },
                { name = "B", scheme = "mprdma" },
            ]
            plot = { kind = "lines", measure = "m" }
            quick = { seeds = 5, says = "Small." }
            testbed = { schemes = ["udmp"], says = "Slow.", seeds = 2, set = { "run.until" = "1ms" } }
            [[measure]]
            name = "m"
            of = "fct"
            [[claim]]
            text = "of one"
            source = "section 1"
            published = "p"
            measure = "m"
            series = "A"
            at_most = 1.0
            show = "ratio"
            [[claim]]
            text = "of both"
            source = "section 1"
            published = "p"
            measure = "m"
            series = "A"
            versus = { series = "B" }
            at_most = 1.0
            show = "ratio"
            "#,
        )
        .unwrap();
        split_curves(&mut file);
        let labels: Vec<String> = file.series.iter().map(Series::label).collect();
        assert_eq!(labels, ["A (measured)", "A (simulated)"]);
        assert!(file.series.iter().all(|series| series.scheme.as_deref() == Some("udmp")));
        assert_eq!(file.claim.iter().map(|claim| claim.text.as_str()).collect::<Vec<_>>(), ["of one"]);
        assert_eq!((file.quick.seeds, file.quick.says.as_str()), (Some(2), "Small. Slow."));
        assert_eq!(file.full.says, "Slow.");
        let text = |table: &toml::Table| {
            table.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(text(&file.set), ["network.framing=\"pathweave\""]);
        assert!(file.series.iter().all(|series| text(&series.set) == ["run.until=\"1ms\""]));
    }

    #[test]
    fn what_no_testbed_measured_is_refused_with_what_one_did() {
        let catalogue = Catalogue::embedded();
        let refused = |paper: &str, figure| {
            catalogue.paper(paper).unwrap().on_testbed(&catalogue, figure, "sockets").unwrap_err().to_string()
        };
        assert_eq!(
            refused("dlbf", None),
            "--testbed: dlbf has no figures of a testbed; papers with such figures: udmp"
        );
        assert_eq!(
            refused("udmp", Some("6a")),
            "--testbed: figure 6a of udmp is not of a testbed; figures of a testbed: 4a, 4b, 4c, 5"
        );
        assert!(refused("udmp", Some("99")).contains("no figure of udmp is named \"99\""));
        let udmp = catalogue.paper("udmp").unwrap().on_testbed(&catalogue, Some("4a"), "sockets").unwrap();
        assert_eq!(udmp.testbed_figures().collect::<Vec<_>>(), ["4a", "4b", "4c", "5"]);
        assert_eq!(udmp.file.title, "UDMP: figures of the testbed, in a lab");
    }
}
