//! Answers by hand, and wrong options.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: NcclArgs,
}

fn ask(options: &[&str]) -> Result<Answer, String> {
    let parsed = Line::try_parse_from(["nccl"].iter().chain(options)).map_err(|why| why.to_string())?;
    answer(&parsed.args).map_err(message)
}

fn message(failure: Failure) -> String {
    match failure {
        Failure::Input(text) => text,
        Failure::Scenario(findings) => findings.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Eight H100, 1 GiB: 3,972.6 us and 473.0 GB/s; sixteen servers: 6,045.8 us.
#[test]
fn the_columns_by_hand() {
    let one = ask(&["--gpu", "h100", "--min", "1G", "--max", "1G"]).unwrap();
    let [row] = &one.rows[..] else { panic!("one size") };
    assert_eq!((row.size_bytes, row.count, row.redop, row.root), (1 << 30, 1 << 28, "sum", -1));
    let (model, choice) = (row.model.unwrap(), row.choice.unwrap());
    assert!((model.time_us - 3_972.6).abs() < 0.1 && (model.busbw_gbs - 473.0).abs() < 0.1, "{row:?}");
    assert_eq!((choice.algorithm, choice.protocol), (Algorithm::Nvls, Protocol::Simple));
    // Hardware takes 4,029.4 us.
    let simulated = row.simulated.unwrap();
    assert!((simulated.simulated_us / 4_029.4 - 1.0).abs() < 0.03, "{row:?}");
    let many =
        ask(&["--servers", "16", "--nic", "400Gbps", "--min", "8", "--max", "16G", "--model-only"]).unwrap();
    assert_eq!((many.rows.len(), many.rows[0].size_bytes, many.rows[31].size_bytes), (32, 8, 1 << 34));
    let gib = many.rows.iter().find(|row| row.size_bytes == 1 << 30).unwrap();
    assert!((gib.model.unwrap().time_us - 6_045.8).abs() < 0.1, "{gib:?}");
    let gather = ask(&["--collective", "all-gather", "--min", "1M", "--max", "1M"]).unwrap();
    assert_eq!((gather.rows[0].count, gather.rows[0].redop), (32_768, "none"));
}

/// Racks of the scenario count as one server of 72 GPUs, and options choose what the file does not say.
#[test]
fn a_scenario_gives_the_servers() {
    let file = |name: &str| format!("{}/../../scenarios/clusters/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let unit = ask(&[&file("superpod"), "--min", "1G", "--max", "1G", "--model-only"]).unwrap();
    assert_eq!((unit.system.gpu, unit.system.gpus, unit.system.nics), (Gpu::H100, 8, 8));
    let rack =
        ask(&[&file("nvl72"), "--set", "topology.servers=36", "--max", "8", "--cpu", "amd", "--model-only"])
            .unwrap();
    assert_eq!((rack.system.servers, rack.system.gpus, rack.system.cpu), (2, 72, Cpu::Amd));
    let own = ask(&[&file("hpn-7"), "--gpu", "a100", "--max", "8", "--model-only"]).unwrap();
    assert_eq!((own.system.gpu, own.system.nic_rate), (Gpu::A100, Rate::from_gbps(400)));
    assert!(ask(&[&file("hpn-7")]).unwrap_err().contains("the model of GPU is not known"));
}

#[test]
fn the_text_has_a_line_for_each_size() {
    let answer = ask(&["--servers", "2", "--min", "1M", "--max", "16M", "--factor", "4"]).unwrap();
    let text = text(&answer, 8_192);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7 + 3, "{text}");
    assert_eq!(lines[0], "# all-reduce: servers: 2, each 8 h100, 8 NICs of 400Gbps");
    assert!(
        lines[2].contains("rings and trees 8 x 45 GB/s, of which 16 are opened; NVLS 8 x 40 (48"),
        "{text}"
    );
    assert!(lines[7].ends_with("tree          LL128        16"), "{text}");
}

/// An all-to-all has no cost model, and CollNet is not simulated.
#[test]
fn what_is_missing_is_left_out() {
    let pairs = ask(&["--collective", "all-to-all", "--min", "1M", "--max", "1M"]).unwrap();
    assert!(pairs.rows[0].model.is_none() && pairs.rows[0].simulated.is_some(), "{pairs:?}");
    assert!(text(&pairs, 8_192).contains(" sends\n"));
    let sharp =
        ask(&["--servers", "8", "--sharp", "--min", "1G", "--max", "1G", "--algorithm", "collnetchain"]);
    let sharp = sharp.unwrap();
    assert!(
        sharp.rows[0].simulated.is_none() && text(&sharp, 8_192).contains("# not simulated: collnetchain"),
        "{sharp:?}"
    );
    let both = ask(&["--collective", "all-to-all", "--model-only"]).unwrap_err();
    assert!(both.contains("NCCL has no cost model for sends"), "{both}");
}

#[test]
fn sizes_are_read_as_by_nccl_tests_and_with_units() {
    assert_eq!(
        ["8", "64K", "1m", "16G", "1MB", "64KiB"].map(|text| size(text).unwrap()),
        [8, 65_536, 1 << 20, 1 << 34, 1_000_000, 65_536]
    );
    for (text, why) in [("0", "allowed are 1 byte"), ("2048G", "1 TiB"), ("8x", "unit"), ("", "number")] {
        assert!(size(text).unwrap_err().contains(why), "{text}: {:?}", size(text));
    }
}

#[test]
fn wrong_options_are_named() {
    for (options, text) in [
        (&["--min", "2M", "--max", "1M"][..], "--min is 2097152 bytes, above --max, 1048576 bytes"),
        (&["--gpu", "h10"], "did you mean \"h100\"?"),
        (&["--servers", "0"], "servers = 0: must be at least 1"),
        (
            &["--algorithm", "pat"],
            "leave nothing that can do all-reduce on these servers; possible are tree/LL",
        ),
        (&["--algorithm", "rnig"], "no algorithm is named \"rnig\"; did you mean \"ring\"?"),
        (&["a.toml", "--servers", "2"], "cannot be used with"),
        (&["--set", "a=1"], "required"),
    ] {
        let why = ask(options).expect_err("refused");
        assert!(why.contains(text), "{options:?}: {why}");
    }
}
