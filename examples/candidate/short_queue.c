/* A candidate for the arena in C: a window that keeps the queue short. short_queue.rs has the same rule.
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o short_queue.wasm examples/candidate/short_queue.c
 *     brakelight arena short_queue.wasm
 *
 * clang links by wasm-ld, which Debian has in the package lld. */

#define EXPORT(name) __attribute__((export_name(name)))

/* The buffer, field by field as in docs/arena.md. What is not read here has no name. */
static struct {
    double mss, connection[3];
    double cwnd, decision[4];
    double inflight, srtt, min_rtt, rtt, variation, newly_acked, ack[7];
    double round_start, cwnd_limited, recovery, packet[8], kind, rest[8];
} b;

/* Whether the queue has been long once. */
static int was_long;

EXPORT("brakelight_abi") int brakelight_abi(void) { return 1; }

EXPORT("brakelight_buffer") double *brakelight_buffer(void) { return &b.mss; }

EXPORT("init") void init(void) {}

EXPORT("on_ack") void on_ack(void) {
    double queued = b.rtt - b.min_rtt;
    double target = 0.25 * b.min_rtt > 0.01 ? 0.25 * b.min_rtt : 0.01;
    if (queued > target) {
        was_long = 1;
        /* Once a round trip: the further above the target, the more, and half at most. */
        if (b.round_start == 1.0 && b.recovery == 0.0) {
            double share = 0.8 * (queued - target) / queued;
            b.cwnd *= 1.0 - (share < 0.5 ? share : 0.5);
        }
    } else if (b.cwnd_limited == 1.0 && b.recovery != 1.0) {
        /* Doubles each round trip until the queue has been long once, and then adds two packets. */
        b.cwnd += was_long ? 2.0 * b.mss * b.newly_acked / b.cwnd : b.newly_acked;
    }
    b.cwnd = b.cwnd > 2.0 * b.mss ? b.cwnd : 2.0 * b.mss;
}

EXPORT("on_loss") void on_loss(void) {
    was_long = 1;
    b.cwnd *= 0.7;
}

EXPORT("on_timeout") void on_timeout(void) {
    if (b.kind == 1.0) b.cwnd = b.mss;
}
