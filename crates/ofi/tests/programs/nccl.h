/* The interface between NCCL and a network plugin, version 4: what is called here of it. Zero is success. */
#ifndef NCCL_H
#define NCCL_H

#include <stddef.h>
#include <stdint.h>

enum { HANDLE_BYTES = 64, HOST_MEMORY = 1 };

typedef void (*log_function)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

struct net_properties {
	char *name;
	char *pci_path;
	uint64_t guid;
	int memory_kinds;
	int mbps;
	int port;
	int most_connections;
};

struct net {
	const char *name;
	int (*init)(log_function log);
	int (*devices)(int *count);
	int (*get_properties)(int device, struct net_properties *properties);
	int (*listen)(int device, void *handle, void **listener);
	int (*connect)(int device, void *handle, void **sender);
	int (*accept)(void *listener, void **receiver);
	int (*register_memory)(void *connection, void *data, size_t bytes, int kind, void **memory);
	int (*deregister_memory)(void *connection, void *memory);
	/* The request is NULL if it cannot be taken now. */
	int (*send)(void *sender, void *data, int bytes, void *memory, void **request);
	int (*receive)(void *receiver, void *data, int bytes, void *memory, void **request);
	int (*flush)(void *receiver, void *data, int bytes, void *memory, void **request);
	int (*test)(void *request, int *done, int *bytes);
	int (*close_sender)(void *sender);
	int (*close_receiver)(void *receiver);
	int (*close_listener)(void *listener);
};

/* A plugin in miniature, which asks of libfabric what aws-ofi-nccl's protocol of sends and receives asks. */
extern struct net sendrecv;

#endif
