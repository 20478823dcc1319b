# The paths of the BMCC paper's figures in ns-2: one bottleneck with data both ways, ten bottlenecks in line, and
# short flows. Every setting is `name=value` on the command line; `scripts/ns2` gives them, and reads what is
# printed on standard error: lines `run NAME VALUE`, `link NAME KEY VALUE`, `flow NAME KEY VALUE`. Needs ns-2.35.
#
# What is not set here has ns-2's own default (tcl/lib/ns-default.tcl): tcpTick_ 0.01 s, minrto_ 0.2 s, first window
# of two packets, no pause between packets (overhead_ 0), an ACK for every packet.

array set p {
    topology dumbbell  scheme sack  queue droptail  rate 155  rtt 80  rtt_step 0  buffer 1550
    forward 5  backward 5  backward_rtt 0  duration 100  from 5  start_within 2  seed 1  every 0
    size 0  load 0  shape 1.4
    unit packets  overhead 0  tick 0.01  minrto 0.2  maxburst 0  window 100000  agent ""  access 0
    first 2  partial false  mean_packet 1000  red_bytes true  use_mark_p true  ssthresh 0  frto false
}
foreach argument $argv {
    if {![regexp {^([a-z_]+)=(.*)$} $argument -> name value] || ![info exists p($name)]} {
        puts stderr "no setting `$argument`; there are: [lsort [array names p]]"
        exit 2
    }
    set p($name) $value
}
array set valid {
    topology {dumbbell line}  scheme {sack newreno vegas cubic ctcp xcp}  queue {droptail red xcp}  unit {packets bytes}
    partial {true false}  red_bytes {true false}  use_mark_p {true false}  frto {true false}
}
foreach name [lsort [array names p]] {
    if {[info exists valid($name)]} {
        set good [expr {$p($name) in $valid($name)}]
        set wanted "one of $valid($name)"
    } else {
        set good [expr {$name eq "agent" || [string is double -strict $p($name)] && $p($name) >= 0}]
        set wanted "a number of at least 0"
    }
    if {!$good} {
        puts stderr "$name=$p($name): it must be $wanted"
        exit 2
    }
}

set ns [new Simulator]
ns-random $p(seed)
set draw [new RNG]
$draw seed [expr {$p(seed) * 7919 + 17}]

Agent/TCP set window_ $p(window)
Agent/TCP set packetSize_ 960
Agent/TCP set overhead_ $p(overhead)
Agent/TCP set tcpTick_ $p(tick)
Agent/TCP set minrto_ $p(minrto)
Agent/TCP/Linux set minrto_ $p(minrto)
Agent/TCP set maxburst_ $p(maxburst)
Agent/TCP set windowInit_ $p(first)
Agent/TCP/Sack1 set partial_ack_ $p(partial)
Agent/TCP set sfrto_enabled_ $p(frto)
Queue/DropTail set queue_in_bytes_ [expr {$p(unit) eq "bytes"}]
Queue/DropTail set mean_pktsize_ 1000
# ns-2's RED counts bytes, so that its limit in packets is one of so many packets of mean_pktsize_.
Queue/RED set mean_pktsize_ $p(mean_packet)
Queue/RED set bytes_ $p(red_bytes)
Queue/RED set queue_in_bytes_ $p(red_bytes)
Queue/RED set use_mark_p_ $p(use_mark_p)
if {$p(queue) eq "red"} {
    Queue/RED set setbit_ true
    Agent/TCP set ecn_ 1
}
set kind(droptail) DropTail
set kind(red) RED
set kind(xcp) XCP

# A sender and a receiver of the scheme. `way` is the flow id of the data; a sink sends its ACKs under the flow id of
# what it acknowledges (tcp-sink.cc), so that a link's monitor tells data from ACKs by the direction of the flow.
proc pair {way} {
    global ns p
    set agent $p(agent)
    if {$agent eq ""} {
        array set agents {sack TCP/Sack1 newreno TCP/Newreno vegas TCP/Vegas cubic TCP/Linux ctcp TCP/Linux xcp TCP/Reno/XCP}
        set agent $agents($p(scheme))
    }
    if {[string match TCP/FullTcp* $agent]} {
        set sender [new Agent/$agent]
        set sink [new Agent/$agent]
        foreach one [list $sender $sink] { $one set segsize_ 960; $one set segsperack_ 1 }
        $sink listen
    } else {
        set sender [new Agent/$agent]
        set sink [new Agent/[expr {$p(scheme) eq "xcp" ? "TCPSink/XCPSink" : $p(scheme) in "newreno vegas" ? "TCPSink" : "TCPSink/Sack1"}]]
    }
    $sender set fid_ $way
    $sink set fid_ $way
    if {$agent eq "TCP/Linux"} {
        array set modules {sack reno newreno reno vegas vegas cubic cubic ctcp compound}
        $ns at [$ns now] "$sender select_ca $modules($p(scheme))"
    }
    return [list $sender $sink]
}

# One direction of a link, and what counts its packets.
# `way` is the flow id of the data that it carries.
proc watch {name from to way} {
    global ns watched
    set monitor [$ns makeflowmon Fid]
    $ns attach-fmon [$ns link $from $to] $monitor 0
    set bytes [new Integrator]
    $monitor set-bytes-integrator $bytes
    set watched($name) [list $monitor $bytes $way]
}

proc link_between {from to mbps ms queue buffer} {
    global ns
    $ns simplex-link $from $to [expr {$mbps * 1e6}] [expr {$ms / 1000.0}] $queue
    if {$queue eq "XCP"} {
        # Without the capacity an XCP queue gives no feedback at all.
        set one [[$ns link $from $to] queue]
        $one queue-limit $buffer
        $one set-link-capacity [expr {$mbps * 1e6}]
    }
    $ns queue-limit $from $to $buffer
}

# A long flow from `from` to `to`, which starts at a random time.
proc long {name from to {way 1}} {
    global ns p draw senders
    lassign [pair $way] sender sink
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    set application [new Application/FTP]
    $application attach-agent $sender
    set start [$draw uniform 0 $p(start_within)]
    $ns at $start "$application start"
    # A connection begins with the largest window as ssthresh_ (tcp.cc, reset).
    if {$p(ssthresh) > 0} { $ns at [expr {$start + 1e-3}] "$sender set ssthresh_ $p(ssthresh)" }
    lappend senders $name $sender
}

# Nodes beside `left` and `right` that add `ms` to each way, where there are any to add; the ends of a flow.
proc ends {left right ms} {
    global ns p
    if {$ms <= 0 && $p(access) == 0} { return [list $left $right] }
    set nodes {}
    foreach router [list $left $right] {
        set node [$ns node]
        set mbps [expr {$p(access) > 0 ? $p(access) * $p(rate) : 100000}]
        link_between $node $router $mbps [expr {$ms / 2.0}] DropTail 1000000
        link_between $router $node $mbps [expr {$ms / 2.0}] DropTail 1000000
        lappend nodes $node
    }
    return $nodes
}

# Poisson arrivals of flows whose sizes have a Pareto distribution: the mean size in kB, the load in Mbit/s of data.
proc arrivals {from to} {
    global ns p draw
    set mean [expr {$p(size) * 1000.0}]
    set least [expr {$mean * ($p(shape) - 1) / $p(shape)}]
    set gap [expr {$mean * 8 / ($p(load) * 1e6)}]
    arrive $from $to $least $gap
}

proc arrive {from to least gap} {
    global ns p draw begun
    set now [$ns now]
    set bytes [expr {$least / pow([$draw uniform 0 1], 1.0 / $p(shape))}]
    lassign [pair 1] sender sink
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    set begun($sender) $now
    $sender proc done {} "finished $sender"
    # The module of TCP-Linux is chosen by an event, so the data comes with a later one.
    $ns at [expr {$now + 1e-6}] "$sender advance [expr {int(ceil($bytes / 960))}]"
    $ns at [expr {$now + [$draw exponential $gap]}] [list arrive $from $to $least $gap]
}

proc finished {sender} {
    global ns p begun times
    if {![info exists begun($sender)]} return
    set now [$ns now]
    if {$now >= $p(from)} { lappend times [expr {($now - $begun($sender)) * 1000}] }
    unset begun($sender)
}

set senders {}
set times {}
switch $p(topology) {
    dumbbell {
        set a [$ns node]
        set b [$ns node]
        set one_way [expr {$p(rtt) / 2.0 - ($p(access) > 0 ? $p(rtt) / 8.0 : 0)}]
        link_between $a $b $p(rate) $one_way $kind($p(queue)) $p(buffer)
        link_between $b $a $p(rate) $one_way $kind($p(queue)) $p(buffer)
        watch forth $a $b 1
        watch back $b $a 2
        set least [expr {2 * $one_way}]
        if {$p(size) > 0} {
            $ns at 0.0 [list arrivals $a $b]
        }
        for {set i 0} {$i < $p(forward)} {incr i} {
            lassign [ends $a $b [expr {($p(rtt) + $i * $p(rtt_step) - $least) / 2.0}]] from to
            long forward-[expr {$i + 1}] $from $to
        }
        set rtt [expr {$p(backward_rtt) > 0 ? $p(backward_rtt) : $p(rtt)}]
        for {set i 0} {$i < $p(backward)} {incr i} {
            lassign [ends $b $a [expr {($rtt - $least) / 2.0}]] from to
            long backward-[expr {$i + 1}] $from $to 2
        }
    }
    line {
        # Link i carries 155 - 10 i Mbit/s. ACKs go back over links that are never full. All round trips are equal:
        # what a cross flow's path lacks is in the links to its ends.
        set hop [expr {$p(rtt) / 20.0}]
        for {set i 0} {$i <= 10} {incr i} { set r($i) [$ns node] }
        for {set i 0} {$i < 10} {incr i} {
            set mbps [expr {155 - 10 * $i}]
            set j [expr {$i + 1}]
            link_between $r($i) $r($j) $mbps $hop $kind($p(queue)) [expr {round($mbps * $p(rtt) / 8)}]
            link_between $r($j) $r($i) 100000 $hop DropTail 1000000
            watch link$i $r($i) $r($j) 1
        }
        for {set i 0} {$i < $p(forward)} {incr i} { long through-[expr {$i + 1}] $r(0) $r(10) }
        for {set i 0} {$i < 10} {incr i} {
            lassign [ends $r($i) $r([expr {$i + 1}]) [expr {$p(rtt) / 2.0 - $hop}]] from to
            for {set k 1} {$k <= $p(backward)} {incr k} { long cross$i-$k $from $to }
        }
    }
}

# What a link's monitor has counted so far: bytes out, data packets out and dropped, ACKs out and dropped, and the
# integral of the bytes that wait.
proc counts {name} {
    global ns watched
    lassign $watched($name) monitor bytes way
    array set found {1 {0 0} 2 {0 0}}
    foreach flow [$monitor flows] {
        set found([$flow set flowid_]) [list [$flow set pdepartures_] [$flow set pdrops_]]
    }
    $bytes newpoint [$ns now] [$monitor set size_]
    return [concat [$monitor set bdepartures_] $found($way) $found([expr {3 - $way}]) [$bytes set sum_]]
}

proc begin_measuring {} {
    global watched before senders acked_before
    foreach name [array names watched] { set before($name) [counts $name] }
    foreach {name sender} $senders { set acked_before($name) [$sender set ack_] }
}

proc report {} {
    global ns p watched before senders acked_before times begun
    set seconds [expr {$p(duration) - $p(from)}]
    foreach name [lsort [array names watched]] {
        set after [counts $name]
        foreach key {bytes data_packets data_dropped ack_packets ack_dropped byte_seconds} now $after then $before($name) {
            puts stderr "link $name $key [expr {$now - $then}]"
        }
    }
    foreach {name sender} $senders {
        puts stderr "flow $name packets [expr {[$sender set ack_] - $acked_before($name)}]"
        foreach {key variable} {timeouts nrexmit_ sent_again nrexmitpack_ cuts ncwndcuts_ ecn necnresponses_} {
            puts stderr "flow $name $key [$sender set $variable]"
        }
    }
    if {$p(size) > 0} {
        set sum 0.0
        foreach time $times { set sum [expr {$sum + $time}] }
        puts stderr "run completed [llength $times]"
        puts stderr "run open [array size begun]"
        if {[llength $times] > 0} { puts stderr "run completion_ms_mean [expr {$sum / [llength $times]}]" }
    }
    puts stderr "run seconds $seconds"
    puts stderr "run ns_version [ns-version]"
    exit 0
}

# The use of the first link, the windows of its senders together and their timeouts so far, every so many seconds.
proc sample {last} {
    global ns p watched senders
    set name [expr {$p(topology) eq "dumbbell" ? "forth" : "link0"}]
    set now [lindex [counts $name] 0]
    set windows 0.0
    set timeouts 0
    foreach {one sender} $senders {
        if {![string match forward* $one]} continue
        set windows [expr {$windows + [$sender set cwnd_]}]
        incr timeouts [$sender set nrexmit_]
    }
    set use [expr {($now - $last) * 8 / ($p(rate) * 1e6 * $p(every))}]
    puts stderr [format "sample %g %.4f %.0f %d" [$ns now] $use $windows $timeouts]
    $ns at [expr {[$ns now] + $p(every)}] [list sample $now]
}

if {$p(every) > 0} { $ns at $p(every) [list sample 0] }
$ns at $p(from) begin_measuring
$ns at $p(duration) report
$ns run
