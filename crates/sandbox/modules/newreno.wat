;; NewReno as a module: decision by decision what `crates/senders/src/controller/newreno.rs` decides. A test
;; holds newreno.wasm to this text. The buffer begins at address 0; `docs/arena.md` has its fields.
(module
  (memory (export "memory") 1)
  (func (export "brakelight_abi") (result i32) (i32.const 1))
  (func (export "brakelight_buffer") (result i32) (i32.const 0))

  ;; Acknowledged bytes not yet turned into growth.
  (global $credit (mut f64) (f64.const 0))
  ;; Whether the current slow start follows a timeout.
  (global $after_timeout (mut i32) (i32.const 0))
  ;; Window and threshold before the last episode; a window of 0 for none.
  (global $before_cwnd (mut f64) (f64.const 0))
  (global $before_ssthresh (mut f64) (f64.const 0))

  (func $mss (result f64) (f64.load (i32.const 0)))
  (func $cwnd (result f64) (f64.load (i32.const 32)))
  (func $set_cwnd (param f64) (f64.store (i32.const 32) (local.get 0)))
  (func $ssthresh (result f64) (f64.load (i32.const 56)))
  (func $set_ssthresh (param f64) (f64.store (i32.const 56) (local.get 0)))
  (func $two_packets (result f64) (f64.mul (f64.const 2) (call $mss)))

  (func (export "init")
    ;; 2^64: no threshold yet.
    (call $set_ssthresh (f64.const 18446744073709551616)))

  (func (export "on_ack")
    (local $acked f64) (local $growth f64)
    ;; In fast recovery, or a window that was not the limit: no growth.
    (if (f64.eq (f64.load (i32.const 192)) (f64.const 1)) (then (return)))
    (if (f64.eq (f64.load (i32.const 184)) (f64.const 0)) (then (return)))
    (local.set $acked (f64.load (i32.const 120)))
    (if (f64.lt (call $cwnd) (call $ssthresh))
      (then
        ;; rfc3465 2.2, 2.3
        (local.set $acked
          (f64.min (local.get $acked)
            (select (call $mss) (call $two_packets) (global.get $after_timeout))))
        (local.set $growth (f64.min (local.get $acked) (f64.sub (call $ssthresh) (call $cwnd))))
        (call $set_cwnd (f64.add (call $cwnd) (local.get $growth)))
        (local.set $acked (f64.sub (local.get $acked) (local.get $growth)))
        (if (f64.lt (call $cwnd) (call $ssthresh)) (then (return)))
        (global.set $after_timeout (i32.const 0))))
    ;; rfc3465 2.1
    (global.set $credit (f64.add (global.get $credit) (local.get $acked)))
    (block $done
      (loop $earned
        (br_if $done (f64.lt (global.get $credit) (call $cwnd)))
        (global.set $credit (f64.sub (global.get $credit) (call $cwnd)))
        (call $set_cwnd (f64.add (call $cwnd) (call $mss)))
        (br $earned))))

  ;; Keeps what was, and lowers the threshold to half the window: rfc5681 eq.4.
  (func $reduce
    (global.set $before_cwnd (call $cwnd))
    (global.set $before_ssthresh (call $ssthresh))
    (call $set_ssthresh
      (f64.max (f64.floor (f64.mul (call $cwnd) (f64.const 0.5))) (call $two_packets))))

  (func (export "on_loss")
    (call $reduce)
    (call $set_cwnd (call $ssthresh))
    (global.set $credit (f64.const 0)))

  (func (export "on_timeout")
    (local $kind f64)
    (local.set $kind (f64.load (i32.const 264)))
    (if (f64.eq (local.get $kind) (f64.const 2)) (then (return)))
    (if (f64.eq (local.get $kind) (f64.const 1))
      (then
        (if (f64.eq (f64.load (i32.const 272)) (f64.const 0)) (then (call $reduce)))
        (call $set_cwnd (call $mss))
        (global.set $after_timeout (i32.const 1)))
      ;; rfc9002 7.6.2
      (else (call $set_cwnd (f64.min (call $cwnd) (call $two_packets)))))
    (global.set $credit (f64.const 0)))

  (func (export "on_spurious_loss")
    (if (f64.gt (global.get $before_cwnd) (f64.const 0))
      (then
        (call $set_cwnd (f64.max (call $cwnd) (global.get $before_cwnd)))
        (call $set_ssthresh (global.get $before_ssthresh))
        (global.set $after_timeout (i32.const 0))
        (global.set $before_cwnd (f64.const 0)))))

  (func (export "on_recovery_exit")
    (global.set $before_cwnd (f64.const 0)))

  ;; Halves the window once for every timeout that passed, down to the first window: rfc2861 3. Times are in
  ;; whole nanoseconds, which subtract without a rest.
  (func (export "on_idle_restart")
    (local $restart f64) (local $left f64) (local $idle f64) (local $rto f64)
    (local.set $restart (f64.min (f64.load (i32.const 16)) (call $cwnd)))
    (local.set $left (call $cwnd))
    (local.set $rto (f64.nearest (f64.mul (f64.load (i32.const 296)) (f64.const 1e9))))
    (local.set $idle
      (f64.sub (f64.nearest (f64.mul (f64.load (i32.const 288)) (f64.const 1e9))) (local.get $rto)))
    (call $set_ssthresh
      (f64.max (call $ssthresh)
        (f64.mul (f64.const 3) (f64.floor (f64.mul (call $cwnd) (f64.const 0.25))))))
    (block $done
      (loop $halve
        (br_if $done (f64.le (local.get $idle) (f64.const 0)))
        (br_if $done (f64.le (local.get $left) (local.get $restart)))
        (br_if $done (f64.le (local.get $rto) (f64.const 0)))
        (local.set $left (f64.floor (f64.mul (local.get $left) (f64.const 0.5))))
        (local.set $idle (f64.sub (local.get $idle) (local.get $rto)))
        (br $halve)))
    (call $set_cwnd
      (f64.max (f64.max (local.get $left) (local.get $restart)) (call $mss)))
    (global.set $credit (f64.const 0)))

  (func (export "on_mtu_change")
    (call $set_cwnd (f64.max (call $cwnd) (call $mss)))
    (call $set_ssthresh (f64.max (call $ssthresh) (call $two_packets)))))
