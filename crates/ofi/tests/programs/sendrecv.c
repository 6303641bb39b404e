/*
 * A network plugin in miniature: what aws-ofi-nccl's protocol of sends and receives asks of a provider, in its manner. One
 * endpoint carries the messages of all connections, each under a tag of its own; another, at the same completion queue, carries
 * the requests to connect. Memory is registered always, locally, whether that is needed or not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "nccl.h"

enum { NAME_BYTES = 56, GREETINGS = 8, REQUESTS = 256 };

/* What a listener hands out. */
struct handle {
	unsigned char name[NAME_BYTES];
	uint64_t listener;
};

/* What who connects sends there, and what it gets back: addresses of both endpoints, whom it is for, and who hears the answer. */
struct greeting {
	unsigned char messages[NAME_BYTES], connections[NAME_BYTES];
	uint64_t listener, answer, tag;
};

/* Its first field is what the provider may write to. */
struct request {
	struct fi_context2 context;
	int used, done;
	size_t bytes;
};

struct listener {
	uint64_t number;
	struct greeting arrived;
	int has_arrived;
	struct listener *next;
};

struct connection {
	fi_addr_t peer;
	uint64_t tag;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_ep *messages, *connections;
static struct fid_av *message_peers, *connection_peers;
static struct request requests[REQUESTS], posted[GREETINGS];
static struct greeting greetings[GREETINGS];
static struct listener *listeners;
static uint64_t last_number, last_tag;

static int failed(const char *what, long error)
{
	if (error < 0)
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int) -error));
	return error < 0;
}

static struct fi_info *hints_with(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG | caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (caps & FI_HMEM)
		hints->domain_attr->mr_mode |= FI_MR_HMEM;
	hints->domain_attr->mr_key_size = 4;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup("pathweave");
	return hints;
}

static int open_endpoint(struct fid_ep **ep, struct fid_av **av)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	return failed("fi_av_open", fi_av_open(domain, &attr, av, NULL)) ||
	       failed("fi_endpoint", fi_endpoint(domain, info, ep, NULL)) ||
	       failed("fi_ep_bind", fi_ep_bind(*ep, &(*av)->fid, 0)) ||
	       failed("fi_ep_bind", fi_ep_bind(*ep, &cq->fid, FI_SEND | FI_RECV)) || failed("fi_enable", fi_enable(*ep));
}

static int open_registration(void *data, size_t bytes, struct fid_ep *ep, struct fid_mr **mr)
{
	struct iovec piece = { data, bytes };
	struct fi_mr_attr attr = { .mr_iov = &piece, .iov_count = 1, .access = FI_SEND | FI_RECV };

	if (failed("fi_mr_regattr", fi_mr_regattr(domain, &attr, 0, mr)))
		return 1;
	if (info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		return failed("fi_mr_bind", fi_mr_bind(*mr, &ep->fid, 0)) || failed("fi_mr_enable", fi_mr_enable(*mr));
	return 0;
}

static int await_greeting(int index)
{
	static struct fid_mr *memory;
	long rc;

	if (!memory && open_registration(greetings, sizeof(greetings), connections, &memory))
		return 1;
	rc = fi_recv(connections, &greetings[index], sizeof(greetings[index]), fi_mr_desc(memory), FI_ADDR_UNSPEC,
		     &posted[index].context);
	return failed("fi_recv", rc);
}

static int init(log_function log)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .size = 12288 };
	struct fi_info *none = NULL;
	int i;

	(void) log;
	/* Memory of devices is asked for first; without it NCCL copies through the host. */
	if (fi_getinfo(fi_version(), NULL, NULL, 0, hints_with(FI_HMEM), &none) != -FI_ENODATA) {
		fprintf(stderr, "memory of devices is offered\n");
		return 1;
	}
	if (failed("fi_getinfo", fi_getinfo(FI_VERSION(1, 6), NULL, NULL, 0, hints_with(0), &info)) ||
	    failed("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL)) ||
	    failed("fi_domain", fi_domain(fabric, info, &domain, NULL)) ||
	    failed("fi_cq_open", fi_cq_open(domain, &queue, &cq, NULL)) || open_endpoint(&messages, &message_peers) ||
	    open_endpoint(&connections, &connection_peers))
		return 1;
	for (i = 0; i < GREETINGS; i++)
		if (await_greeting(i))
			return 1;
	return 0;
}

static int take_greeting(const struct greeting *greeting)
{
	struct listener *at;

	for (at = listeners; at; at = at->next) {
		if (at->number == greeting->listener && !at->has_arrived) {
			at->arrived = *greeting;
			at->has_arrived = 1;
			return 0;
		}
	}
	fprintf(stderr, "a greeting for a listener that is not there\n");
	return 1;
}

static int progress(void)
{
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry error = { 0 };
	long count, i, index;

	while ((count = fi_cq_read(cq, entries, 4)) != -FI_EAGAIN) {
		if (count == -FI_EAVAIL) {
			fi_cq_readerr(cq, &error, 0);
			return failed("a request", -error.err);
		}
		if (count < 0)
			return failed("fi_cq_read", count);
		for (i = 0; i < count; i++) {
			struct request *request = entries[i].op_context;

			if (request >= posted && request < posted + GREETINGS) {
				index = request - posted;
				if (entries[i].len != sizeof(struct greeting) || take_greeting(&greetings[index]) ||
				    await_greeting((int) index))
					return 1;
				continue;
			}
			if (entries[i].flags & FI_RECV)
				request->bytes = entries[i].len;
			request->done = 1;
		}
	}
	return 0;
}

static struct request *free_request(void)
{
	int i;

	for (i = 0; i < REQUESTS; i++) {
		if (!requests[i].used) {
			requests[i].used = 1;
			requests[i].done = 0;
			return &requests[i];
		}
	}
	return NULL;
}

static int devices(int *count)
{
	*count = 1;
	return 0;
}

static int get_properties(int device, struct net_properties *properties)
{
	(void) device;
	properties->name = info->domain_attr->name;
	properties->memory_kinds = HOST_MEMORY;
	return 0;
}

static int own_name(struct fid_ep *ep, unsigned char *name)
{
	size_t len = NAME_BYTES;

	memset(name, 0, NAME_BYTES);
	return failed("fi_getname", fi_getname(&ep->fid, name, &len));
}

static int insert(struct fid_av *av, const unsigned char *name, fi_addr_t *peer)
{
	if (fi_av_insert(av, name, 1, peer, 0, NULL) == 1)
		return 0;
	fprintf(stderr, "an address is not taken\n");
	return 1;
}

static struct listener *add_listener(void)
{
	struct listener *made = calloc(1, sizeof(*made));

	made->number = ++last_number;
	made->next = listeners;
	listeners = made;
	return made;
}

static void remove_listener(struct listener *gone)
{
	struct listener **at = &listeners;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	free(gone);
}

static int await_arrival(struct listener *listener)
{
	while (!listener->has_arrived)
		if (progress())
			return 1;
	return 0;
}

/* Sends a greeting, registered as everything is. */
static int greet(fi_addr_t peer, uint64_t listener, uint64_t answer, uint64_t tag)
{
	struct greeting greeting = { .listener = listener, .answer = answer, .tag = tag };
	struct request *request = free_request();
	struct fid_mr *memory;
	long rc;

	if (!request || own_name(messages, greeting.messages) || own_name(connections, greeting.connections) ||
	    open_registration(&greeting, sizeof(greeting), connections, &memory))
		return 1;
	while ((rc = fi_send(connections, &greeting, sizeof(greeting), fi_mr_desc(memory), peer, &request->context)) ==
	       -FI_EAGAIN)
		if (progress())
			return 1;
	if (failed("fi_send", rc))
		return 1;
	while (!request->done)
		if (progress())
			return 1;
	request->used = 0;
	return failed("fi_close", fi_close(&memory->fid));
}

static int listen_for(int device, void *to, void **listener)
{
	struct listener *made = add_listener();
	struct handle handle = { .listener = made->number };

	(void) device;
	*listener = made;
	if (own_name(connections, handle.name))
		return 1;
	memcpy(to, &handle, sizeof(handle));
	return 0;
}

static int connect_to(int device, void *from, void **sender)
{
	struct connection *made = calloc(1, sizeof(*made));
	struct listener *answer = add_listener();
	struct handle handle;
	fi_addr_t peer;

	(void) device;
	memcpy(&handle, from, sizeof(handle));
	if (insert(connection_peers, handle.name, &peer) || greet(peer, handle.listener, answer->number, 0) ||
	    await_arrival(answer) || insert(message_peers, answer->arrived.messages, &made->peer))
		return 1;
	made->tag = answer->arrived.tag;
	remove_listener(answer);
	*sender = made;
	return 0;
}

static int accept_from(void *from, void **receiver)
{
	struct connection *made = calloc(1, sizeof(*made));
	struct listener *listener = from;
	fi_addr_t peer;

	/* Receives are from anybody, so tags must differ over all senders. */
	made->tag = ++last_tag;
	if (await_arrival(listener) || insert(connection_peers, listener->arrived.connections, &peer) ||
	    greet(peer, listener->arrived.answer, 0, made->tag))
		return 1;
	listener->has_arrived = 0;
	*receiver = made;
	return 0;
}

static int register_memory(void *connection, void *data, size_t bytes, int kind, void **memory)
{
	(void) connection;
	return kind != HOST_MEMORY || open_registration(data, bytes, messages, (struct fid_mr **) memory);
}

static int register_file(void *connection, void *data, size_t bytes, int kind, uint64_t offset, int fd, void **memory)
{
	(void) connection, (void) data, (void) bytes, (void) kind, (void) offset, (void) fd, (void) memory;
	return 1;
}

static int deregister_memory(void *connection, void *memory)
{
	(void) connection;
	return failed("fi_close", fi_close(&((struct fid_mr *) memory)->fid));
}

static int begun(struct request *request, long rc, void **to)
{
	*to = rc ? NULL : request;
	if (!rc)
		return 0;
	request->used = 0;
	return rc == -FI_EAGAIN ? progress() : failed("a request", rc);
}

static int begin_send(void *sender, void *data, int bytes, int tag, void *memory, void **to)
{
	struct connection *connection = sender;
	struct request *request = free_request();

	(void) tag;
	*to = NULL;
	if (!request)
		return progress();
	request->bytes = bytes;
	return begun(request, fi_tsend(messages, data, bytes, fi_mr_desc(memory), connection->peer, connection->tag,
				       &request->context), to);
}

static int begin_receive(void *receiver, int count, void **data, int *bytes, int *tags, void **memories, void **to)
{
	struct connection *connection = receiver;
	struct request *request = free_request();

	(void) tags;
	*to = NULL;
	if (!request || count != 1)
		return progress();
	return begun(request, fi_trecv(messages, data[0], bytes[0], fi_mr_desc(memories[0]), FI_ADDR_UNSPEC, connection->tag, 0,
				       &request->context), to);
}

static int flush(void *receiver, int count, void **data, int *bytes, void **memories, void **request)
{
	(void) receiver, (void) count, (void) data, (void) bytes, (void) memories;
	*request = NULL;
	return 0;
}

static int test(void *what, int *done, int *bytes)
{
	struct request *request = what;

	*done = request->done;
	if (!request->done) {
		if (progress())
			return 1;
		*done = request->done;
	}
	if (*done) {
		if (bytes)
			*bytes = (int) request->bytes;
		request->used = 0;
	}
	return 0;
}

/* Endpoints outlive connections. */
static int close_connection(void *connection)
{
	free(connection);
	return 0;
}

static int close_listener(void *listener)
{
	remove_listener(listener);
	return 0;
}

struct net sendrecv = {
	"sendrecv in miniature", init, devices, get_properties, listen_for, connect_to, accept_from, register_memory,
	register_file, deregister_memory, begin_send, begin_receive, flush, test, close_connection, close_connection, close_listener,
};
