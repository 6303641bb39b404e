/* Ring, all-reduce and all-to-all over sizes from one byte to beyond any eager limit, every byte compared. Rank 0 tells on
 * which hosts the ranks ran. Argument: how many times (1). */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void fail(const char *what, size_t size, size_t at)
{
    fprintf(stderr, "rank %d: %s of %zu bytes is wrong at %zu\n", rank, what, size, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Byte `at` of what `from` sends to `to`. */
static unsigned char byte(int from, int to, size_t at, int turn)
{
    return (unsigned char)(from * 31 + to * 17 + turn * 7 + at * 13 + at / 251);
}

static void ring(size_t size, int turn, unsigned char *out, unsigned char *in)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    for (size_t i = 0; i < size; i++)
        out[i] = byte(rank, next, i, turn);
    memset(in, 0xee, size);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, next, turn, in, (int)size, MPI_BYTE, last, turn, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < size; i++)
        if (in[i] != byte(last, rank, i, turn))
            fail("ring", size, i);
}

static void all_reduce(size_t count, int turn)
{
    long *out = malloc(count * sizeof(long)), *in = malloc(count * sizeof(long));
    for (size_t i = 0; i < count; i++)
        out[i] = (long)i * (rank + 1) + turn;
    MPI_Allreduce(out, in, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++)
        if (in[i] != (long)i * ranks * (ranks + 1) / 2 + (long)turn * ranks)
            fail("all-reduce", count * sizeof(long), i);
    free(out);
    free(in);
}

static void all_to_all(size_t size, int turn, unsigned char *out, unsigned char *in)
{
    for (int to = 0; to < ranks; to++)
        for (size_t i = 0; i < size; i++)
            out[to * size + i] = byte(rank, to, i, turn);
    memset(in, 0xee, size * ranks);
    MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        for (size_t i = 0; i < size; i++)
            if (in[from * size + i] != byte(from, rank, i, turn))
                fail("all-to-all", size, i);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 1000, 65536, 300001};
    char name[MPI_MAX_PROCESSOR_NAME] = "", *names = NULL;
    int length, turns = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *out = malloc(300001 * (size_t)ranks), *in = malloc(300001 * (size_t)ranks);
    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            ring(sizes[i], turn, out, in);
            all_reduce(sizes[i] / 8 + 1, turn);
            all_to_all(sizes[i], turn, out, in);
        }
    MPI_Get_processor_name(name, &length);
    if (rank == 0)
        names = malloc((size_t)ranks * sizeof name);
    MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, all bytes right, on", ranks);
        for (int i = 0; i < ranks; i++)
            printf(" %s", names + (size_t)i * sizeof name);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
