//! Messages by hand, and bytes of GPUs and links against closed forms.

use super::super::wires::Way;
use super::{CASES, Declared, Joined, NcclAlgorithm, NcclProtocol, Wanted, plan, record, team, wanted};
use crate::collective::Operation;
use crate::nccl::Channels;

fn sent(all: &[Declared], rank: usize, ways: &[Way]) -> u64 {
    all.iter().filter(|one| one.hop.src == rank && ways.contains(&one.hop.way)).map(|one| one.hop.bytes).sum()
}

fn received(all: &[Declared], rank: usize) -> u64 {
    all.iter().filter(|one| one.hop.dst == rank).map(|one| one.hop.bytes).sum()
}

fn pairs(all: &[Declared]) -> Vec<(usize, usize, Way)> {
    all.iter().map(|one| (one.hop.src, one.hop.dst, one.hop.way)).collect()
}

const SCALE_UP: [Way; 2] = [Way::ScaleUp, Way::Staged];
/// Divisible by every number of parts that occurs.
const SIZE: u64 = 16 << 20;

/// Channel 1 on two servers of four: it enters at GPU 1 and leaves by the NIC of GPU 1, which the last GPU reaches by a
/// message over NVLink.
#[test]
fn a_step_of_a_ring_by_hand() {
    let team = team(2, 4, Joined::Switch);
    let two = Wanted { channels: Some(4), protocol: NcclProtocol::Simple, ..wanted(NcclAlgorithm::Ring) };
    let plan = plan(&team, Operation::AllGather, 64 << 10, &two);
    let all = record(&plan);
    let of_channel: Vec<&Declared> = all.iter().filter(|one| one.hop.channel == 1).collect();
    // Channels 0 and 1 are those of the search here, and 2 and 3 take their ways again.
    let step: Vec<(usize, usize, Way)> =
        of_channel[..10].iter().map(|one| (one.hop.src, one.hop.dst, one.hop.way)).collect();
    use Way::{Net, ScaleUp, Staged};
    assert_eq!(
        step,
        [
            (1, 2, ScaleUp),
            (2, 3, ScaleUp),
            (3, 0, ScaleUp),
            (0, 1, Staged),
            (1, 5, Net),
            (5, 6, ScaleUp),
            (6, 7, ScaleUp),
            (7, 4, ScaleUp),
            (4, 5, Staged),
            (5, 1, Net)
        ]
    );
    assert!(of_channel[..4].iter().all(|one| one.number == 0 && one.data.is_empty()));
    // The message that GPU 5 receives from the NIC is the one that GPU 1 staged.
    assert_eq!(all[of_channel[4].data[0]].hop.way, Staged);
    // In the second step GPU 2 sends on what GPU 1 sent it. In the third, its first message must have arrived.
    let (second, third) = (of_channel[11], of_channel[21]);
    assert_eq!((second.hop.src, second.hop.dst, second.slots.len()), (2, 3, 0));
    assert_eq!(all[second.data[0]].hop.src, 1);
    assert_eq!((all[third.slots[0]].hop.src, all[third.slots[0]].number), (2, 0));
}

/// Chunk of a tree: up the chain 3, 2, 1, 0 of each server, from server 1 to the root and back, and down both chains.
#[test]
fn a_chunk_of_a_tree_by_hand() {
    let one = Wanted { channels: Some(1), protocol: NcclProtocol::Simple, ..wanted(NcclAlgorithm::Tree) };
    let all = record(&plan(&team(2, 4, Joined::Switch), Operation::AllReduce, 64 << 10, &one));
    let expected: Vec<(usize, usize)> = vec![
        (3, 2),
        (2, 1),
        (1, 0),
        (7, 6),
        (6, 5),
        (5, 4),
        (4, 0),
        (0, 4),
        (0, 1),
        (1, 2),
        (2, 3),
        (4, 5),
        (5, 6),
        (6, 7),
    ];
    assert_eq!(pairs(&all).iter().map(|&(a, b, _)| (a, b)).collect::<Vec<_>>(), expected);
    // The root waits for its chain and for the other server before it sends down.
    assert_eq!((all[7].data.clone(), all[8].data.clone()), (vec![2, 6], vec![2, 6]));
    assert_eq!(all[6].data, [5]);
}

/// NVLS of four GPUs: three messages to the head of each channel and three from it.
#[test]
fn a_chunk_of_nvls_by_hand() {
    let all = record(&plan(
        &team(1, 4, Joined::Switch),
        Operation::AllReduce,
        64 << 10,
        &wanted(NcclAlgorithm::Nvls),
    ));
    assert_eq!(all.len(), 4 * 6);
    let head = &all[..6];
    let expected = [(1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3)];
    assert_eq!(pairs(head).iter().map(|&(a, b, _)| (a, b)).collect::<Vec<_>>(), expected);
    assert!(head[3..].iter().all(|one| one.data == [0, 1, 2]));
}

/// Gather of PAT on four ranks: distance 2 with the own part, then distance 1 with two parts.
#[test]
fn steps_of_pat_by_hand() {
    let one = Wanted { channels: Some(1), ..wanted(NcclAlgorithm::Pat) };
    let all = record(&plan(&team(4, 1, Joined::Nothing), Operation::AllGather, 4_000, &one));
    let expected = [(0, 2), (1, 3), (2, 0), (3, 1), (0, 1), (1, 2), (2, 3), (3, 0)];
    assert_eq!(pairs(&all).iter().map(|&(a, b, _)| (a, b)).collect::<Vec<_>>(), expected);
    assert_eq!(
        all.iter().map(|one| one.hop.bytes).collect::<Vec<_>>(),
        [1_000, 1_000, 1_000, 1_000, 2_000, 2_000, 2_000, 2_000]
    );
    assert_eq!(all[4].data, [2]);
}

/// An all-to-all of 2 x 4 ranks: GPU 0 reaches GPU 5 by way of GPU 1, and GPU 4 by its own NIC.
#[test]
fn pairs_of_an_all_to_all_by_hand() {
    let all = record(&plan(
        &team(2, 4, Joined::Switch),
        Operation::AllToAll,
        8_000,
        &wanted(NcclAlgorithm::Direct),
    ));
    let of_first: Vec<_> = pairs(&all).into_iter().filter(|&(src, ..)| src == 0).collect();
    use Way::{Net, ScaleUp, Staged};
    let own = [
        (0, 1, ScaleUp),
        (0, 2, ScaleUp),
        (0, 3, ScaleUp),
        (0, 4, Net),
        (0, 1, Staged),
        (0, 2, Staged),
        (0, 3, Staged),
    ];
    // GPU 0 also sends on for the three others of its server.
    assert!(own.iter().all(|one| of_first.contains(one)));
    assert_eq!(of_first.len(), 7 + 3);
    assert!(all.iter().all(|one| one.hop.bytes == 1_000));
}

/// Closed forms: a ring sends 2(n-1)/n of the vector from each GPU over NVLink and 2(n-1)/n over each NIC's share; a
/// tree sends the vector up and down; NVLS S(1 + 1/G); NVLSTree likewise, and S/G up and down over each NIC.
#[test]
fn bytes_of_gpus_and_links_against_closed_forms() {
    let switch = |servers| team(servers, 4, Joined::Switch);
    let ring = plan(&switch(2), Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::Ring));
    let all = record(&ring);
    for rank in 0..8 {
        // Each ring leaves each GPU once over NVLink: three hops of the chain, and the last one to the NIC's GPU.
        assert_eq!(sent(&all, rank, &SCALE_UP), SIZE / 8 * 14, "GPU {rank}");
        assert_eq!(sent(&all, rank, &[Way::Net]), SIZE / 4 / 8 * 14, "NIC {rank}");
    }
    let nvls = plan(&switch(1), Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::Nvls));
    let all = record(&nvls);
    let on_links = |rank: usize| -> f64 {
        let of_rank = all.iter().filter(|one| one.hop.src == rank);
        // The switch reduces at 85 % of the links.
        of_rank.map(|one| nvls.wire_bytes(&one.hop) as f64 * 0.85).sum()
    };
    for rank in 0..4 {
        let expected = SIZE as f64 * 1.25;
        assert!((on_links(rank) / expected - 1.0).abs() < 1e-4, "{} of {expected}", on_links(rank));
    }
    let trees = plan(&switch(2), Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::NvlsTree));
    let all = record(&trees);
    (0..8).for_each(|rank| assert_eq!(sent(&all, rank, &[Way::Net]), SIZE / 4, "NIC {rank}"));
    // All-to-all: each rank has its block for seven others, and forwards for three GPUs to three of the other server.
    let pairs = plan(&switch(2), Operation::AllToAll, SIZE, &wanted(NcclAlgorithm::Direct));
    let all = record(&pairs);
    for rank in 0..8 {
        assert_eq!(sent(&all, rank, &[Way::Net]), SIZE / 8 * 4);
        assert_eq!(sent(&all, rank, &SCALE_UP), SIZE / 8 * (3 + 3));
        assert_eq!(received(&all, rank), SIZE / 8 * (7 + 3));
    }
    // A tree sends the vector up from all ranks but the root of each channel, and down to them.
    let tree = plan(&switch(2), Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::Tree));
    let total: u64 = record(&tree).iter().map(|one| one.hop.bytes).sum();
    assert_eq!(total, SIZE * 2 * 7);
}

/// No link of a mesh carries two rings, in its two directions: each GPU sends each ring to another GPU. With NICs, each
/// server is left once by each ring.
#[test]
fn rings_of_a_mesh_share_no_link() {
    for (gpus, alone, between) in
        [(2, 1, 2), (3, 2, 2), (4, 2, 4), (5, 4, 4), (6, 4, 6), (7, 6, 7), (8, 7, 8)]
    {
        for (servers, rings, hops) in [(1, alone, gpus), (2, between, gpus - 1), (3, between, gpus - 1)] {
            let team = team(servers, gpus, Joined::Mesh);
            let plan = plan(&team, Operation::AllGather, SIZE, &wanted(NcclAlgorithm::Ring));
            let mut used: std::collections::BTreeMap<(usize, usize), std::collections::BTreeSet<u32>> =
                std::collections::BTreeMap::new();
            for one in record(&plan) {
                used.entry((one.hop.src, one.hop.dst)).or_default().insert(one.hop.channel);
            }
            assert!(used.values().all(|channels| channels.len() == 1), "{servers} x {gpus}: {used:?}");
            let inside = used.keys().filter(|&&(src, dst)| team.same_server(src, dst)).count();
            let net = used.len() - inside;
            assert_eq!(inside as u32, servers * rings * hops, "{servers} x {gpus}");
            assert_eq!(net as u32, if servers == 1 { 0 } else { servers * rings }, "{servers} x {gpus}");
        }
    }
}

/// The channels are those of the cost model, the messages about as many as announced, and merged loops have the same
/// bytes.
#[test]
fn merged_loops_carry_the_same_bytes() {
    for (operation, algorithm, servers, gpus, joined) in CASES {
        let team = team(servers, gpus, joined);
        let of = |most_messages| {
            let plan = plan(&team, operation, SIZE, &Wanted { most_messages, ..wanted(algorithm) });
            let all = record(&plan);
            let announced = plan.messages();
            assert!(
                (all.len() as f64) <= announced * 1.2 + 8.0,
                "{operation:?} {algorithm:?}: {} of {announced}",
                all.len()
            );
            (all.len(), all.iter().map(|one| one.hop.bytes).sum::<u64>(), plan.channels)
        };
        let ((many, bytes, channels), (few, same, _)) = (of(1 << 20), of(1));
        assert!(few <= many, "{operation:?} {algorithm:?}");
        assert_eq!(bytes, same, "{operation:?} {algorithm:?}");
        let known = Channels::of(team.system()).unwrap();
        match algorithm {
            NcclAlgorithm::Ring | NcclAlgorithm::Tree => assert_eq!(channels, known.used, "{operation:?}"),
            NcclAlgorithm::Nvls => assert_eq!(Some(channels), known.nvls.map(|nvls| nvls.channels)),
            _ => {}
        }
    }
}

/// A slot is free once its content has been used: the ninth message of a connection waits for what was made of the
/// first.
#[test]
fn slots_are_freed_by_their_use() {
    let one = Wanted { channels: Some(1), protocol: NcclProtocol::Simple, ..wanted(NcclAlgorithm::Tree) };
    let all = record(&plan(&team(2, 1, Joined::Nothing), Operation::AllReduce, 12 * (512 << 10), &one));
    // Two messages a chunk: up from rank 1, down from rank 0.
    let up: Vec<&Declared> = all.iter().filter(|one| one.hop.src == 1).collect();
    assert_eq!(up.len(), 12);
    assert!(up[1..8].iter().all(|one| one.slots.is_empty()));
    let freed = &all[up[8].slots[0]];
    assert_eq!((freed.hop.src, freed.hop.piece.id), (0, 0));
}

/// A ring of 2,048 ranks has too many messages even with one loop; a tree has not.
#[test]
fn too_many_messages_are_refused() {
    let team = team(256, 8, Joined::Switch);
    let ring = super::Plan::new(team.clone(), Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::Ring));
    let (field, value, allowed) = ring.unwrap_err();
    assert_eq!((field, value.as_str()), ("algorithm", "ring"));
    assert!(allowed.contains("at most 1048576 are allowed"), "{allowed}");
    let tree = super::Plan::new(team, Operation::AllReduce, SIZE, &wanted(NcclAlgorithm::Tree)).unwrap();
    // 16 channels up and down 2,047 links, in the two loops that the library has.
    assert_eq!((tree.messages(), tree.merged()), (131_008.0, 1.0));
}

/// A broadcast and a reduction have chunks of one slot of 512 KiB, of which a connection has eight; a gather has chunks
/// of four slots, in two slices each.
#[test]
fn chunks_of_chains_are_slots() {
    let one = Wanted { channels: Some(1), protocol: NcclProtocol::Simple, ..wanted(NcclAlgorithm::Ring) };
    let team = team(4, 1, Joined::Nothing);
    let of = |operation, size| record(&plan(&team, operation, size, &one));
    for operation in [Operation::Broadcast, Operation::Reduce] {
        let all = of(operation, 12 * (512 << 10));
        assert_eq!(all.len(), 3 * 12, "{operation:?}");
        assert!(all.iter().all(|one| one.hop.bytes == 512 << 10), "{operation:?}");
        // The ninth message of the first connection waits for what was made of the first one.
        let (src, dst) = (all[0].hop.src, all[0].hop.dst);
        let first: Vec<&Declared> = all.iter().filter(|one| one.hop.src == src).collect();
        assert!(first[..8].iter().all(|one| one.slots.is_empty()), "{operation:?}");
        assert_eq!(all[first[8].slots[0]].hop.src, dst, "{operation:?}");
        assert_eq!(all[first[8].slots[0]].number, 0, "{operation:?}");
    }
    let all = of(Operation::AllGather, 4 * (2 << 20));
    assert!(all.iter().all(|one| one.hop.bytes == 1 << 20));
}
