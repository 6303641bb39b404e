/* Messages of many sizes in a ring, sums, and an exchange of all with all; every byte is looked at. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static unsigned char expected(size_t at, int from)
{
	return (unsigned char) (at * 131 + from * 17 + (at >> 8));
}

static void fail(const char *what, size_t len)
{
	printf("rank %d: %s of %zu differs\n", rank, what, len);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ring(size_t len)
{
	unsigned char *out = malloc(len + 1), *in = calloc(1, len + 1);
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	size_t i;

	for (i = 0; i < len; i++)
		out[i] = expected(i, rank);
	MPI_Sendrecv(out, len, MPI_BYTE, next, 5, in, len, MPI_BYTE, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < len; i++)
		if (in[i] != expected(i, before))
			fail("message", len);
	free(out);
	free(in);
}

static void sum(int count)
{
	long *own = malloc(count * sizeof(long)), *all = calloc(count, sizeof(long));
	long factor = (long) ranks * (ranks + 1) / 2;
	int i;

	for (i = 0; i < count; i++)
		own[i] = (long) i * (rank + 1);
	MPI_Allreduce(own, all, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < count; i++)
		if (all[i] != i * factor)
			fail("sum", count);
	free(own);
	free(all);
}

static void exchange(int len)
{
	unsigned char *out = malloc((size_t) len * ranks), *in = calloc(ranks, len);
	int peer, i;

	for (peer = 0; peer < ranks; peer++)
		for (i = 0; i < len; i++)
			out[(size_t) peer * len + i] = expected(i, rank * 100 + peer);
	MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (peer = 0; peer < ranks; peer++)
		for (i = 0; i < len; i++)
			if (in[(size_t) peer * len + i] != expected(i, peer * 100 + rank))
				fail("exchange", len);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	size_t sizes[] = { 0, 1, 1000, 16384, 16385, 1 << 20, 4 << 20 };
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (i = 0; i < 7; i++)
		ring(sizes[i]);
	for (i = 1; i <= 1 << 20; i *= 32)
		sum(i);
	for (i = 1; i <= 1 << 18; i *= 64)
		exchange(i);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("exact among %d ranks\n", ranks);
	MPI_Finalize();
	return 0;
}
