/* The interface between NCCL and a network plugin, version 6: what is called here of it. Zero is success. */
#ifndef NCCL_H
#define NCCL_H

#include <stddef.h>
#include <stdint.h>

enum { HANDLE_BYTES = 128, HOST_MEMORY = 1 };

typedef void (*log_function)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

struct net_properties {
	char *name;
	char *pci_path;
	uint64_t guid;
	int memory_kinds;
	/* Figures in which builds of plugins differ. */
	char others[240];
};

struct net {
	const char *name;
	int (*init)(log_function log);
	int (*devices)(int *count);
	int (*get_properties)(int device, struct net_properties *properties);
	int (*listen)(int device, void *handle, void **listener);
	/* Called again until there is a connection. */
	int (*connect)(int device, void *handle, void **sender);
	int (*accept)(void *listener, void **receiver);
	int (*register_memory)(void *connection, void *data, size_t bytes, int kind, void **memory);
	int (*register_file)(void *connection, void *data, size_t bytes, int kind, uint64_t offset, int fd, void **memory);
	int (*deregister_memory)(void *connection, void *memory);
	/* The request is NULL if it cannot be taken now. */
	int (*send)(void *sender, void *data, int bytes, int tag, void *memory, void **request);
	int (*receive)(void *receiver, int count, void **data, int *bytes, int *tags, void **memories, void **request);
	int (*flush)(void *receiver, int count, void **data, int *bytes, void **memories, void **request);
	int (*test)(void *request, int *done, int *bytes);
	int (*close_sender)(void *sender);
	int (*close_receiver)(void *receiver);
	int (*close_listener)(void *listener);
};

/* A plugin in miniature, which asks of libfabric what aws-ofi-nccl's protocol of sends and receives asks. */
extern struct net sendrecv;

#endif
