//! Labels by which a lab describes itself: texts on its devices (`ip link` shows them as `alias`).
//!
//! The label of each node's loopback device has the number of the node, the size of the lab, and the lab's settings.
//! The label of each end of a link identifies the link. Any process can therefore list, change and remove a lab,
//! without a file that could be lost or outdated.

use std::fmt;
use std::str::FromStr;

use pathweave_topo::{Link, LinkId};
use pathweave_units::{Duration, Rate};

use crate::settings::{Marking, RateScale, Settings, SuperPackets};

/// Longest alias of a device in bytes (IFALIASZ without its terminating zero).
const LONGEST: usize = 255;
/// Prefixes of all labels: owner, and version of the format.
const NODE: &str = "pathweave-lab 1 node";
const LINK: &str = "pathweave-lab 1 link";

/// Label of a node's loopback device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeLabel {
    /// Number of the node.
    pub(crate) node: u32,
    /// Number of hosts, nodes and links of the whole lab.
    pub(crate) hosts: u32,
    pub(crate) nodes: u32,
    pub(crate) links: u32,
    pub(crate) settings: Settings,
    /// Name of the topology, cut if too long.
    pub(crate) topology: String,
}

/// End of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkEnd {
    A,
    B,
}

/// Label of one end of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkLabel {
    pub(crate) link: LinkId,
    pub(crate) end: LinkEnd,
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) error_rate: f64,
}

impl LinkLabel {
    pub(crate) fn new(id: LinkId, end: LinkEnd, link: &Link) -> LinkLabel {
        LinkLabel { link: id, end, rate: link.rate, delay: link.delay, error_rate: link.error_rate }
    }
}

impl fmt::Display for NodeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeLabel { node, hosts, nodes, links, settings, topology } = self;
        let Settings { rate_scale, mtu_bytes, super_packets, queue_bytes, marking } = settings;
        let super_packets = match super_packets {
            SuperPackets::On => "on",
            SuperPackets::Off => "off",
        };
        let mut text = format!(
            "{NODE}={node} hosts={hosts} nodes={nodes} links={links} scale={} mtu={mtu_bytes} \
             super={super_packets} queue={queue_bytes}",
            rate_scale.share()
        );
        if let Some(Marking { kmin_bytes, kmax_bytes, pmax_ppm, reference }) = marking {
            let reference = reference.unwrap_or(Rate::ZERO).as_bps();
            text.push_str(&format!(" ecn={kmin_bytes}:{kmax_bytes}:{pmax_ppm}:{reference}"));
        }
        text.push_str(" of=");
        text.extend(topology.chars().filter(|c| !c.is_control()));
        let fits = (0..=LONGEST.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        f.write_str(&text[..fits.unwrap_or_default()])
    }
}

impl fmt::Display for LinkLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkLabel { link, end, rate, delay, error_rate } = self;
        let end = match end {
            LinkEnd::A => "a",
            LinkEnd::B => "b",
        };
        write!(f, "{LINK}={} end={end} rate={rate} delay={delay} errors={error_rate}", link.0)
    }
}

/// Error for a text that is not a label, or one of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoLabel;

/// Returns the value of `key` in `key=value key=value ...`.
fn value<T: FromStr>(text: &str, key: &str) -> Result<T, NoLabel> {
    let found = text.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    found.and_then(|value| value.parse().ok()).ok_or(NoLabel)
}

impl FromStr for NodeLabel {
    type Err = NoLabel;

    fn from_str(text: &str) -> Result<Self, NoLabel> {
        if !text.starts_with(NODE) {
            return Err(NoLabel);
        }
        let (facts, topology) = text.split_once(" of=").ok_or(NoLabel)?;
        let super_packets = match value::<String>(facts, "super")?.as_str() {
            "on" => SuperPackets::On,
            "off" => SuperPackets::Off,
            _ => return Err(NoLabel),
        };
        let marking = match value::<String>(facts, "ecn") {
            Err(NoLabel) => None,
            Ok(text) => Some(marking(&text)?),
        };
        let label = NodeLabel {
            node: value(facts, "node")?,
            hosts: value(facts, "hosts")?,
            nodes: value(facts, "nodes")?,
            links: value(facts, "links")?,
            settings: Settings {
                rate_scale: RateScale::new(value(facts, "scale")?).map_err(|_| NoLabel)?,
                mtu_bytes: value(facts, "mtu")?,
                super_packets,
                queue_bytes: value(facts, "queue")?,
                marking,
            },
            topology: topology.to_owned(),
        };
        let sound =
            label.node < label.nodes && label.hosts <= label.nodes && label.settings.validate().is_ok();
        sound.then_some(label).ok_or(NoLabel)
    }
}

fn marking(text: &str) -> Result<Marking, NoLabel> {
    let numbers: Option<Vec<u64>> = text.split(':').map(|number| number.parse().ok()).collect();
    let Some([kmin_bytes, kmax_bytes, pmax_ppm, reference_bps]) = numbers.as_deref() else {
        return Err(NoLabel);
    };
    Ok(Marking {
        kmin_bytes: *kmin_bytes,
        kmax_bytes: *kmax_bytes,
        pmax_ppm: u32::try_from(*pmax_ppm).map_err(|_| NoLabel)?,
        reference: Some(Rate::from_bps(*reference_bps)).filter(|rate| *rate != Rate::ZERO),
    })
}

impl FromStr for LinkLabel {
    type Err = NoLabel;

    fn from_str(text: &str) -> Result<Self, NoLabel> {
        if !text.starts_with(LINK) {
            return Err(NoLabel);
        }
        let end = match value::<String>(text, "end")?.as_str() {
            "a" => LinkEnd::A,
            "b" => LinkEnd::B,
            _ => return Err(NoLabel),
        };
        Ok(LinkLabel {
            link: LinkId(value(text, "link")?),
            end,
            rate: value(text, "rate")?,
            delay: value(text, "delay")?,
            error_rate: value(text, "errors")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node_label(topology: &str) -> NodeLabel {
        NodeLabel {
            node: 5,
            hosts: 4,
            nodes: 8,
            links: 8,
            settings: Settings::new("1/1000".parse().unwrap()),
            topology: topology.to_owned(),
        }
    }

    #[test]
    fn labels_are_words_people_can_read() {
        assert_eq!(
            node_label("leaf spine").to_string(),
            "pathweave-lab 1 node=5 hosts=4 nodes=8 links=8 scale=0.001 mtu=9000 super=off queue=16000000 of=leaf spine"
        );
        let link = LinkLabel {
            link: LinkId(3),
            end: LinkEnd::B,
            rate: Rate::from_gbps(100),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        assert_eq!(link.to_string(), "pathweave-lab 1 link=3 end=b rate=100Gbps delay=1us errors=0");
        assert_eq!(link.to_string().parse(), Ok(link));
    }

    #[test]
    fn invalid_labels_are_refused() {
        for text in [
            "",
            "eth0 of the office",
            "pathweave-lab 2 node=1",
            "pathweave-lab 1 node=x hosts=1 nodes=1 links=1 scale=1 mtu=1500 super=on queue=16000 of=x",
            "pathweave-lab 1 node=1 hosts=1 nodes=1 links=1 scale=1 mtu=1500 super=on queue=16000 of=x",
            "pathweave-lab 1 node=0 hosts=1 nodes=1 links=1 scale=2 mtu=1500 super=on queue=16000 of=x",
            "pathweave-lab 1 node=0 hosts=1 nodes=1 links=1 scale=1 mtu=1500 super=on queue=16000 ecn=1:2 of=x",
        ] {
            assert_eq!(text.parse::<NodeLabel>(), Err(NoLabel), "{text}");
        }
        assert_eq!(
            "pathweave-lab 1 link=3 end=c rate=1bps delay=0ps errors=0".parse::<LinkLabel>(),
            Err(NoLabel)
        );
    }

    proptest! {
        #[test]
        fn labels_say_what_they_were_made_of(
            (node, more) in (0u32..1000, 1u32..1000),
            share in 1e-6f64..=1.0,
            mtu_bytes in 576u32..=65_535,
            queue_bytes in 10_000u64..1_000_000_000,
            marking in proptest::option::of((0u64..1 << 40, 0u64..1 << 40, 0u32..=1_000_000, 0u64..1 << 50)),
            (bps, delay_ps, error_rate) in (1u64.., any::<u64>(), 0.0f64..=1.0),
            topology in ".{0,300}",
        ) {
            let marking = marking.map(|(a, b, pmax_ppm, reference)| Marking {
                kmin_bytes: a.min(b),
                kmax_bytes: a.max(b),
                pmax_ppm,
                reference: Some(Rate::from_bps(reference)).filter(|rate| *rate != Rate::ZERO),
            });
            let settings = Settings {
                mtu_bytes,
                queue_bytes,
                marking,
                ..Settings::new(RateScale::new(share).unwrap())
            };
            let label = NodeLabel { node, hosts: more, nodes: node + more, links: more, settings, topology };
            let text = label.to_string();
            prop_assert!(text.len() <= LONGEST);
            let read: NodeLabel = text.parse().unwrap();
            prop_assert_eq!(NodeLabel { topology: String::new(), ..read }, NodeLabel { topology: String::new(), ..label });

            let link = LinkLabel {
                link: LinkId(node),
                end: LinkEnd::A,
                rate: Rate::from_bps(bps),
                delay: Duration::from_ps(delay_ps),
                error_rate,
            };
            prop_assert!(link.to_string().len() <= LONGEST);
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(pathweave-lab 1 (node|link)=)?.{0,200}") {
            let _ = (text.parse::<NodeLabel>(), text.parse::<LinkLabel>());
        }
    }
}
