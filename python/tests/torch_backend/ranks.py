"""One rank of a group: `ranks.py SUITE`, with RANK, WORLD_SIZE and RENDEZVOUS (a file) in the environment."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

import pathweave.torch

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
RENDEZVOUS = os.environ["RENDEZVOUS"]


def begin(backend="cpu:pathweave", seconds=60, name=""):
    pathweave.torch.register()
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=seconds)
    dist.init_process_group(
        backend, init_method=f"file://{RENDEZVOUS}{name}", rank=RANK, world_size=RANKS, timeout=limit
    )


@contextlib.contextmanager
def fails_with(*parts):
    try:
        yield
    except dist.DistBackendError as error:
        text = str(error)
    else:
        raise AssertionError(f"no error with {parts}")
    missing = [part for part in parts if part not in text]
    assert not missing, f"{text} lacks {missing}"


# -- cases of the specification


def case_all_reduce():
    for count in (0, 1, 10, 4099, 50021, 1_000_003):
        tensor = torch.arange(float(count)) % 97 + RANK
        dist.all_reduce(tensor)
        expected = sum((torch.arange(float(count)) % 97 + rank for rank in range(RANKS)), torch.zeros(count))
        assert torch.equal(tensor, expected), count


def case_types():
    tensor = torch.full((5,), float(RANK))
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert abs(float(tensor[0]) - (RANKS - 1) / 2) < 1e-6
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.uint8, torch.complex64):
        tensor = torch.ones(7, dtype=dtype)
        dist.all_reduce(tensor)
        assert tensor[0] == RANKS, dtype
    tensor = torch.ones(9)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(3.0))
    assert tensor[8] == 3 * RANKS


def case_strided():
    whole = torch.zeros(6, 10)
    whole[:, ::2] = RANK + 1
    dist.all_reduce(whole[:, ::2])
    assert whole[5, 8] == RANKS * (RANKS + 1) / 2 and whole[5, 9] == 0
    rows = [torch.zeros(4, 3).t() for _ in range(RANKS)]
    dist.all_gather(rows, torch.full((3, 4), float(RANK)))
    assert all(bool((rows[rank] == rank).all()) for rank in range(RANKS))


def case_async():
    tensors = [torch.full((size,), float(RANK)) for size in (3, 3000, 300_000) for _ in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    assert all(float(tensor[-1]) == RANKS * (RANKS - 1) / 2 for tensor in tensors)
    value = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda done: done.value()[0] * 2).wait()
    assert value[0] == 2 * RANKS


def case_all_gather():
    parts = [torch.zeros(3) for _ in range(RANKS)]
    dist.all_gather(parts, torch.full((3,), float(RANK)))
    assert parts[RANKS - 1][0] == RANKS - 1
    for count in (1, 30_011, 200_003):
        whole = torch.zeros(count * RANKS)
        dist.all_gather_into_tensor(whole, torch.full((count,), float(RANK)))
        assert torch.equal(whole, torch.arange(float(RANKS)).repeat_interleave(count))


def case_reduce_scatter():
    for count in (3, 6_007, 200_003):
        out = torch.zeros(count)
        dist.reduce_scatter_tensor(out, torch.arange(float(count * RANKS)) + RANK)
        own = torch.arange(float(count)) + RANK * count
        assert torch.equal(out, own * RANKS + RANKS * (RANKS - 1) / 2), count
    dist.reduce_scatter(out, [torch.ones(count) * (rank + 1) for rank in range(RANKS)])
    assert out[0] == RANKS * (RANK + 1)


def case_all_to_all():
    out = torch.zeros(RANKS)
    dist.all_to_all_single(out, torch.arange(RANKS) + 10.0 * RANK)
    assert torch.equal(out, RANK + 10.0 * torch.arange(RANKS))
    for size in (1, 40_000):
        sent, received = [size * (RANK + 1)] * RANKS, [size * (rank + 1) for rank in range(RANKS)]
        out = torch.zeros(sum(received))
        dist.all_to_all_single(out, torch.full((sum(sent),), float(RANK)), received, sent)
        assert out[-1] == RANKS - 1 and out[0] == 0
    outs = [torch.zeros(2) for _ in range(RANKS)]
    dist.all_to_all(outs, [torch.full((2,), float(RANK)) for _ in range(RANKS)])
    assert [int(one[0]) for one in outs] == list(range(RANKS))


def case_rooted():
    for count in (4, 5_003, 300_007):
        tensor = torch.full((count,), float(RANK))
        dist.broadcast(tensor, RANKS - 1)
        assert bool((tensor == RANKS - 1).all())
        tensor = torch.ones(count)
        dist.reduce(tensor, 0)
        assert tensor[count - 1] == (RANKS if RANK == 0 else 1)
        parts = [torch.zeros(count) for _ in range(RANKS)] if RANK == 0 else None
        dist.gather(torch.full((count,), float(RANK)), parts, 0)
        assert RANK or [int(part[-1]) for part in parts] == list(range(RANKS))
        tensor = torch.zeros(count)
        dist.scatter(tensor, [torch.full((count,), float(rank)) for rank in range(RANKS)] if RANK == 0 else None, 0)
        assert tensor[count - 1] == RANK


def case_messages():
    sent, got = torch.full((100_000,), float(RANK)), torch.zeros(100_000)
    ahead, behind = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    ops = [dist.P2POp(dist.isend, sent, ahead), dist.P2POp(dist.irecv, got, behind)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got[0] == behind
    if RANK == 0:
        long = dist.isend(sent, 1, tag=5)
        dist.send(torch.ones(2), 1, tag=6)
        long.wait()
    if RANK == 1:
        first, second = torch.zeros(2), got
        dist.recv(first, 0, tag=6)
        dist.recv(second, 0, tag=5)
        assert second[0] == 0 and first[0] == 1


def case_objects():
    everything = [None] * RANKS
    dist.all_gather_object(everything, {"rank": RANK})
    assert everything[RANKS - 1]["rank"] == RANKS - 1
    text = [f"text {RANK}"]
    dist.broadcast_object_list(text, 0)
    assert text[0] == "text 0"
    own = [None]
    dist.scatter_object_list(own, [str(rank) for rank in range(RANKS)] if RANK == 0 else None, 0)
    assert own[0] == str(RANK)
    dist.gather_object(RANK, [None] * RANKS if RANK == 0 else None, 0)


def case_barriers():
    dist.barrier()
    dist.monitored_barrier()
    dist.barrier()


def case_new_group():
    group = dist.new_group([0, 1])
    if RANK < 2:
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=group)
        assert tensor[0] == 2
    group = dist.new_group(backend="gloo")
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert tensor[0] == RANKS


def case_coalescing():
    tensors = [torch.ones(3) for _ in range(3)]
    with dist.distributed_c10d._coalescing_manager(device=torch.device("cpu")):
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert all(tensor[0] == RANKS for tensor in tensors)
    tensors = [torch.ones(3), torch.ones(5)]
    dist.all_reduce_coalesced(tensors)
    assert tensors[1][0] == RANKS


def case_functional():
    import torch.distributed._functional_collectives as fc

    world = dist.group.WORLD
    assert fc.all_reduce(torch.ones(4), "sum", world).tolist()[0] == RANKS
    gathered = fc.all_gather_tensor(torch.ones(4), 0, world)
    assert gathered.shape[0] == 4 * RANKS and float(gathered.sum()) == 4 * RANKS
    assert float(fc.reduce_scatter_tensor(torch.ones(4 * RANKS), "sum", 0, world)[0]) == RANKS
    assert float(fc.all_to_all_single(torch.ones(RANKS), None, None, world).sum()) == RANKS


def case_dtensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (RANKS,))
    whole = torch.arange(4.0 * RANKS).reshape(RANKS * 2, 2)
    shared = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(shared.redistribute(mesh, [Replicate()]).to_local(), whole)
    assert float(shared.sum().full_tensor()) == float(whole.sum())


def case_mesh():
    if RANKS < 4:
        return
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, RANKS // 2), mesh_dim_names=("a", "b"))
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=mesh["b"].get_group())
    assert tensor[0] == RANKS // 2


def case_checkpoint():
    import torch.distributed.checkpoint as dcp

    path = f"{tempfile.gettempdir()}/pathweave-{os.path.basename(os.path.dirname(RENDEZVOUS))}"
    state = {"weights": torch.ones(4)}
    dcp.save(state, checkpoint_id=path)
    dcp.load(state, checkpoint_id=path)


def case_wrong_input():
    if RANK == 0:
        sparse = torch.ones(3).to_sparse()
        with fails_with("sparse", "dense tensors"):
            dist.all_reduce(sparse)
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        with fails_with("meta", "cpu"):
            backend.allreduce([torch.ones(3, device="meta")])
        with fails_with("band", "float32"):
            dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BAND)
        with fails_with("5 rows", "split sizes"):
            backend.all_to_all_single(torch.ones(5), torch.ones(5), [1], [])
        with fails_with("3 elements", f"must have {2 * RANKS}"):
            dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)) if RANKS != 3 else backend.all_gather_single(
                torch.ones(3), torch.ones(2)
            )


def case_recv_timeout():
    if RANK:
        return
    began = time.monotonic()
    with fails_with("timed out", "rank 1"):
        dist.irecv(torch.zeros(1), 1, tag=99).wait(datetime.timedelta(seconds=0.5))
    assert time.monotonic() - began < 5


def cases():
    begin()
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            began = time.monotonic()
            case()
            dist.barrier()
            if RANK == 0:
                print(f"{name[5:]} {time.monotonic() - began:.2f} s", flush=True)
    dist.destroy_process_group()


# -- reductions


OPS = {
    "SUM": lambda values: values.sum(0),
    "AVG": lambda values: values.sum(0) / RANKS,
    "PRODUCT": lambda values: values.prod(0),
    "MIN": lambda values: values.min(0).values,
    "MAX": lambda values: values.max(0).values,
}
BITS = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}
FLOATS = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float32: 1e-5, torch.float64: 1e-12}
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def values_of(dtype, count):
    made = torch.Generator().manual_seed(7)
    if dtype.is_floating_point:
        return [torch.rand(count, generator=made, dtype=torch.float64).add(0.5).to(dtype) for _ in range(RANKS)]
    return [torch.randint(0, 4, (count,), generator=made).to(dtype) for _ in range(RANKS)]


def same_bits(tensor, what):
    raw = tensor.view(torch.uint8) if tensor.numel() else tensor
    parts = [torch.zeros_like(raw) for _ in range(RANKS)]
    dist.all_gather(parts, raw)
    assert all(torch.equal(part, raw) for part in parts), f"bits differ: {what}"


def reductions():
    begin()
    for count in (0, 1, 31, 9_001, 300_007):
        for dtype in (*FLOATS, *INTEGERS):
            every = values_of(dtype, count)
            for name, reference in OPS.items():
                tensor = every[RANK].clone()
                dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
                if count == 0:
                    continue
                wide = torch.stack([value.to(torch.float64) for value in every])
                expected = reference(wide)
                if dtype.is_floating_point:
                    got = tensor.to(torch.float64)
                    assert torch.allclose(got, expected, rtol=FLOATS[dtype]), (name, dtype, count)
                else:
                    assert torch.equal(tensor.to(torch.int64), expected.to(torch.int64)), (name, dtype, count)
                same_bits(tensor, (name, dtype, count))
            for name, both in BITS.items():
                if not dtype.is_floating_point and count:
                    tensor, expected = every[RANK].clone(), every[0]
                    for other in every[1:]:
                        expected = both(expected, other)
                    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
                    assert torch.equal(tensor, expected), (name, dtype)
        truths = [torch.arange(count) % (rank + 2) == 0 for rank in range(RANKS)]
        tensor = truths[RANK].clone()
        dist.all_reduce(tensor)
        assert not count or torch.equal(tensor, torch.stack(truths).any(0))
    for where in range(RANKS):
        for name in ("MIN", "MAX"):
            tensor = torch.ones(50_000)
            if where == RANK:
                tensor[::7] = float("nan")
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
            assert bool(tensor[::7].isnan().all()) and not bool(tensor[1::7].isnan().any())
            same_bits(tensor, (name, "NaN"))
    dist.destroy_process_group()


# -- failures


def unequal():
    begin(seconds=20)
    groups = [dist.new_group() for _ in range(3)]
    with fails_with("rank 0 ", "all_reduce(sum, 10 x float32)", "all_reduce(sum, 11 x float32)"):
        dist.all_reduce(torch.ones(11 if RANK == 0 else 10), group=groups[0])
    with fails_with("float32", "float64"):
        dist.all_reduce(torch.ones(100_000, dtype=torch.float64 if RANK == 0 else torch.float32), group=groups[1])
    with fails_with("broadcast", "all_reduce"):
        if RANK == 0:
            dist.broadcast(torch.ones(50_000), 0, group=groups[2])
        else:
            dist.all_reduce(torch.ones(50_000), group=groups[2])
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor[0] == RANKS, "other groups go on"
    dist.destroy_process_group()


def killed():
    begin(seconds=60)
    dist.barrier()
    if RANK == RANKS - 1:
        # Not before the others have its part of the barrier.
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with fails_with(f"rank {RANKS - 1} is lost"):
        while True:
            dist.all_reduce(torch.ones(100_000))
    assert time.monotonic() - began < 15
    print("lost in time", flush=True)
    os._exit(0)


def late():
    begin(seconds=3)
    dist.barrier()
    if RANK == RANKS - 1:
        time.sleep(6)
        return
    with fails_with("all_reduce(sum, 4 x float32)", "timed out", f"rank {RANKS - 1}"):
        dist.all_reduce(torch.ones(4))


def aborted():
    begin(seconds=60)
    dist.barrier()
    if RANK == 0:
        time.sleep(0.5)
        dist.distributed_c10d._abort_process_group()
    else:
        with fails_with("rank 0 has aborted"):
            dist.all_reduce(torch.ones(100_000))


def pending():
    begin(seconds=60)
    dist.all_reduce(torch.ones(4))
    if RANK == 0:
        work = dist.irecv(torch.zeros(4), 1)
        future = dist.irecv(torch.zeros(4), 1).get_future()
        assert not future.done()
        del work


# -- training


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 2))


def trained(wrap):
    made = wrap(model())
    optimizer = torch.optim.SGD(made.parameters(), lr=0.05)
    losses = []
    for step in range(5):
        data = torch.Generator().manual_seed(100 * step + RANK)
        optimizer.zero_grad()
        loss = made(torch.randn(8, 64, generator=data)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def train_both(name, wrap):
    found = []
    for backend in ("cpu:pathweave", "gloo"):
        begin(backend, name=f"-{name}-{backend[-4:]}")
        found.append(trained(wrap))
        dist.barrier()
        dist.destroy_process_group()
    difference = max(abs(a - b) for a, b in zip(*found, strict=True))
    assert found[0] == found[1] if RANKS == 2 else difference < 1e-5, (name, found)
    if RANK == 0:
        print(f"{name}: {found[0]}", flush=True)


def sharded(made):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in made:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(made, mesh=mesh)


def train():
    train_both("DDP", nn.parallel.DistributedDataParallel)
    train_both("FSDP2", sharded)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
