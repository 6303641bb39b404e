/*
 * What MPI makes of a network: 8 bytes there and back and 1 MiB one way between ranks 0 and 1, and sums over all ranks.
 *
 *   ranks SECONDS SUM_BYTES SUMS
 *
 * Rank 0 prints JSON.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16, MESSAGE_BYTES = 1 << 20, MOST_SAMPLES = 1 << 20 };

static int rank, ranks;
static double seconds;
static double samples[MOST_SAMPLES];

static int compare(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

/* The last message has another first byte. */
static long trips(double *typical_us)
{
	char message[8] = { 0 };
	double begin = MPI_Wtime(), at = begin, then;
	long count = 0;

	if (rank > 1)
		return 0;
	if (rank == 1) {
		while (!message[0]) {
			MPI_Recv(message, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(message, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		}
		return 0;
	}
	while (!message[0]) {
		message[0] = at - begin > 1.2 * seconds;
		MPI_Send(message, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(message, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		then = MPI_Wtime();
		if (at - begin > 0.2 * seconds && count < MOST_SAMPLES)
			samples[count++] = (then - at) * 1e6 / 2;
		at = then;
	}
	qsort(samples, count, sizeof(double), compare);
	*typical_us = count ? samples[count / 2] : 0;
	return count;
}

/* Rounds of a window each; before each a word whether there is one more. */
static double stream(void)
{
	unsigned char *memory = malloc((size_t) WINDOW * MESSAGE_BYTES);
	MPI_Request requests[WINDOW];
	double begin, took = 0;
	long rounds = 0;
	int more = 1, i;

	memset(memory, rank + 1, (size_t) WINDOW * MESSAGE_BYTES);
	begin = MPI_Wtime();
	while (rank <= 1) {
		if (rank == 0) {
			more = took < seconds;
			MPI_Send(&more, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
		} else {
			MPI_Recv(&more, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		if (!more)
			break;
		for (i = 0; i < WINDOW; i++) {
			unsigned char *at = memory + (size_t) i * MESSAGE_BYTES;

			if (rank == 0)
				MPI_Isend(at, MESSAGE_BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[i]);
			else
				MPI_Irecv(at, MESSAGE_BYTES, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &requests[i]);
		}
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
		/* What was sent has arrived. */
		if (rank == 0)
			MPI_Recv(&i, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(&i, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
		rounds++;
		took = MPI_Wtime() - begin;
	}
	if (rank == 1 && memory[0] != 1) {
		printf("bytes differ\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	free(memory);
	return took > 0 ? (double) rounds * WINDOW * MESSAGE_BYTES / took : 0;
}

static double sum(long bytes, int count)
{
	long words = bytes / (long) sizeof(float), at;
	float *own = malloc(bytes), *all = malloc(bytes);
	double begin, took, least = 1e9;
	int i;

	for (at = 0; at < words; at++)
		own[at] = rank + 1;
	for (i = 0; i < count; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		MPI_Allreduce(own, all, words, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		took = MPI_Wtime() - begin;
		least = took < least ? took : least;
	}
	for (at = 0; at < words; at++) {
		if (all[at] != ranks * (ranks + 1) / 2) {
			printf("sums differ\n");
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	free(own);
	free(all);
	return least;
}

int main(int argc, char **argv)
{
	double typical_us = 0, rate, took;
	long bytes;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4 || ranks < 2) {
		fprintf(stderr, "arguments: see the source\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	seconds = atof(argv[1]);
	bytes = atol(argv[2]);
	trips(&typical_us);
	MPI_Barrier(MPI_COMM_WORLD);
	rate = stream();
	took = sum(bytes, atoi(argv[3]));
	if (rank == 0)
		printf("{\"latency_us\": %.3f, \"mb_per_second\": %.3f, \"sum_bytes\": %ld, \"sum_s\": %.4f}\n", typical_us,
		       rate / 1e6, bytes, took);
	MPI_Finalize();
	return 0;
}
