/*
 * Tagged messages between two processes over any provider of libfabric: times there and back, or bytes a second with a
 * window of messages under way.
 *
 *   fabric serve PROVIDER ADDRESS BINS
 *   fabric drive PROVIDER ADDRESS PEER latency|bandwidth BYTES WINDOW SECONDS
 *
 * The server prints its own address in hexadecimal digits, which is PEER. The driver prints what it measured as JSON. With
 * BINS 1 the server prints in the end when messages arrived: nanoseconds of the first bin since 1970, then bytes in each
 * 10 ms.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

enum { HELLO = 1, DATA, LAST, REPLY };
enum { MOST_WINDOW = 256, MOST_SAMPLES = 1 << 20, MOST_BINS = 6000 };
#define BIN_NS 10000000LL

struct hello {
	uint64_t bytes, window, seconds;
	uint64_t address_bytes;
	unsigned char address[128];
};

struct reply {
	uint64_t messages;
	double cpu_seconds;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
/* Whether the queue can be slept at. */
static int sleeps;
static fi_addr_t peer;
static unsigned char *memory;
static struct fi_context2 sends[MOST_WINDOW], receives[MOST_WINDOW], other[4];
static long sent, received;
/* Errors from here on are the other end's leaving. */
static int is_over;
static uint64_t tag_of_last;
static double samples[MOST_SAMPLES];
static uint64_t bins[MOST_BINS];

static void die(const char *what, long error)
{
	fprintf(stderr, "%s: %s\n", what, error < 0 ? fi_strerror((int) -error) : "failed");
	exit(1);
}

static void check(const char *what, long error)
{
	if (error)
		die(what, error);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static double cpu_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void open_all(const char *provider, const char *address)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .size = 4 * MOST_WINDOW };
	struct fi_av_attr vector = { .type = FI_AV_TABLE };

	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 15), address, NULL, FI_SOURCE | FI_NUMERICHOST, hints, &info));
	check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	check("fi_domain", fi_domain(fabric, info, &domain, NULL));
	check("fi_av_open", fi_av_open(domain, &vector, &av, NULL));
	queue.wait_obj = FI_WAIT_UNSPEC;
	sleeps = !fi_cq_open(domain, &queue, &cq, NULL);
	if (!sleeps) {
		queue.wait_obj = FI_WAIT_NONE;
		check("fi_cq_open", fi_cq_open(domain, &queue, &cq, NULL));
	}
	check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	check("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_enable", fi_enable(ep));
}

/* Counts what is complete. Returns how much that was. */
static int look(int may_sleep)
{
	struct fi_cq_tagged_entry entries[16];
	struct fi_cq_err_entry error = { 0 };
	ssize_t count, i;

	count = fi_cq_read(cq, entries, 16);
	if (count == -FI_EAGAIN && may_sleep && sleeps)
		count = fi_cq_sread(cq, entries, 1, NULL, 100);
	/* Some say so when nothing came in time. */
	if (count == -FI_EAGAIN || count == -FI_EINTR || count == -FI_ETIMEDOUT) {
		if (!(may_sleep && sleeps))
			sched_yield();
		return 0;
	}
	if (count == -FI_EAVAIL) {
		fi_cq_readerr(cq, &error, 0);
		if (is_over)
			return 0;
		die("an operation", -error.err);
	}
	if (count == -FI_ENOSYS && sleeps) {
		sleeps = 0;
		return 0;
	}
	if (count < 0)
		die("fi_cq_read", count);
	for (i = 0; i < count; i++) {
		if (entries[i].flags & FI_RECV) {
			received++;
			tag_of_last = entries[i].tag;
		} else {
			sent++;
		}
	}
	return (int) count;
}

static void post(void *to, size_t bytes, uint64_t tag, struct fi_context2 *context)
{
	ssize_t done;

	while ((done = fi_trecv(ep, to, bytes, NULL, FI_ADDR_UNSPEC, tag, 0, context)) == -FI_EAGAIN)
		look(0);
	check("fi_trecv", done);
}

static void start(const void *from, size_t bytes, uint64_t tag, struct fi_context2 *context)
{
	ssize_t done;

	while ((done = fi_tsend(ep, from, bytes, NULL, peer, tag, context)) == -FI_EAGAIN)
		look(0);
	check("fi_tsend", done);
}

static void until(const long *count, long least, int may_sleep)
{
	while (*count < least)
		look(may_sleep);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static void drive_latency(size_t bytes, double seconds)
{
	int64_t begin = now_ns(CLOCK_MONOTONIC), warm = begin + (int64_t) (seconds * 2e8), at = begin;
	int64_t end = warm + (int64_t) (seconds * 1e9), then;
	long count = 0, trips = 0;
	struct reply reply;

	while (at < end) {
		post(memory, bytes, DATA, &receives[0]);
		start(memory, bytes, DATA, &sends[0]);
		trips++;
		until(&received, trips, 0);
		until(&sent, trips + 1, 0);
		then = now_ns(CLOCK_MONOTONIC);
		if (at > warm && count < MOST_SAMPLES)
			samples[count++] = (then - at) / 2e3;
		at = then;
	}
	post(&reply, sizeof(reply), REPLY, &other[0]);
	start(&trips, sizeof(trips), LAST, &other[1]);
	until(&received, trips + 1, 0);
	if (!count)
		die("no trip in time", 0);
	qsort(samples, count, sizeof(double), compare);
	printf("{\"min_us\": %.3f, \"typical_us\": %.3f, \"p99_us\": %.3f, \"trips\": %ld}\n", samples[0],
	       samples[count / 2], samples[count * 99 / 100], count);
}

static void drive_bandwidth(size_t bytes, long window, double seconds)
{
	int64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + (int64_t) (seconds * 1e9), over;
	double cpu = cpu_seconds();
	/* The greeting is complete already. */
	long before = sent, started = 0;
	struct reply reply;

	while (now_ns(CLOCK_MONOTONIC) < end) {
		while (started - (sent - before) < window) {
			start(memory, bytes, DATA, &sends[started % window]);
			started++;
		}
		look(1);
	}
	post(&reply, sizeof(reply), REPLY, &other[0]);
	start(&started, sizeof(started), LAST, &other[1]);
	until(&received, 1, 1);
	over = now_ns(CLOCK_MONOTONIC);
	cpu = cpu_seconds() - cpu;
	printf("{\"bytes\": %llu, \"seconds\": %.6f, \"client_cpu_s\": %.6f, \"server_cpu_s\": %.6f, \"waits\": \"%s\"}\n",
	       (unsigned long long) reply.messages * bytes, (over - begin) / 1e9, cpu, reply.cpu_seconds,
	       sleeps ? "asleep" : "looking");
}

static void drive(char **argv)
{
	struct hello hello = { 0 };
	const char *text = argv[4];
	unsigned char address[128];
	size_t i, len = strlen(text) / 2, own = sizeof(hello.address);
	int is_latency = !strcmp(argv[5], "latency");
	double seconds = atof(argv[8]);

	for (i = 0; i < len && i < sizeof(address); i++)
		sscanf(text + 2 * i, "%2hhx", &address[i]);
	if (fi_av_insert(av, address, 1, &peer, 0, NULL) != 1)
		die("fi_av_insert", 0);
	check("fi_getname", fi_getname(&ep->fid, hello.address, &own));
	hello.address_bytes = own;
	hello.bytes = strtoull(argv[6], NULL, 10);
	hello.window = is_latency ? 0 : strtoull(argv[7], NULL, 10);
	hello.seconds = (uint64_t) seconds;
	memory = calloc(1, hello.bytes + 1);
	memset(memory, 7, hello.bytes);
	start(&hello, sizeof(hello), HELLO, &other[2]);
	until(&sent, 1, 0);
	if (is_latency)
		drive_latency(hello.bytes, seconds);
	else
		drive_bandwidth(hello.bytes, hello.window, seconds);
}

static void serve_latency(const struct hello *hello)
{
	struct reply reply = { 0 };
	long trips = 0, at = received;
	uint64_t count;

	post(&count, sizeof(count), LAST, &other[0]);
	post(memory, hello->bytes, DATA, &receives[0]);
	for (;;) {
		until(&received, ++at, 0);
		if (tag_of_last == LAST)
			break;
		trips++;
		post(memory, hello->bytes, DATA, &receives[0]);
		start(memory, hello->bytes, DATA, &sends[0]);
	}
	until(&sent, trips, 0);
	reply.messages = trips;
	start(&reply, sizeof(reply), REPLY, &other[1]);
}

static void serve_bandwidth(const struct hello *hello, int with_bins)
{
	double cpu = cpu_seconds();
	int64_t first = now_ns(CLOCK_REALTIME), bin;
	long i, posted = 0, arrived = 0, seen, count = -1, before = received, last_bin = 0;
	uint64_t promised = 0;
	struct reply reply;

	post(&promised, sizeof(promised), LAST, &other[0]);
	for (i = 0; i < (long) hello->window; i++, posted++)
		post(memory + i * hello->bytes, hello->bytes, DATA, &receives[i]);
	while (count < 0 || arrived < count) {
		if (!look(1))
			continue;
		/* Memory that is written last stays visible: the count is there once its message is complete. */
		if (promised)
			count = (long) promised;
		seen = received - before - (promised ? 1 : 0);
		bin = (now_ns(CLOCK_REALTIME) - first) / BIN_NS;
		if (bin < MOST_BINS) {
			bins[bin] += (seen - arrived) * hello->bytes;
			last_bin = bin;
		}
		for (; arrived < seen; arrived++, posted++) {
			i = posted % (long) hello->window;
			post(memory + i * hello->bytes, hello->bytes, DATA, &receives[i]);
		}
	}
	reply.messages = (uint64_t) count;
	reply.cpu_seconds = cpu_seconds() - cpu;
	start(&reply, sizeof(reply), REPLY, &other[1]);
	if (with_bins) {
		printf("%lld", (long long) first);
		for (i = 0; i <= last_bin; i++)
			printf(" %llu", (unsigned long long) bins[i]);
		printf("\n");
	}
}

static void serve(char **argv)
{
	struct hello hello;
	unsigned char address[128];
	size_t i, len = sizeof(address);

	check("fi_getname", fi_getname(&ep->fid, address, &len));
	post(&hello, sizeof(hello), HELLO, &other[2]);
	for (i = 0; i < len; i++)
		printf("%02x", address[i]);
	printf("\n");
	fflush(stdout);
	until(&received, 1, 1);
	if (hello.window > MOST_WINDOW || fi_av_insert(av, hello.address, 1, &peer, 0, NULL) != 1)
		die("greeting", 0);
	memory = calloc(hello.window ? hello.window : 1, hello.bytes + 1);
	if (hello.window)
		serve_bandwidth(&hello, atoi(argv[4]));
	else
		serve_latency(&hello);
	fflush(stdout);
	is_over = 1;
	/* The reply and the last acknowledgements leave. Whether the other end is still there to tell is not waited for. */
	for (i = 0; i < 100; i++) {
		look(0);
		usleep(5000);
	}
}

int main(int argc, char **argv)
{
	int serves = argc > 1 && !strcmp(argv[1], "serve");

	if (argc != (serves ? 5 : 9)) {
		fprintf(stderr, "arguments: see the source\n");
		return 2;
	}
	/* As long as anybody waits; the end comes by the signal. */
	alarm(60);
	open_all(argv[2], argv[3]);
	if (serves)
		serve(argv);
	else
		drive(argv);
	fflush(stdout);
	fi_close(&ep->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	return 0;
}
