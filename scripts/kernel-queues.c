/* The first process of the virtual machine of scripts/kernel-queues: sends packets through the kernel's queues
 * and says when each was sent and when it came out.
 *
 * /workloads/NAME holds commands, one a line, then an empty line, then packets:
 *   nanoseconds source destination port protocol tos size acknowledgement
 * The IP identification of a packet is its number. Said of each workload, in hexadecimal, times in
 * nanoseconds since it began:
 *   S number time           it was sent
 *   R number time tos       it came out
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 60000

static uint64_t sent[MOST];

/* Says it at the machine's debug port, which costs next to nothing; a serial line costs more than all else. */
static ssize_t say(void *cookie, const char *text, size_t length)
{
	size_t left = length;

	(void)cookie;
	asm volatile("rep outsb" : "+S"(text), "+c"(left) : "d"(0xe9) : "memory");
	return length;
}

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static void run(const char *line)
{
	if (system(line))
		printf("failed: %s\n", line);
}

/* Runs it and says what it prints. */
static void show(const char *line)
{
	FILE *output = popen(line, "r");
	char text[512];

	while (output && fgets(text, sizeof(text), output))
		fputs(text, stdout);
	if (!output || pclose(output))
		printf("failed: %s\n", line);
}

static void load(void)
{
	FILE *list = fopen("/modules/list", "r");
	char name[128], path[160];

	while (list && fscanf(list, "%127s", name) == 1) {
		snprintf(path, sizeof(path), "/modules/%s", name);
		int file = open(path, O_RDONLY);

		if (syscall(SYS_finit_module, file, "", 0))
			printf("failed: module %s: %s\n", name, strerror(errno));
		close(file);
	}
}

static int port(const char *device, int protocol)
{
	int size = 64 << 20, on = 1;
	int socket_ = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol),
				       .sll_ifindex = if_nametoindex(device) };

	if (bind(socket_, (void *)&address, sizeof(address)))
		printf("failed: bind\n");
	setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	setsockopt(socket_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	return socket_;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/* An Ethernet frame of `size` bytes, which is what an IP header and a UDP or TCP header need at least. */
static void build(uint8_t *frame, unsigned number, unsigned source, unsigned destination, unsigned port_,
		  unsigned protocol, unsigned tos, unsigned size, unsigned acknowledgement)
{
	uint8_t *ip = frame + 14, *upper = ip + 20;
	uint32_t sum = 0;

	memset(frame, 0, size);
	memset(frame, 0xff, 6);
	memcpy(frame + 6, "\2\0\0\0\0\1\10\0", 8);
	ip[0] = 0x45;
	ip[1] = tos;
	put16(ip + 2, size - 14);
	put16(ip + 4, number);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = protocol;
	memcpy(ip + 12, (uint8_t[]){ 10, 0, source, 1, 10, 1, destination, 1 }, 8);
	for (int word = 0; word < 10; word++)
		sum += ip[2 * word] << 8 | ip[2 * word + 1];
	put16(ip + 10, folded(sum));
	put16(upper, 1000 + port_);
	put16(upper + 2, 443);
	if (protocol == 17) {
		put16(upper + 4, size - 34);
		return;
	}
	put16(upper + 8, acknowledgement >> 16);
	put16(upper + 10, acknowledgement);
	upper[12] = 5 << 4;
	upper[13] = 0x10;
	put16(upper + 14, 1000);
}

static void receive(int in, uint64_t begin)
{
	uint8_t frame[2048], control[256];

	for (;;) {
		struct iovec part = { frame, sizeof(frame) };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
					  .msg_controllen = sizeof(control) };
		ssize_t length = recvmsg(in, &message, MSG_DONTWAIT);
		struct timespec at = { 0 };

		if (length < 0)
			return;
		if (length < 34 || memcmp(frame + 6, "\2\0\0\0\0\1", 6))
			continue;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_type == SCM_TIMESTAMPNS)
				memcpy(&at, CMSG_DATA(c), sizeof(at));
		printf("R %x %llx %x\n", frame[18] << 8 | frame[19],
		       at.tv_sec * 1000000000ull + at.tv_nsec - (unsigned long long)begin, frame[15]);
	}
}

static void work(const char *name)
{
	char path[512], line[512];
	uint8_t frame[2048];
	unsigned number = 0;
	int out, in;

	snprintf(path, sizeof(path), "/workloads/%s", name);
	FILE *file = fopen(path, "r");

	printf("workload %s\n", name);
	run("ip link add q0 type veth peer name q1");
	run("ip link set q0 up");
	run("ip link set q1 up");
	while (fgets(line, sizeof(line), file) && line[0] != '\n')
		run(line);
	out = port("q0", 0);
	in = port("q1", ETH_P_ALL);
	uint64_t begin = now() + 10000000;
	unsigned long long at;
	unsigned source, destination, port_, protocol, tos, size, acknowledgement;

	while (fscanf(file, "%llu %u %u %u %u %u %u %u", &at, &source, &destination, &port_, &protocol, &tos,
		      &size, &acknowledgement) == 8 && number < MOST) {
		struct timespec due = { (begin + at) / 1000000000, (begin + at) % 1000000000 };

		build(frame, number, source, destination, port_, protocol, tos, size, acknowledgement);
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &due, NULL);
		sent[number++] = now() - begin;
		/* A frame that the queue dropped is ENOBUFS here. */
		send(out, frame, size, 0);
	}
	fclose(file);
	sleep(4);
	for (unsigned each = 0; each < number; each++)
		printf("S %x %llx\n", each, (unsigned long long)sent[each]);
	receive(in, begin);
	fflush(stdout);
	show("tc -s qdisc show dev q0");
	close(out);
	close(in);
	run("ip link del q0");
	printf("end %s\n", name);
	fflush(stdout);
}

int main(void)
{
	struct dirent **names;

	if (ioperm(0xe9, 1, 1) == 0)
		stdout = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = say });
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	setenv("PATH", "/bin", 1);
	prctl(PR_SET_TIMERSLACK, 1);
	load();
	run("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6");
	run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
	run("ip link set lo up");
	int count = scandir("/workloads", &names, NULL, alphasort);

	for (int each = 0; each < count; each++)
		if (names[each]->d_name[0] != '.')
			work(names[each]->d_name);
	printf("all done\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
}
