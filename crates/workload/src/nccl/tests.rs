//! Times by hand, and those of an oracle written apart from the model.

use super::*;
use crate::collective::Operation;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn tuner(gpu: Gpu, servers: u32, operation: Operation) -> Tuner {
    Tuner::new(&System::new(gpu, servers, 8), operation).unwrap()
}

fn chosen(tuner: &Tuner, bytes: u64) -> Choice {
    tuner.choose(bytes, &Choices::default()).unwrap()
}

fn forced(tuner: &Tuner, bytes: u64, algorithm: Algorithm, protocol: Protocol) -> Choice {
    let choices = Choices { algorithms: vec![algorithm], protocols: vec![protocol] };
    tuner.choose(bytes, &choices).unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} instead of {expected}");
}

fn name(choice: &Choice) -> String {
    format!("{}/{}", choice.algorithm, choice.protocol)
}

/// H100, one server, 64 KiB: ring/LL has 6.6 + 14 x 0.6 us, and bandwidth min(141, 360 / 2) x 8 / 14 = 80.6 GB/s.
/// Sixteen servers, 1 GiB: NVLSTree has 25 + 2 x 4 x 20.9 = 192.2 us, and 8 x 45.5 x 128 / 254 = 183.4 GB/s. Ring/Simple
/// has 1.4 x (8.4 + 224 x 3.4 + 30 x 14) = 1,666 us.
#[test]
fn times_by_hand() {
    let one = tuner(Gpu::H100, 1, Operation::AllReduce);
    let small = chosen(&one, 64 * KIB);
    close(small.latency_us, 15.0);
    close(small.transfer_us, 65_536.0 / 80_571.4);
    assert_eq!(name(&small), "ring/LL");
    let many = tuner(Gpu::H100, 16, Operation::AllReduce);
    let large = chosen(&many, GIB);
    close(large.latency_us, 192.2);
    close(large.time_us(), 6_045.8);
    assert_eq!(name(&large), "nvlstree/Simple");
    close(forced(&many, GIB, Algorithm::Ring, Protocol::Simple).latency_us, 1_666.3);
}

/// Times that the specification of this model expects on Intel servers.
#[test]
fn expected_all_reduces() {
    let rows = [
        (Gpu::H100, 1, 64 * KIB, "ring/LL", 15.8),
        (Gpu::H100, 1, MIB, "ring/LL", 28.0),
        (Gpu::H100, 1, 16 * MIB, "nvls/Simple", 86.7),
        (Gpu::H100, 1, GIB, "nvls/Simple", 3_972.6),
        (Gpu::H100, 2, 16 * MIB, "nvlstree/Simple", 134.9),
        (Gpu::H100, 2, GIB, "nvlstree/Simple", 4_428.3),
        (Gpu::H100, 16, 64 * KIB, "tree/LL", 65.9),
        (Gpu::H100, 16, 16 * MIB, "tree/LL128", 260.2),
        (Gpu::H100, 16, GIB, "nvlstree/Simple", 6_045.8),
        (Gpu::A100, 1, GIB, "ring/Simple", 7_885.4),
        (Gpu::A100, 16, GIB, "ring/Simple", 12_763.4),
        (Gpu::B200, 4, 16 * GIB, "nvlstree/Simple", 86_791.0),
    ];
    for (gpu, servers, bytes, expected, us) in rows {
        let choice = chosen(&tuner(gpu, servers, Operation::AllReduce), bytes);
        assert_eq!(name(&choice), expected, "{gpu:?} {servers} {bytes}");
        let within = if us < 100.0 { 0.06 } else { us * 1e-3 };
        assert!((choice.time_us() - us).abs() < within, "{gpu:?} {servers} {bytes}: {}", choice.time_us());
    }
    for (servers, us) in [(1, 5_275.6), (2, 5_776.6), (16, 7_584.6)] {
        let tuner = tuner(Gpu::H100, servers, Operation::AllReduce);
        close(forced(&tuner, GIB, Algorithm::Ring, Protocol::Simple).time_us(), us);
    }
    close(chosen(&tuner(Gpu::H100, 16, Operation::AllGather), GIB).time_us(), 3_558.5);
}

/// Bus bandwidths of 1 GiB that the specification of this model expects.
#[test]
fn expected_bus_bandwidths() {
    for (gpu, servers, gbs) in
        [(Gpu::H100, 1, 473.0), (Gpu::H100, 2, 454.6), (Gpu::H100, 16, 352.4), (Gpu::A100, 16, 166.9)]
    {
        let us = chosen(&tuner(gpu, servers, Operation::AllReduce), GIB).time_us();
        close(GIB as f64 / us / 1e3 * bus_factor(Operation::AllReduce, 8 * servers), gbs);
    }
}

/// The output of the oracle: for each system a heading, and for each size the choice, its time and that of
/// ring/Simple, with one decimal.
#[test]
fn times_of_the_oracle() {
    let mut tuner_of_heading = None;
    let mut rows = 0;
    for line in include_str!("expected.txt").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        if let [gpu, ranks, operation] = words[..] {
            let gpu = match gpu {
                "A" => Gpu::A100,
                "H" => Gpu::H100,
                _ => Gpu::B200,
            };
            let operation =
                if operation == "all-reduce" { Operation::AllReduce } else { Operation::AllGather };
            tuner_of_heading = Some(tuner(gpu, ranks.parse::<u32>().unwrap() / 8, operation));
            continue;
        }
        let tuner = tuner_of_heading.as_ref().unwrap();
        let bytes = words[0].parse().unwrap();
        let choice = chosen(tuner, bytes);
        assert_eq!(name(&choice), words[1], "{line}");
        let ring = forced(tuner, bytes, Algorithm::Ring, Protocol::Simple);
        for (found, expected) in [(choice.time_us(), number(2)), (ring.time_us(), number(7))] {
            assert!((found - expected).abs() <= 0.0501, "{line}: {found}");
        }
        rows += 1;
    }
    assert_eq!(rows, 126);
}

/// AMD: a step takes 2 us, with Simple 6 us, and LL between servers has the bound of Ampere's row.
#[test]
fn the_processor_counts_between_servers() {
    let amd = System { cpu: Cpu::Amd, ..System::new(Gpu::H100, 2, 8) };
    let tuner = Tuner::new(&amd, Operation::AllReduce).unwrap();
    let simple = forced(&tuner, 8, Algorithm::Ring, Protocol::Simple);
    close(simple.latency_us, 8.4 + 28.0 * 6.0 + 2.0 * 14.0);
    let ll = forced(&tuner, MIB, Algorithm::Ring, Protocol::Ll);
    close(ll.latency_us, 6.6 + 28.0 * 2.0 + 2.0 * 2.7);
    close(ll.transfer_us, 1_048_576.0 / 1e3 / (22.5 * 16.0 / 30.0));
}

/// Without PCIe switches between GPU and NIC, LL128 is not used. Before Hopper PXN is too long for it as well.
#[test]
fn ll128_needs_a_short_way_to_the_nic() {
    let has = |gpu, nic_path| {
        let tuner = Tuner::new(&System { nic_path, ..System::new(gpu, 2, 8) }, Operation::AllReduce).unwrap();
        tuner.all(MIB).any(|choice| choice.protocol == Protocol::Ll128)
    };
    assert!(has(Gpu::A100, NicPath::Pxb) && !has(Gpu::A100, NicPath::Pxn));
    assert!(has(Gpu::H100, NicPath::Pxn) && !has(Gpu::H100, NicPath::Phb));
}

/// Servers with one GPU, four of them: PAT has 8 + 2 x 4 + 4 x 2.8 us, and three quarters of 48 GB/s. The ring has the
/// latency of trees over NICs: 8.4 + 3 x 14 us.
#[test]
fn servers_with_one_gpu_have_parallel_trees() {
    let system = System::new(Gpu::H100, 4, 1);
    let tuner = Tuner::new(&system, Operation::AllGather).unwrap();
    let pat = forced(&tuner, 36_000_000, Algorithm::Pat, Protocol::Simple);
    close(pat.latency_us, 27.2);
    close(pat.transfer_us, 1_000.0);
    close(forced(&tuner, 8, Algorithm::Ring, Protocol::Simple).latency_us, 8.4 + 3.0 * 14.0);
    assert!(
        Tuner::new(&System::new(Gpu::H100, 4, 8), Operation::AllGather)
            .unwrap()
            .all(8)
            .all(|choice| { choice.algorithm == Algorithm::Ring })
    );
}

/// SHARP on eight servers of H100. Direct: 8 x 45 x 0.85 / 2 = 153 GB/s after 2 x (3.7 + 0.4 x 7) + 31 us. Chain:
/// 2 x 7 x 2.8 + 30 us. NVLS: 8 x 48 x 64 / 126 GB/s after 43 us.
#[test]
fn switches_of_the_network_reduce() {
    let system = System { sharp: Sharp::On, ..System::new(Gpu::H100, 8, 8) };
    let tuner = Tuner::new(&system, Operation::AllReduce).unwrap();
    let direct = forced(&tuner, 153_000_000, Algorithm::CollNetDirect, Protocol::Simple);
    close(direct.latency_us, 44.0);
    close(direct.transfer_us, 1_000.0);
    close(forced(&tuner, 8, Algorithm::CollNetChain, Protocol::Simple).latency_us, 69.2);
    let nvls = forced(&tuner, 384_000_000, Algorithm::Nvls, Protocol::Simple);
    close(nvls.latency_us, 43.0);
    close(nvls.transfer_us, 2.0 * 63.0 / 64.0 * 1_000.0);
    let gather = Tuner::new(&system, Operation::AllGather).unwrap();
    close(forced(&gather, 324_000_000, Algorithm::CollNetDirect, Protocol::Simple).transfer_us, 1_000.0);
    let without = Tuner::new(&System::new(Gpu::H100, 8, 8), Operation::AllReduce).unwrap();
    assert!(
        without.all(8).all(|choice| !matches!(choice.algorithm, Algorithm::Nvls | Algorithm::CollNetDirect))
    );
}

/// MI300X. Two GPUs share a link of 48 GB/s. Eight with LL: 12 + 14 x 0.8 us, 0.08 x 336 x 8 / 14 GB/s.
#[test]
fn rccl_has_its_own_table() {
    let of =
        |servers, gpus| Tuner::new(&System::new(Gpu::Mi300x, servers, gpus), Operation::AllReduce).unwrap();
    let pair = chosen(&of(1, 2), GIB);
    close(GIB as f64 / pair.transfer_us / 1e3, 48.0);
    let ll = forced(&of(1, 8), MIB, Algorithm::Ring, Protocol::Ll);
    close(ll.latency_us, 12.0 + 14.0 * 0.8);
    close(ll.transfer_us, 1_048_576.0 / 1e3 / (0.08 * 336.0 * 8.0 / 14.0));
    let simple = forced(&of(2, 8), MIB, Algorithm::Ring, Protocol::Simple);
    close(simple.latency_us, 17.0 + 28.0 * 2.1 + 2.0 * 320.0);
    assert!(of(1, 8).all(MIB).all(|choice| name(&choice) != "tree/Simple"));
}

/// Broadcast: the base and one hop; the whole vector passes each link once.
#[test]
fn broadcast_is_a_pipeline() {
    let one = tuner(Gpu::H100, 1, Operation::Broadcast);
    let choice = forced(&one, 360_000_000, Algorithm::Ring, Protocol::Simple);
    close(choice.latency_us, 8.4 + 3.4);
    close(choice.transfer_us, 1_000.0);
    close(forced(&tuner(Gpu::H100, 2, Operation::Reduce), 8, Algorithm::Ring, Protocol::Ll).latency_us, 9.3);
}

#[test]
fn operations_without_a_model_are_named() {
    let error = Tuner::new(&System::new(Gpu::H100, 1, 8), Operation::AllToAll).unwrap_err();
    assert!(error.to_string().starts_with("the operation all-to-all has no cost model"), "{error}");
}

mod never {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every choice takes a time above zero, and more bytes never take less time with one algorithm.
        #[test]
        fn is_time_lost(gpu in 0..Gpu::ALL.len(), servers in 1u32..300, gpus in 1u32..=8, log in 3u32..34) {
            let gpu = Gpu::ALL[gpu];
            prop_assume!(servers * gpus > 1);
            let tuner = Tuner::new(&System::new(gpu, servers, gpus), Operation::AllReduce).unwrap();
            for choice in tuner.all(1 << log) {
                prop_assert!(choice.time_us().is_finite() && choice.time_us() > 0.0);
                prop_assert!(choice.channels >= 1 && choice.channels <= 64);
            }
            prop_assert!(tuner.choose(1 << log, &Choices::default()).is_some());
        }
    }
}
