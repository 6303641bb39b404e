/* What of DPDK cannot be called from elsewhere than C, most of all its inline functions. Everything else is Rust. */

#define _GNU_SOURCE
/* DPDK 22.11 counts handles of interrupts among what may still change. */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>

/* The last of what DPDK has said; there is no other way to learn why it refuses. */
static char said[512];
static size_t said_bytes;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t keep(void *cookie, const char *text, size_t bytes)
{
	size_t all = bytes;

	(void)cookie;
	pthread_mutex_lock(&said_lock);
	if (bytes > sizeof(said)) {
		text += bytes - sizeof(said);
		bytes = sizeof(said);
	}
	if (said_bytes + bytes > sizeof(said)) {
		size_t excess = said_bytes + bytes - sizeof(said);

		memmove(said, said + excess, said_bytes - excess);
		said_bytes -= excess;
	}
	memcpy(said + said_bytes, text, bytes);
	said_bytes += bytes;
	pthread_mutex_unlock(&said_lock);
	return (ssize_t)all;
}

/* Takes what DPDK has said since the last call; returns its length. */
size_t pathweave_dpdk_said(char *text, size_t most)
{
	size_t bytes;

	pthread_mutex_lock(&said_lock);
	bytes = said_bytes < most ? said_bytes : most;
	memcpy(text, said + said_bytes - bytes, bytes);
	said_bytes = 0;
	pthread_mutex_unlock(&said_lock);
	return bytes;
}

/* Starts DPDK, once a process. 0, or a negative error number. */
int pathweave_dpdk_start(int argc, char **argv)
{
	cookie_io_functions_t functions = { .write = keep };
	FILE *log = fopencookie(NULL, "w", functions);

	if (log == NULL)
		return -errno;
	setvbuf(log, NULL, _IONBF, 0);
	rte_openlog_stream(log);
	if (rte_eal_init(argc, argv) < 0)
		return rte_errno > 0 ? -rte_errno : -EINVAL;
	return 0;
}

/* Has the thread that serves DPDK's control connections call `rests` again and again between what else it does. */
int pathweave_dpdk_pace(void (*rests)(void *))
{
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	/* Never read, so always readable. */
	int always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	if (handle == NULL || always < 0 || rte_intr_fd_set(handle, always) != 0 ||
	    rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0)
		return -ENOMEM;
	return rte_intr_callback_register(handle, rests, NULL);
}

/* Gives the calling thread a number of its own, which makes its use of pools cheap. */
int pathweave_dpdk_join(void)
{
	return rte_lcore_id() == LCORE_ID_ANY ? rte_thread_register() : 1;
}

void pathweave_dpdk_leave(void)
{
	rte_thread_unregister();
}

/* Makes a device and finds its port. */
int pathweave_dpdk_attach(const char *bus, const char *name, const char *arguments, uint16_t *port)
{
	int result = rte_eal_hotplug_add(bus, name, arguments);

	if (result != 0 && result != -EEXIST)
		return result;
	return rte_eth_dev_get_port_by_name(name, port);
}

struct pathweave_dpdk_wish {
	/* Bytes of the longest frame. */
	uint32_t frame_bytes;
	/* Bytes of the longest IP packet as the device is told; 0: it is not told. */
	uint32_t mtu_bytes;
	uint32_t pool_frames;
	uint16_t receive_frames;
	uint16_t send_frames;
};

struct pathweave_dpdk_facts {
	struct rte_mempool *pool;
	uint32_t max_mtu_bytes;
	uint16_t receive_frames;
	uint16_t send_frames;
	uint8_t mac[6];
	char driver[32];
};

/* What is known of a port before it is configured. */
int pathweave_dpdk_look(uint16_t port, struct pathweave_dpdk_facts *facts)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return result;
	result = rte_eth_macaddr_get(port, &mac);
	if (result != 0)
		return result;
	memcpy(facts->mac, mac.addr_bytes, sizeof(facts->mac));
	facts->max_mtu_bytes = info.max_mtu;
	if (info.max_rx_pktlen > 0 && info.max_mtu == UINT16_MAX)
		facts->max_mtu_bytes = info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
	snprintf(facts->driver, sizeof(facts->driver), "%s", info.driver_name ? info.driver_name : "");
	return 0;
}

/* Configures one queue in each direction, with a pool of frames. */
int pathweave_dpdk_configure(uint16_t port, const struct pathweave_dpdk_wish *wish, struct pathweave_dpdk_facts *facts)
{
	struct rte_eth_conf conf;
	char name[RTE_MEMPOOL_NAMESIZE];
	static unsigned int pools;
	int socket = rte_eth_dev_socket_id(port);
	int result;

	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = wish->mtu_bytes;
	facts->receive_frames = wish->receive_frames;
	facts->send_frames = wish->send_frames;
	result = rte_eth_dev_configure(port, 1, 1, &conf);
	if (result == 0)
		result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &facts->receive_frames, &facts->send_frames);
	if (result != 0)
		return result;
	snprintf(name, sizeof(name), "pathweave_%u", __atomic_fetch_add(&pools, 1, __ATOMIC_RELAXED));
	facts->pool = rte_pktmbuf_pool_create(name, wish->pool_frames, 64, 0,
					      (uint16_t)(wish->frame_bytes + RTE_PKTMBUF_HEADROOM), socket);
	if (facts->pool == NULL)
		return -rte_errno;
	result = rte_eth_rx_queue_setup(port, 0, facts->receive_frames, (unsigned int)socket, NULL, facts->pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, facts->send_frames, (unsigned int)socket, NULL);
	return result;
}

int pathweave_dpdk_run(uint16_t port)
{
	int result = rte_eth_dev_start(port);

	/* IPv6 looks for hosts by groups. Links that know no groups have nothing to set. */
	if (result == 0)
		(void)rte_eth_allmulticast_enable(port);
	return result;
}

int pathweave_dpdk_halt(uint16_t port)
{
	return rte_eth_dev_stop(port);
}

/* Ends a port and the device behind it. */
void pathweave_dpdk_detach(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port, &info);

	(void)rte_eth_dev_stop(port);
	(void)rte_eth_dev_close(port);
	if (known == 0 && info.device != NULL)
		(void)rte_dev_remove(info.device);
	rte_mempool_free(pool);
}

int pathweave_dpdk_is_up(uint16_t port)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* Frames that could not be received for want of room. */
uint64_t pathweave_dpdk_missed(uint16_t port)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(port, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

/* Takes frames that have arrived. One in several pieces is joined, or, if that cannot be, has no bytes. */
uint16_t pathweave_dpdk_receive(uint16_t port, struct rte_mbuf **frames, uint8_t **bytes, uint32_t *lengths, uint16_t most)
{
	uint16_t count = rte_eth_rx_burst(port, 0, frames, most);

	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *frame = frames[i];
		int whole = frame->nb_segs == 1 || rte_pktmbuf_linearize(frame) == 0;

		bytes[i] = rte_pktmbuf_mtod(frame, uint8_t *);
		lengths[i] = whole ? rte_pktmbuf_data_len(frame) : 0;
		rte_prefetch0(bytes[i]);
	}
	return count;
}

void pathweave_dpdk_free(struct rte_mbuf **frames, uint32_t count)
{
	rte_pktmbuf_free_bulk(frames, count);
}

/* So many empty frames, or none and an error. */
int pathweave_dpdk_allocate(struct rte_mempool *pool, struct rte_mbuf **frames, uint8_t **bytes, uint32_t count)
{
	int result = rte_pktmbuf_alloc_bulk(pool, frames, count);

	if (result != 0)
		return result;
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = rte_pktmbuf_mtod(frames[i], uint8_t *);
	return 0;
}

/* Sends frames; returns how many, from the first on, the port has taken. The others remain the caller's.
 *
 * The driver of packet sockets copies frames and frees them, and may still say that it has taken none, after the interface has
 * gone down. Of its frames one reference more is held, which tells those that it has freed. */
uint16_t pathweave_dpdk_send(uint16_t port, struct rte_mbuf **frames, const uint16_t *lengths, uint16_t count, int frees_quietly)
{
	uint16_t taken;

	for (uint16_t i = 0; i < count; i++) {
		rte_pktmbuf_data_len(frames[i]) = lengths[i];
		rte_pktmbuf_pkt_len(frames[i]) = lengths[i];
		if (frees_quietly)
			rte_mbuf_refcnt_update(frames[i], 1);
	}
	taken = rte_eth_tx_burst(port, 0, frames, count);
	if (!frees_quietly)
		return taken;
	for (taken = 0; taken < count && rte_mbuf_refcnt_read(frames[taken]) == 1; taken++)
		;
	rte_pktmbuf_free_bulk(frames, taken);
	for (uint16_t i = taken; i < count; i++)
		rte_mbuf_refcnt_update(frames[i], -1);
	return taken;
}
