// Client of NCCL's network interface, versions 6 to 12: opens the plug-in as NCCL does, and calls it from ranks in a
// ring. Usage: harness LIBRARY VERSION RANKS ORACLES, where each letter of ORACLES names a check below.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 4, MOST_LANES = 8, DEPTH = 32, MOST_GROUP = 8, HANDLE = 128 };
enum { OK = 0, USAGE = 5, REMOTE = 6 };

#define FAIL(...) (fprintf(stderr, "rank %d, version %d, line %d: ", rank, version, __LINE__), \
                   fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define CHECK(condition, ...) ((condition) ? (void)0 : FAIL(__VA_ARGS__))

static struct shared {
    char handles[MOST_RANKS][MOST_LANES][HANDLE];
    _Atomic unsigned arrived[MOST_LANES];
} *shared;

static int rank, ranks, version;
static void **slots;

// Worst CPU time of a call and its name; calls that slept and took more than a millisecond.
static _Atomic uint64_t worst_ns, slept;
static const char *_Atomic worst_name = "";

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

struct watch { const char *name; uint64_t cpu, wall; long switches; };

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static struct watch begin(const char *name) {
    return (struct watch){name, now(CLOCK_THREAD_CPUTIME_ID), now(CLOCK_MONOTONIC), switches()};
}

static void end(const struct watch *watch) {
    uint64_t cpu = now(CLOCK_THREAD_CPUTIME_ID) - watch->cpu;
    if (cpu > worst_ns) {
        worst_ns = cpu;
        worst_name = watch->name;
    }
    if (switches() > watch->switches && now(CLOCK_MONOTONIC) - watch->wall > 1000000) slept++;
}

#define TIMED(name, call) ({ struct watch watch_ = begin(name); int result_ = (call); end(&watch_); result_; })
#define F(number, ...) ((int (*)(__VA_ARGS__))slots[number])

// Log of the plug-in, on standard error if the variable HARNESS_LOG is set.
static void write_log(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
    (void)flags, (void)file, (void)line;
    if (!getenv("HARNESS_LOG")) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rank %d, level %d: ", rank, level);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static int net_init(void) {
    void *context = NULL;
    if (version <= 9) return F(1, void *)(write_log);
    if (version == 10) return F(1, void *, void *)(write_log, NULL);
    return F(1, void **, uint64_t, void *, void *, void *)(&context, 7, NULL, write_log, NULL);
}
static int net_listen(char *handle, void **to) {
    if (version <= 10) return TIMED("listen", (F(4, int, void *, void **)(0, handle, to)));
    return TIMED("listen", (F(4, void *, int, void *, void **)(NULL, 0, handle, to)));
}
static int net_connect(char *handle, void **to) {
    void *offload = NULL;
    if (version == 6) return TIMED("connect", (F(5, int, void *, void **)(0, handle, to)));
    if (version <= 9) return TIMED("connect", (F(5, int, void *, void **, void **)(0, handle, to, &offload)));
    if (version == 10) return TIMED("connect", (F(5, int, void *, void *, void **, void **)(0, NULL, handle, to, &offload)));
    return TIMED("connect", (F(5, void *, int, void *, void **, void **)(NULL, 0, handle, to, &offload)));
}
static int net_accept(void *listener, void **to) {
    void *offload = NULL;
    if (version == 6) return TIMED("accept", (F(6, void *, void **)(listener, to)));
    return TIMED("accept", (F(6, void *, void **, void **)(listener, to, &offload)));
}
static int net_register(void *comm, void *data, size_t size, void **to) {
    if (version <= 7) return TIMED("regMr", (F(7, void *, void *, int, int, void **)(comm, data, (int)size, 1, to)));
    return TIMED("regMr", (F(7, void *, void *, size_t, int, void **)(comm, data, size, 1, to)));
}
static int net_deregister(void *comm, void *memory) { return F(9, void *, void *)(comm, memory); }
static int net_isend(void *comm, void *data, size_t size, int tag, void *memory, void **request) {
    if (version <= 8) return TIMED("isend", (F(10, void *, void *, int, int, void *, void **)(comm, data, (int)size, tag, memory, request)));
    if (version == 9) return TIMED("isend", (F(10, void *, void *, size_t, int, void *, void **)(comm, data, size, tag, memory, request)));
    return TIMED("isend", (F(10, void *, void *, size_t, int, void *, void *, void **)(comm, data, size, tag, memory, NULL, request)));
}
static int net_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **memories, void **request) {
    int narrow[MOST_GROUP];
    for (int i = 0; i < n; i++) narrow[i] = (int)sizes[i];
    if (version <= 8) return TIMED("irecv", (F(11, void *, int, void **, int *, int *, void **, void **)(comm, n, data, narrow, tags, memories, request)));
    if (version == 9) return TIMED("irecv", (F(11, void *, int, void **, size_t *, int *, void **, void **)(comm, n, data, sizes, tags, memories, request)));
    return TIMED("irecv", (F(11, void *, int, void **, size_t *, int *, void **, void **, void **)(comm, n, data, sizes, tags, memories, NULL, request)));
}
static int net_test(void *request, int *done, int *sizes) { return TIMED("test", (F(13, void *, int *, int *)(request, done, sizes))); }
static int net_close(int slot, void *comm) { return TIMED("close", (F(slot, void *)(comm))); }
enum { CLOSE_SEND = 14, CLOSE_RECEIVE, CLOSE_LISTEN };

// Waits for the same lane of all ranks.
static void meet(int lane, unsigned *round) {
    unsigned goal = ++*round * ranks;
    atomic_fetch_add(&shared->arrived[lane], 1);
    while (atomic_load(&shared->arrived[lane]) < goal) sched_yield();
}

static unsigned char pattern(unsigned seed, size_t at) { return (unsigned char)(seed * 131 + at * 7 + (at >> 8) + 1); }
static void fill(unsigned char *data, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++) data[at] = pattern(seed, at);
}
static int is_filled(const unsigned char *data, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++)
        if (data[at] != pattern(seed, at)) return 0;
    return 1;
}

// Both connections of a rank: to the next one, and from the one before.
struct ring { void *send, *receive, *send_memory, *receive_memory; unsigned char *from, *to; size_t room; };

static unsigned char *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    return memory;
}

static void connect_ring(struct ring *ring, char *handle, void *listener) {
    char copy[HANDLE];
    memcpy(copy, handle, HANDLE);
    ring->send = ring->receive = NULL;
    while (!ring->send || !ring->receive) {
        if (!ring->send) CHECK(net_connect(copy, &ring->send) == OK, "connect");
        if (!ring->receive) CHECK(net_accept(listener, &ring->receive) == OK, "accept");
        sched_yield();
    }
}

static void open_memory(struct ring *ring, size_t room) {
    ring->room = room;
    ring->from = map(room);
    ring->to = map(room);
    CHECK(net_register(ring->send, ring->from, room, &ring->send_memory) == OK, "regMr");
    CHECK(net_register(ring->receive, ring->to, room, &ring->receive_memory) == OK, "regMr");
}

static void *open_ring(struct ring *ring, int lane, unsigned *round, size_t room) {
    void *listener = NULL;
    CHECK(net_listen(shared->handles[rank][lane], &listener) == OK && listener, "listen");
    meet(lane, round);
    connect_ring(ring, shared->handles[(rank + 1) % ranks][lane], listener);
    open_memory(ring, room);
    return listener;
}

static void close_ring(struct ring *ring) {
    CHECK(net_deregister(ring->send, ring->send_memory) == OK, "deregMr");
    CHECK(net_deregister(ring->receive, ring->receive_memory) == OK, "deregMr");
    CHECK(net_close(CLOSE_SEND, ring->send) == OK && net_close(CLOSE_RECEIVE, ring->receive) == OK, "close");
    munmap(ring->from, ring->room);
    munmap(ring->to, ring->room);
}

static void send_one(struct ring *ring, size_t at, size_t size, int tag, void **request) {
    CHECK(net_isend(ring->send, ring->from + at, size, tag, ring->send_memory, request) == OK, "isend of %zu", size);
}

static void receive_one(struct ring *ring, size_t at, size_t room, int tag, void **request) {
    void *data = ring->to + at;
    CHECK(net_irecv(ring->receive, 1, &data, &room, &tag, &ring->receive_memory, request) == OK, "irecv of %zu", room);
}

// Returns 1 if the request is done, and its sizes. A request that is done is forgotten.
static int finished(void **request, int *sizes) {
    int done = 0, result = net_test(*request, &done, sizes);
    CHECK(result == OK, "test fails with %d", result);
    if (done) *request = NULL;
    return done;
}

// Exchanges `count` messages of one size with the neighbours, all in flight.
static void exchange(struct ring *ring, size_t size, int count, unsigned seed) {
    size_t slack = 64, stride = (size + slack + 127) / 128 * 128;
    void *sends[DEPTH] = {0}, *receives[DEPTH] = {0};
    int sent = 0, posted = 0, left = 2 * count, before = (rank + ranks - 1) % ranks;
    CHECK(count <= DEPTH && stride * count <= ring->room, "room");
    for (int i = 0; i < count; i++) fill(ring->from + i * stride, size, seed + rank * 1000 + i);
    memset(ring->to, 0, stride * count);
    while (left > 0) {
        if (posted < count) {
            receive_one(ring, posted * stride, size + slack, before, &receives[posted]);
            if (receives[posted]) posted++;
        }
        if (sent < count) {
            send_one(ring, sent * stride, size, rank, &sends[sent]);
            if (sends[sent]) sent++;
        }
        for (int i = 0; i < count; i++) {
            int got = -1;
            if (sends[i] && finished(&sends[i], &got)) {
                CHECK((size_t)got == size, "%d sent instead of %zu", got, size);
                left--;
            }
            if (receives[i] && finished(&receives[i], &got)) {
                CHECK((size_t)got == size, "%d received instead of %zu", got, size);
                CHECK(is_filled(ring->to + i * stride, size, seed + before * 1000 + i), "bytes of message %d of %zu", i, size);
                CHECK(ring->to[i * stride + size] == 0, "a byte behind message %d of %zu", i, size);
                left--;
            }
        }
    }
}

// 1: sizes, up to 32 in flight, receives that are larger.
static void sizes(struct ring *ring) {
    static const struct { size_t size; int count; } cases[] = {
        {0, 32}, {1, 32}, {8, 32}, {127, 32}, {128, 32}, {1000, 32}, {4096, 32}, {65536, 32}, {(1 << 20) + 1, 2}, {4 << 20, 1},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) exchange(ring, cases[i].size, cases[i].count, i);
}

// 2: a message that is longer than its receive fails at both ends; other requests of the connection go on.
static void too_long(struct ring *ring) {
    void *send[3] = {0}, *receive[3] = {0};
    int codes[6] = {-1, -1, -1, -1, -1, -1}, before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < 3; i++) receive_one(ring, i * 4096, 100, before, &receive[i]);
    for (int i = 0; i < 3; i++)
        while (!send[i]) send_one(ring, i * 4096, i == 1 ? 200 : 100, rank, &send[i]);
    for (int left = 6; left > 0;) {
        for (int i = 0; i < 6; i++) {
            int done = 0, result = codes[i] == -1 ? net_test(i < 3 ? send[i] : receive[i - 3], &done, NULL) : OK;
            if (codes[i] == -1 && (done || result != OK)) {
                codes[i] = result;
                left--;
            }
        }
    }
    for (int i = 0; i < 6; i++) CHECK(codes[i] == (i % 3 == 1 ? USAGE : OK), "request %d ends with %d", i, codes[i]);
}

// 3: groups of 1 to 8 receives: equal tags, tags in reverse, sizes that differ, one of them 0.
static void groups(struct ring *ring) {
    int before = (rank + ranks - 1) % ranks;
    for (int n = 1; n <= MOST_GROUP; n++) {
        for (int mode = 0; mode < 2; mode++) {
            void *data[MOST_GROUP], *memories[MOST_GROUP], *group = NULL, *sends[MOST_GROUP] = {0};
            size_t rooms[MOST_GROUP];
            int tags[MOST_GROUP], got[MOST_GROUP], posted = 0, sent = 0, left = n + 1;
            for (int i = 0; i < n; i++) {
                data[i] = ring->to + i * 65536;
                rooms[i] = 60000;
                memories[i] = ring->receive_memory;
                tags[i] = mode == 0 ? 5 : n - 1 - i;
            }
            memset(ring->to, 0, n * 65536);
            while (left > 0) {
                if (!posted) {
                    CHECK(net_irecv(ring->receive, n, data, rooms, tags, memories, &group) == OK, "irecv of %d", n);
                    posted = group != NULL;
                }
                if (sent < n) {
                    size_t size = sent == 3 ? 0 : 1 + sent * 7001;
                    fill(ring->from + sent * 65536, size, n * 100 + sent + rank);
                    send_one(ring, sent * 65536, size, mode == 0 ? 5 : sent, &sends[sent]);
                    if (sends[sent]) sent++;
                }
                for (int i = 0; i < n; i++)
                    if (sends[i] && finished(&sends[i], NULL)) left--;
                if (group && finished(&group, got)) {
                    left--;
                    for (int i = 0; i < n; i++) {
                        int message = mode == 0 ? i : tags[i];
                        int size = message == 3 ? 0 : 1 + message * 7001;
                        CHECK(got[i] == size, "receive %d of %d has %d bytes instead of %d", i, n, got[i], size);
                        CHECK(is_filled(data[i], size, n * 100 + message + before), "bytes of receive %d of %d", i, n);
                    }
                }
            }
        }
    }
}

// 4: a request that enters as 1, with a queue that fills.
static void optional(struct ring *ring) {
    void *receives[DEPTH + 1], *sends[DEPTH] = {0};
    int sent = 0, left = 2 * DEPTH, before = (rank + ranks - 1) % ranks;
    for (int i = 0; i <= DEPTH; i++) {
        do {
            receives[i] = (void *)1;
            receive_one(ring, i * 128, 128, before, &receives[i]);
            CHECK(receives[i] != (void *)1, "the request stays 1");
        } while (i < DEPTH && !receives[i]);
    }
    CHECK(!receives[DEPTH], "more receives than are allowed");
    while (left > 0) {
        if (sent < DEPTH) {
            sends[sent] = (void *)1;
            send_one(ring, 0, 16, rank, &sends[sent]);
            CHECK(sends[sent] != (void *)1, "the request stays 1");
            if (sends[sent]) sent++;
        }
        for (int i = 0; i < DEPTH; i++) {
            if (i < sent && sends[i] && finished(&sends[i], NULL)) left--;
            if (receives[i] && finished(&receives[i], NULL)) left--;
        }
    }
}

// 5: more connections of one listener, many at once.
static void many(void *listener, int lane, unsigned *round) {
    enum { COMMS = 256 };
    static struct ring rings[COMMS];
    static char copies[COMMS][HANDLE];
    int open = 0;
    meet(lane, round);
    for (int i = 0; i < COMMS; i++) memcpy(copies[i], shared->handles[(rank + 1) % ranks][lane], HANDLE);
    for (int accepted = 0; open < COMMS || accepted < COMMS; sched_yield()) {
        for (int i = 0; i < COMMS; i++) {
            if (rings[i].send) continue;
            CHECK(net_connect(copies[i], &rings[i].send) == OK, "connect %d", i);
            open += rings[i].send != NULL;
        }
        if (accepted < COMMS) {
            CHECK(net_accept(listener, &rings[accepted].receive) == OK, "accept %d", accepted);
            accepted += rings[accepted].receive != NULL;
        }
    }
    // Connections are accepted in any order, so each tells its number.
    unsigned char *memory = map(2 * COMMS * 64);
    unsigned seen = 0;
    void *sends[COMMS] = {0}, *receives[COMMS] = {0};
    for (int i = 0; i < COMMS; i++) {
        rings[i].from = memory + i * 64;
        rings[i].to = memory + (COMMS + i) * 64;
        CHECK(net_register(rings[i].send, rings[i].from, 64, &rings[i].send_memory) == OK, "regMr");
        CHECK(net_register(rings[i].receive, rings[i].to, 64, &rings[i].receive_memory) == OK, "regMr");
        memset(rings[i].from, i, 64);
        receive_one(&rings[i], 0, 64, 0, &receives[i]);
    }
    for (int left = COMMS, unsent = COMMS, flying = 0; left > 0 || unsent > 0 || flying > 0;) {
        for (int i = 0; i < COMMS; i++) {
            int got;
            if (receives[i] && finished(&receives[i], &got)) {
                CHECK(got == 64 && rings[i].to[0] == rings[i].to[63], "bytes of connection %d", i);
                seen += rings[i].to[0];
                left--;
            }
            if (sends[i] && sends[i] != (void *)1 && finished(&sends[i], NULL)) {
                sends[i] = (void *)1;
                flying--;
            }
            if (!sends[i]) {
                send_one(&rings[i], 0, 64, 0, &sends[i]);
                if (sends[i]) unsent--, flying++;
            }
        }
    }
    CHECK(seen == COMMS * (COMMS - 1) / 2, "some connection has another's bytes");
    for (int i = 0; i < COMMS; i++) {
        CHECK(net_deregister(rings[i].send, rings[i].send_memory) == OK, "deregMr");
        CHECK(net_deregister(rings[i].receive, rings[i].receive_memory) == OK, "deregMr");
        CHECK(net_close(CLOSE_SEND, rings[i].send) == OK && net_close(CLOSE_RECEIVE, rings[i].receive) == OK, "close");
    }
}

// d: a port that nobody answers at, and the handle of another plug-in.
static void dead_port(int lane) {
    char dead[HANDLE];
    memcpy(dead, shared->handles[rank][lane], HANDLE);
    memcpy(dead + 104, "\1\0\1\0\1\0\1\0", 8);
    void *comm = NULL;
    int result = OK;
    uint64_t start = now(CLOCK_MONOTONIC);
    while (result == OK && !comm) result = net_connect(dead, &comm), usleep(100);
    CHECK(result == REMOTE, "a dead port ends with %d", result);
    CHECK(now(CLOCK_MONOTONIC) - start < 20000000000ull, "a dead port is noticed late");
    memset(dead, 0xee, HANDLE);
    CHECK(net_connect(dead, &comm) == USAGE, "a handle of another plug-in");
}

// 6: memory is taken back, the connection closed and the memory unmapped with everything in flight.
static void *abort_lane(void *argument) {
    int lane = (int)(intptr_t)argument;
    unsigned round = 0;
    for (int time = 0; time < 10; time++) {
        struct ring ring;
        void *listener = open_ring(&ring, lane, &round, 32 << 20), *requests[2 * DEPTH] = {0};
        int done = 0;
        for (int i = 0; i < DEPTH; i++) receive_one(&ring, (size_t)i << 20, 1 << 20, 0, &requests[i]);
        // The peer may abort before, so results are not looked at.
        for (int i = 0, result = OK; i < DEPTH && result == OK; i++)
            while (result == OK && !requests[DEPTH + i])
                result = net_isend(ring.send, ring.from + ((size_t)i << 20), 1 << 20, 0, ring.send_memory, &requests[DEPTH + i]);
        net_test(requests[time], &done, NULL);
        net_deregister(ring.send, ring.send_memory);
        munmap(ring.from, ring.room);
        net_close(CLOSE_SEND, ring.send);
        net_deregister(ring.receive, ring.receive_memory);
        munmap(ring.to, ring.room);
        net_close(CLOSE_RECEIVE, ring.receive);
        net_close(CLOSE_LISTEN, listener);
        meet(lane, &round);
    }
    return NULL;
}

static void aborts(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, abort_lane, (void *)(intptr_t)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

// 7: the receiver closes right after its last message; the sender's request still succeeds.
static void early_close(void *listener, int lane, unsigned *round) {
    for (int time = 0; time < 30; time++) {
        struct ring ring;
        void *send = NULL, *receive = NULL;
        meet(lane, round);
        connect_ring(&ring, shared->handles[(rank + 1) % ranks][lane], listener);
        open_memory(&ring, 4096);
        receive_one(&ring, 0, 4096, 0, &receive);
        for (int closed = 0; !closed || !send || send != (void *)1;) {
            if (!send) send_one(&ring, 0, 4096, 0, &send);
            if (send && send != (void *)1 && finished(&send, NULL)) send = (void *)1;
            if (receive && finished(&receive, NULL)) {
                CHECK(net_deregister(ring.receive, ring.receive_memory) == OK, "deregMr");
                CHECK(net_close(CLOSE_RECEIVE, ring.receive) == OK, "close");
                closed = 1;
            }
        }
        CHECK(net_deregister(ring.send, ring.send_memory) == OK && net_close(CLOSE_SEND, ring.send) == OK, "close");
        munmap(ring.from, ring.room);
        munmap(ring.to, ring.room);
    }
}

// 8: the last rank is killed; what its neighbours have in flight fails in time.
static void killed(struct ring *ring, int lane, unsigned *round) {
    void *sends[DEPTH] = {0}, *receives[DEPTH] = {0};
    meet(lane, round);
    if (rank == ranks - 1) kill(getpid(), SIGKILL);
    for (int i = 0; i < DEPTH; i++) receive_one(ring, 0, 4096, 0, &receives[i]);
    uint64_t start = now(CLOCK_MONOTONIC);
    int before = (rank + ranks - 1) % ranks, fails = -1;
    while (fails != REMOTE) {
        int done = 0, result = OK;
        // Rank 0 receives from the dead rank, the one before it sends to it.
        if (before == ranks - 1) result = net_test(receives[5], &done, NULL);
        else break;
        if (result != OK) fails = result;
        CHECK(now(CLOCK_MONOTONIC) - start < 10000000000ull, "a dead peer is not noticed");
    }
    if ((rank + 1) % ranks == ranks - 1) {
        for (int result = OK, done = 0; result != REMOTE; sends[0] = done ? NULL : sends[0]) {
            if (sends[0]) result = net_test(sends[0], &done, NULL);
            else result = net_isend(ring->send, ring->from, 16, 0, ring->send_memory, &sends[0]);
            CHECK(now(CLOCK_MONOTONIC) - start < 10000000000ull, "a dead peer is not noticed");
        }
    }
}

// 9: in the child of a fork every call fails, and the parent goes on.
static void forks(struct ring *ring, void *listener) {
    pid_t child = fork();
    if (child == 0) {
        int done, failures = 0, tag = 0;
        char handle[HANDLE];
        void *to = NULL, *data = ring->to;
        size_t room = 16;
        failures += net_init() != OK;
        failures += net_listen(handle, &to) != OK;
        failures += net_connect(handle, &to) != OK;
        failures += net_accept(listener, &to) != OK;
        failures += net_register(ring->send, ring->from, 16, &to) != OK;
        failures += net_isend(ring->send, ring->from, 16, 0, ring->send_memory, &to) != OK;
        failures += net_irecv(ring->receive, 1, &data, &room, &tag, &ring->receive_memory, &to) != OK;
        failures += net_test(ring->send, &done, NULL) != OK;
        failures += net_deregister(ring->send, ring->send_memory) != OK;
        failures += net_close(CLOSE_SEND, ring->send) != OK;
        failures += net_close(CLOSE_LISTEN, listener) != OK;
        exit(failures == 11 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child of a fork ends with %d", status);
    exchange(ring, 5000, 8, 3);
}

// b: one thread is both ends, so that a call that waits for the other end waits for ever.
static void both_ends(void *listener) {
    struct ring ring = {0};
    void *sends[DEPTH] = {0}, *receives[DEPTH] = {0};
    int sent = 0;
    CHECK(ranks == 1, "%d ranks instead of one", ranks);
    for (int i = 0; i < 100; i++) CHECK(net_accept(listener, &ring.receive) == OK && !ring.receive, "accept of nobody");
    connect_ring(&ring, shared->handles[0][0], listener);
    open_memory(&ring, DEPTH * 1000);
    fill(ring.from, ring.room, 7);
    // Without a receive a send is refused for now, or goes on for now.
    for (int i = 0; i < 1000; i++) {
        if (sent < DEPTH) send_one(&ring, sent * 1000, 1000, 0, &sends[sent]);
        if (sent < DEPTH && sends[sent]) sent++;
        for (int j = 0; j < sent; j++) CHECK(!finished(&sends[j], NULL), "send %d is done without a receive", j);
    }
    for (int posted = 0, left = 2 * DEPTH; left > 0;) {
        if (posted < DEPTH) receive_one(&ring, posted * 1000, 1000, 0, &receives[posted]);
        if (posted < DEPTH && receives[posted]) posted++;
        if (sent < DEPTH) send_one(&ring, sent * 1000, 1000, 0, &sends[sent]);
        if (sent < DEPTH && sends[sent]) sent++;
        for (int i = 0; i < DEPTH; i++) {
            if (sends[i] && finished(&sends[i], NULL)) left--;
            if (receives[i] && finished(&receives[i], NULL)) left--;
        }
    }
    CHECK(is_filled(ring.to, ring.room, 7), "bytes");
    close_ring(&ring);
}

static void *load(const char *path) {
    char name[64];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    snprintf(name, sizeof name, "ncclNetPlugin_v%d", version);
    slots = dlsym(library, name);
    CHECK(slots, "no %s", name);
    CHECK(!strcmp((char *)slots[0], "pathweave"), "its name is %s", (char *)slots[0]);
    int result = net_init(), count = 0;
    if (result != OK) exit(100 + result);
    CHECK(F(2, int *)(&count) == OK && count == 1, "%d devices", count);
    return library;
}

// Fields of the properties that all versions have in the same place.
static void properties(void) {
    char bytes[256];
    memset(bytes, 0xee, sizeof bytes);
    CHECK(F(3, int, void *)(0, bytes) == OK, "getProperties");
    int size = version == 6 ? 48 : version == 7 ? 56 : version == 8 ? 64 : version <= 10 ? 104 : version == 11 ? 112 : 128;
    int pointers, receives;
    char *name;
    memcpy(&name, bytes, sizeof name);
    memcpy(&pointers, bytes + 24, sizeof pointers);
    memcpy(&receives, bytes + (version <= 7 ? 44 : version == 8 ? 48 : 52), sizeof receives);
    CHECK(!strcmp(name, "lo") && pointers == 1 && receives == MOST_GROUP, "properties %s %d %d", name, pointers, receives);
    CHECK((unsigned char)bytes[size] == 0xee, "properties are longer than those of the version");
    CHECK(F(3, int, void *)(1, bytes) == USAGE, "a device that does not exist");
}

static int run(const char *library_path, const char *oracles) {
    struct ring ring;
    unsigned round = 0;
    void *library = load(library_path);
    properties();
    void *listener = open_ring(&ring, 0, &round, 8 << 20);
    for (; *oracles; oracles++) {
        switch (*oracles) {
        case '1': sizes(&ring); break;
        case '2':
            too_long(&ring);
            // All places of the connection are used once more.
            exchange(&ring, 100, DEPTH, 50);
            exchange(&ring, 100, DEPTH, 51);
            break;
        case '3': groups(&ring); break;
        case '4': optional(&ring); break;
        case '5': many(listener, 0, &round); break;
        case 'b': both_ends(listener); break;
        case 'd': dead_port(0); break;
        case '6': aborts(); break;
        case '7': early_close(listener, 0, &round); break;
        case '8': killed(&ring, 0, &round); return 0;
        case '9': forks(&ring, listener); break;
        case 'a':
            meet(0, &round);
            close_ring(&ring);
            CHECK(net_close(CLOSE_LISTEN, listener) == OK, "closeListen");
            if (version >= 11) CHECK(F(20, void *)(NULL) == OK, "finalize");
            dlclose(library);
            library = load(library_path);
            listener = open_ring(&ring, 0, &round, 8 << 20);
            exchange(&ring, 5000, 8, 1);
            break;
        default: FAIL("oracle %c", *oracles);
        }
    }
    meet(0, &round);
    close_ring(&ring);
    CHECK(net_close(CLOSE_LISTEN, listener) == OK, "closeListen");
    printf("rank %d: %s took %.3f ms of CPU time at most; %d calls slept more than 1 ms\n", rank, worst_name, worst_ns / 1e6, (int)slept);
    return 0;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    version = atoi(arguments[2]);
    ranks = atoi(arguments[3]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (rank = 0; rank < ranks; rank++) {
        fflush(NULL);
        if (fork() == 0) {
            alarm(120);
            int result = run(arguments[1], arguments[4]);
            fflush(NULL);
            _exit(result);
        }
    }
    int result = 0, kills = strchr(arguments[4], '8') ? 1 : 0;
    for (int i = 0; i < ranks; i++) {
        int status;
        wait(&status);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && kills-- > 0) continue;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) result = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
        if (WIFSIGNALED(status)) fprintf(stderr, "a rank ends with signal %d\n", WTERMSIG(status));
    }
    return result;
}
