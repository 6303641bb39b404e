//! Trees of servers: with chains inside, or with switches that reduce.

use super::plan::Plan;
use super::wires::{Action, Hop, Load, Piece, Pipes, Token, Wires};
use crate::collective::{Operation, Tree, double_tree};
use crate::error::WorkloadError;

/// Tokens of the messages that each server waits for.
type Arrived<S> = Vec<Vec<Token<S>>>;

/// Place of messages: the channel, and the rank of each server that talks to others.
struct Heads {
    channel: u32,
    of_server: Vec<usize>,
}

impl Plan {
    /// Declares an all-reduce over two trees of servers, each with half of the channels. Each server is a chain that
    /// begins at the GPU of the channel's NIC.
    pub(super) fn trees<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let trees = double_tree(self.team.count());
        for channel in 0..self.channels {
            let tree = &trees[(channel / self.ring_channels) as usize % 2];
            let lane = channel % self.ring_channels;
            let chains: Vec<Vec<usize>> =
                (0..self.team.count()).map(|server| self.team.chain(server, lane)).collect();
            let heads = Heads { channel, of_server: chains.iter().map(|chain| chain[0]).collect() };
            for turn in 0..self.loops {
                let (piece, bytes) = self.piece(channel, turn, 0, 0, 0);
                let hop = |src, dst, action| self.hop((src, dst), channel, (piece.clone(), bytes), action);
                let mut arrived: Arrived<W::Sent> = vec![Vec::new(); chains.len()];
                for (chain, arrived) in chains.iter().zip(&mut arrived) {
                    for pair in chain.windows(2).rev() {
                        let sent = pipes.send(&hop(pair[1], pair[0], Action::Reduce), arrived, &[])?;
                        *arrived = vec![sent];
                    }
                }
                self.between(pipes, tree, &heads, &(piece.clone(), bytes), &mut arrived)?;
                for (chain, arrived) in chains.iter().zip(&mut arrived) {
                    for pair in chain.windows(2) {
                        let sent = pipes.send(&hop(pair[0], pair[1], Action::Copy), arrived, &[])?;
                        *arrived = vec![sent];
                    }
                }
            }
        }
        Ok(())
    }

    /// Declares the messages of switches that reduce, on one server: each GPU is the head of a channel.
    ///
    /// A GPU sends and receives the vector once, and its own part of it once more. Here these bytes are divided among
    /// messages to and from the head.
    pub(super) fn nvls<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let gpus = self.team.gpus();
        let load = match self.operation {
            Operation::AllReduce => Load::SwitchReduces,
            _ => Load::SwitchGathers,
        };
        for gpu in 0..gpus {
            let head = self.team.rank(0, gpu);
            for turn in 0..self.loops {
                let whole = self.piece(gpu as u32, turn, 0, 0, head);
                let mut arrived = Vec::new();
                if self.operation != Operation::AllGather {
                    arrived = self.to_head(pipes, (0, gpu), gpu as u32, (&whole, load))?;
                }
                if self.operation != Operation::ReduceScatter {
                    self.send_from_head(pipes, (0, gpu), gpu as u32, (&whole, load), &arrived)?;
                }
            }
        }
        Ok(())
    }

    /// Declares an all-reduce by switches that reduce inside servers, and by two trees of the heads between them.
    pub(super) fn nvls_trees<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let (servers, gpus) = (self.team.count(), self.team.gpus());
        let trees = double_tree(servers);
        for channel in 0..self.channels {
            let gpu = channel as usize % gpus;
            let of_server = (0..servers).map(|server| self.team.rank(server, gpu)).collect();
            let heads = Heads { channel, of_server };
            for turn in 0..self.loops {
                let whole = self.piece(channel, turn, 0, 0, 0);
                let part = (&whole, Load::SwitchReduces);
                let arrived: Result<Arrived<W::Sent>, _> =
                    (0..servers).map(|server| self.to_head(pipes, (server, gpu), channel, part)).collect();
                let mut arrived = arrived?;
                self.between(pipes, &trees[channel as usize / gpus % 2], &heads, &whole, &mut arrived)?;
                for (server, arrived) in arrived.iter().enumerate() {
                    self.send_from_head(pipes, (server, gpu), channel, part, arrived)?;
                }
            }
        }
        Ok(())
    }

    fn to_head<W: Wires>(
        &self,
        pipes: &mut Pipes<'_, W>,
        (server, head): (usize, usize),
        channel: u32,
        (whole, load): (&(Piece, u64), Load),
    ) -> Result<Vec<Token<W::Sent>>, WorkloadError> {
        let dst = self.team.rank(server, head);
        let others = (1..self.team.gpus()).map(|step| self.team.rank(server, head + step));
        let sent = others.map(|src| {
            let hop = self.hop((src, dst), channel, whole.clone(), Action::Reduce);
            pipes.send(&Hop { load, ..hop }, &[], &[])
        });
        sent.collect()
    }

    fn send_from_head<W: Wires>(
        &self,
        pipes: &mut Pipes<'_, W>,
        (server, head): (usize, usize),
        channel: u32,
        (whole, load): (&(Piece, u64), Load),
        arrived: &[Token<W::Sent>],
    ) -> Result<(), WorkloadError> {
        let src = self.team.rank(server, head);
        for step in 1..self.team.gpus() {
            let dst = self.team.rank(server, head + step);
            let hop = self.hop((src, dst), channel, whole.clone(), Action::Copy);
            pipes.send(&Hop { load, ..hop }, arrived, &[])?;
        }
        Ok(())
    }

    /// Adds up along a tree of servers and sends the sum down again. `arrived` has what each head waits for: first for
    /// the sum of its server, at the end for the sum of all.
    fn between<W: Wires>(
        &self,
        pipes: &mut Pipes<'_, W>,
        tree: &Tree,
        Heads { channel, of_server }: &Heads,
        whole: &(Piece, u64),
        arrived: &mut Arrived<W::Sent>,
    ) -> Result<(), WorkloadError> {
        let hop = |from: usize, to: usize, action| {
            self.hop((of_server[from], of_server[to]), *channel, whole.clone(), action)
        };
        for &server in tree.order.iter().rev() {
            if let Some(parent) = tree.parent[server] {
                let sent = pipes.send(&hop(server, parent, Action::Reduce), &arrived[server], &[])?;
                arrived[parent].push(sent);
            }
        }
        for &server in &tree.order {
            if let Some(parent) = tree.parent[server] {
                let sent = pipes.send(&hop(parent, server, Action::Copy), &arrived[parent], &[])?;
                arrived[server] = vec![sent];
            }
        }
        Ok(())
    }

    fn hop(
        &self,
        (src, dst): (usize, usize),
        channel: u32,
        (piece, bytes): (Piece, u64),
        action: Action,
    ) -> Hop {
        let (load, way) = (Load::Whole, self.way(src, dst));
        Hop { src, dst, channel, bytes, way, load, action, piece }
    }
}
