/*
 * Calls a network plugin as NCCL does: processes that connect to each other and keep requests under way, on host memory. Every
 * byte is looked at.
 *
 *   nccl PLUGIN RANKS ROUNDS
 *
 * PLUGIN is a library with ncclNetPlugin_v6 (of builds for Neuron v5, which is the same), or "sendrecv": ours in miniature.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl.h"

enum { MOST_RANKS = 16, UNDER_WAY = 8, LARGEST = 4 << 20 };

/* Between the processes, in place of NCCL's own bootstrap. */
struct board {
	_Atomic int there[MOST_RANKS][MOST_RANKS];
	char handles[MOST_RANKS][MOST_RANKS][HANDLE_BYTES];
};

struct slot {
	unsigned char *data;
	void *memory, *request;
	size_t bytes;
	int number;
};

/* One direction between this process and another. */
struct way {
	void *connection;
	struct slot slots[UNDER_WAY];
	int begun, done, from, to, is_send;
};

static struct net *net;
static struct board *board;
static int rank, ranks, rounds;

static const size_t sizes[] = { 0, 1, 8, 100, 1023, 1024, 1025, 4096, 16383, 16384, 16385, 65536, 262145, 1 << 20, LARGEST };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void die(const char *what)
{
	fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, what);
	_exit(1);
}

static void must(int result, const char *what)
{
	if (result)
		die(what);
}

static void told(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	va_list arguments;

	(void) flags;
	if (level > (getenv("NCCL_DEBUG") ? 5 : 2))
		return;
	va_start(arguments, format);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static unsigned char expected(int from, int to, int number, size_t at)
{
	return (unsigned char) (from * 31 + to * 7 + number * 13 + at * 131 + (at >> 8));
}

/* Sizes in a mixed order, the same at both ends. */
static size_t size_of(int from, int to, int number)
{
	return sizes[((unsigned) number * 7 + from + 3 * to) % SIZES];
}

static void open_way(struct way *way, void *connection, int from, int to)
{
	int i;

	way->connection = connection;
	way->is_send = from == rank;
	way->from = from;
	way->to = to;
	for (i = 0; i < UNDER_WAY; i++) {
		way->slots[i].data = malloc(LARGEST);
		must(net->register_memory(connection, way->slots[i].data, LARGEST, HOST_MEMORY, &way->slots[i].memory),
		     "memory cannot be registered");
	}
}

static void begin(struct way *way, struct slot *slot)
{
	size_t at, bytes = size_of(way->from, way->to, way->begun);
	void *data = slot->data;
	int room, tag = 0;

	slot->number = way->begun;
	slot->bytes = bytes;
	if (way->is_send) {
		for (at = 0; at < bytes; at++)
			slot->data[at] = expected(way->from, way->to, slot->number, at);
		must(net->send(way->connection, slot->data, (int) bytes, 0, slot->memory, &slot->request), "send");
	} else {
		memset(slot->data, 0xee, bytes);
		/* There is more room than is sent, as NCCL has it now and then. */
		room = (int) (bytes + 64 < LARGEST ? bytes + 64 : LARGEST);
		must(net->receive(way->connection, 1, &data, &room, &tag, &slot->memory, &slot->request), "receive");
	}
	if (slot->request)
		way->begun++;
}

static void look(struct way *way, struct slot *slot)
{
	int done = 0, bytes = -1;
	void *flush = NULL, *data = slot->data;
	size_t at;

	must(net->test(slot->request, &done, &bytes), "a request failed");
	if (!done)
		return;
	if (!way->is_send) {
		if (bytes != (int) slot->bytes)
			die("a message has another size");
		for (at = 0; at < slot->bytes; at++)
			if (slot->data[at] != expected(way->from, way->to, slot->number, at))
				die("bytes differ");
		/* Nothing to do for host memory. */
		must(net->flush(way->connection, 1, &data, &bytes, &slot->memory, &flush), "flush");
		while (flush) {
			must(net->test(flush, &done, NULL), "flush");
			if (done)
				flush = NULL;
		}
	}
	slot->request = NULL;
	way->done++;
}

/* Keeps as many requests under way as fit, until all are done. */
static void exchange(struct way *ways, int count)
{
	int total = rounds * SIZES, left = count, i, w;

	while (left) {
		left = 0;
		for (w = 0; w < count; w++) {
			struct way *way = &ways[w];

			/* Requests are begun in the order of their numbers. */
			for (i = 0; i < UNDER_WAY; i++) {
				struct slot *slot = &way->slots[way->begun % UNDER_WAY];

				if (slot->request || way->begun == total)
					break;
				begin(way, slot);
				if (!slot->request)
					break;
			}
			for (i = 0; i < UNDER_WAY; i++)
				if (way->slots[i].request)
					look(way, &way->slots[i]);
			left += way->done < total;
		}
		sched_yield();
	}
}

static void connect_to(int peer, void **sender)
{
	while (!board->there[peer][rank])
		sched_yield();
	do {
		must(net->connect(0, board->handles[peer][rank], sender), "connect");
	} while (!*sender);
}

static void accept_from(void *listener, void **receiver)
{
	do {
		must(net->accept(listener, receiver), "accept");
	} while (!*receiver);
}

static int run(void)
{
	struct way ways[2 * MOST_RANKS] = { 0 };
	struct net_properties properties = { 0 };
	void *listeners[MOST_RANKS] = { 0 };
	int devices = 0, peer, count = 0, w, i;

	must(net->init(told), "init");
	must(net->devices(&devices), "devices");
	if (devices < 1)
		die("there is no device");
	must(net->get_properties(0, &properties), "properties");
	if (!(properties.memory_kinds & HOST_MEMORY))
		die("the device does not do");
	for (peer = 0; peer < ranks; peer++) {
		if (peer == rank)
			continue;
		must(net->listen(0, board->handles[rank][peer], &listeners[peer]), "listen");
		board->there[rank][peer] = 1;
	}
	for (peer = 0; peer < ranks; peer++) {
		void *sender = NULL, *receiver = NULL;

		if (peer == rank)
			continue;
		/* Both calls may block, so one of a pair begins. */
		if (rank < peer) {
			connect_to(peer, &sender);
			accept_from(listeners[peer], &receiver);
		} else {
			accept_from(listeners[peer], &receiver);
			connect_to(peer, &sender);
		}
		open_way(&ways[count++], sender, rank, peer);
		open_way(&ways[count++], receiver, peer, rank);
	}
	exchange(ways, count);
	/* Who is done waits for the others: a connection that is closed takes nothing more. */
	board->there[rank][rank] = 1;
	for (peer = 0; peer < ranks; peer++)
		while (!board->there[peer][peer])
			usleep(1000);
	for (w = 0; w < count; w++) {
		for (i = 0; i < UNDER_WAY; i++) {
			must(net->deregister_memory(ways[w].connection, ways[w].slots[i].memory), "deregister");
			free(ways[w].slots[i].data);
		}
		if (ways[w].is_send)
			must(net->close_sender(ways[w].connection), "close");
		else
			must(net->close_receiver(ways[w].connection), "close");
	}
	for (peer = 0; peer < ranks; peer++)
		if (listeners[peer])
			must(net->close_listener(listeners[peer]), "close");
	if (rank == 0)
		printf("%s on %s: %d messages exact among %d ranks\n", net->name, properties.name,
		       rounds * SIZES * ranks * (ranks - 1), ranks);
	fflush(stdout);
	return 0;
}

static struct net *load(const char *plugin)
{
	void *library, *symbol;

	if (!strcmp(plugin, "sendrecv"))
		return &sendrecv;
	library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	symbol = dlsym(library, "ncclNetPlugin_v5");
	if (!symbol)
		symbol = dlsym(library, "ncclNetPlugin_v6");
	if (!symbol) {
		fprintf(stderr, "%s has no ncclNetPlugin_v6\n", plugin);
		exit(1);
	}
	return symbol;
}

int main(int argc, char **argv)
{
	int failed = 0, status, peer;
	pid_t children[MOST_RANKS];

	if (argc != 4 || atoi(argv[2]) < 2 || atoi(argv[2]) > MOST_RANKS) {
		fprintf(stderr, "arguments: see the source\n");
		return 2;
	}
	ranks = atoi(argv[2]);
	rounds = atoi(argv[3]);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	/* Before anything is loaded: libraries of networks do not outlive a fork. */
	for (peer = 0; peer < ranks; peer++) {
		children[peer] = fork();
		if (children[peer] == 0) {
			rank = peer;
			net = load(argv[1]);
			return run();
		}
	}
	while (wait(&status) > 0) {
		if (!status || failed)
			continue;
		failed = 1;
		if (WIFSIGNALED(status))
			fprintf(stderr, "a process was ended by signal %d\n", WTERMSIG(status));
		/* The others would wait for it. */
		for (peer = 0; peer < ranks; peer++)
			kill(children[peer], SIGKILL);
	}
	return failed;
}
