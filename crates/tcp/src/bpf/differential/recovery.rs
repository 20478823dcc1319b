//! Proportional rate reduction in `bpf/prr.h`: RFC 9937's aims, and what its bounds come to.

/// `struct prr` of `bpf/prr.h`.
#[repr(C)]
#[derive(Default)]
struct Prr {
    prior: u32,
    delivered: u32,
}

unsafe extern "C" {
    fn bl_prr_begin(prr: *mut Prr, prior: u32);
    fn bl_prr_window(prr: *mut Prr, newly: u32, out: u32, pipe: u32, target: u32, safe: u32) -> u32;
}

fn begin(prior: u32) -> Prr {
    let mut prr = Prr::default();
    // SAFETY: the structure is the C code's and lives through the call.
    unsafe { bl_prr_begin(&raw mut prr, prior) };
    prr
}

fn window(prr: &mut Prr, newly: u32, out: u32, pipe: u32, target: u32, safe: bool) -> u32 {
    // SAFETY: as above.
    unsafe { bl_prr_window(&raw mut *prr, newly, out, pipe, target, u32::from(safe)) }
}

#[test]
fn sends_seven_packets_for_ten_delivered_when_seven_tenths_are_to_be_left() {
    let (mut prr, mut pipe, mut out) = (begin(100), 99, 0);
    for _ in 0..60 {
        pipe -= 1;
        let allowed = window(&mut prr, 1, out, pipe, 70, false);
        out += allowed - pipe;
        pipe = allowed;
    }
    // 60 * 70 / 100
    assert_eq!((out, pipe), (42, 99 - 60 + 42));
}

#[test]
fn grows_back_to_the_target_by_at_most_one_extra_packet_per_safe_ack() {
    let mut prr = begin(100);
    assert_eq!(window(&mut prr, 1, 1, 10, 50, true), 12);
    assert_eq!(window(&mut prr, 1, 1, 10, 50, false), 11);
    assert_eq!(window(&mut prr, 5, 1, 49, 50, true), 50);
}

#[test]
fn always_lets_the_first_retransmission_out_and_no_more_than_the_proportion_after_it() {
    let mut prr = begin(100);
    assert_eq!(window(&mut prr, 0, 0, 90, 50, false), 91);
    assert_eq!(window(&mut prr, 1, 1, 90, 50, false), 90);
}
