//! Tests that wait for real time, or for an answer of the kernel. They are the ones that a busy machine could
//! make fail by chance, so each is here with what it waits for and with the bound of its patience, which no
//! load may break: an event is waited for with far more time than it takes, and orders and counts are
//! compared, not durations.
//!
//! `cargo run -p brakelight-testkit --example real_time` prints them, so that they can be run again and again
//! beside full load. A test finds those that are missing here.

/// Tests of one source file that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// The file, from the repository's root.
    pub file: &'static str,
    /// The tests.
    pub tests: &'static [&'static str],
    /// What they wait for.
    pub waits_for: &'static str,
    /// How long they wait at most.
    pub bound: &'static str,
}

/// Every test that waits. `scripts/real-time` runs them in this order: what failed once by chance, or has a
/// bound that looked tight, comes first.
pub const REAL_TIME: &[RealTime] = &[
    RealTime {
        file: "crates/cli/tests/emulated.rs",
        tests: &[
            "a_scenario_by_kernel_tcp_gives_the_document_of_a_simulation_and_a_log_that_agrees",
            "parity_judges_a_scenario_by_the_table_and_says_so_by_its_exit_code",
            "a_command_takes_the_place_of_a_flow_and_is_stopped_at_the_end_of_the_run",
            "a_download_puts_the_path_between_the_server_and_the_command",
            "a_command_that_fails_is_named_with_its_exit_code_and_its_last_words",
            "a_command_where_there_is_no_place_for_it_is_refused_in_one_line",
            "abc_by_quic_gives_the_document_of_a_simulation_with_the_marks_that_its_packets_carried",
            "every_application_does_on_the_emulator_as_in_simulation",
            "parity_of_quic_holds_the_stack_and_its_model_against_the_emulator",
        ],
        waits_for: "runs of seconds over an emulated link",
        bound: "each run ends by itself; rates are compared with those of a simulation, and unreliable runs are made again",
    },
    RealTime {
        file: "crates/cli/tests/kernel_tcp.rs",
        tests: &[
            "a_sender_hears_of_every_byte_what_the_router_said_whatever_the_path_loses",
            "delay_control_keeps_a_deep_buffer_from_filling",
            "a_shaper_that_stands_already_serves_the_router_in_both_versions_of_ip",
            "the_rule_that_tunes_itself_finds_the_loop_s_delay_and_lets_little_wait",
            "the_law_for_l4s_marks_what_a_real_sender_answers",
            "what_is_pinned_outlives_the_command_and_goes_when_told",
        ],
        waits_for: "this kernel's TCP with eBPF programs between network namespaces",
        bound: "120 s for each event; counts and orders are compared",
    },
    RealTime {
        file: "crates/cli/tests/shaper.rs",
        tests: &[
            "a_rate_is_set_on_a_tbf_and_given_back_at_the_end",
            "a_daemon_that_is_killed_leaves_its_last_rate",
            "a_dry_run_changes_nothing",
            "a_qdisc_that_goes_ends_the_daemon_with_one_line",
            "what_cannot_be_shaped_is_refused_in_one_line_and_left_as_it_is",
            "autorate_before_a_link_that_falls_keeps_the_round_trip_below_that_of_no_shaper",
        ],
        waits_for: "a daemon and this kernel's tbf in network namespaces, and 16 s of traffic over an emulated link, twice",
        bound: "120 s for each line; a delay is compared with one more than twice as long, and unreliable runs are made again",
    },
    RealTime {
        file: "crates/quic/tests/silent_path.rs",
        tests: &[
            "a_client_that_hears_late_of_its_end_hears_the_reason",
            "an_upload_of_which_nothing_comes_through_in_its_time_is_one_of_no_bytes",
        ],
        waits_for: "a server's limit of a second, and the time after it in which it answers",
        bound: "the path opens by what the server says; 5 s are left for a packet that comes within 3 s",
    },
    RealTime {
        file: "crates/interop/tests/marks.rs",
        tests: &["quinn_as_it_comes_echoes_every_mark", "s2n_quic_as_it_comes_echoes_every_mark"],
        waits_for: "sockets of this machine, under a clock that stands still while anything is left to do",
        bound: "120 s of that clock",
    },
    RealTime {
        file: "crates/interop/tests/acks.rs",
        tests: &[
            "a_peer_with_the_extension_acknowledges_less_often_where_that_suits_the_controller",
            "a_peer_with_the_extension_is_asked_for_acks_in_small_steps_where_marks_count",
            "a_peer_is_asked_for_nothing_where_each_ack_is_a_sample",
            "a_peer_without_the_extension_is_not_asked_and_takes_all_bytes",
        ],
        waits_for: "sockets of this machine, under a clock that stands still while anything is left to do",
        bound: "120 s of that clock",
    },
    RealTime {
        file: "crates/quic/tests/flood.rs",
        tests: &["strangers_cost_a_server_no_memory_that_stays"],
        waits_for: "floods of strangers, whose answers are waited for",
        bound: "60 s for each answer, and for each client; memory and counts are compared",
    },
    RealTime {
        file: "crates/quic/tests/strangers.rs",
        tests: &["under_load_first_packets_are_answered_by_retry_and_kept_by_nobody"],
        waits_for: "an answer to each of 300 first packets",
        bound: "60 s for each; a client that gives up after 10 s asks again",
    },
    RealTime {
        file: "crates/cli/tests/inputs.rs",
        tests: &["a_file_without_an_end_is_read_to_a_limit"],
        waits_for: "a command that reads an endless file",
        bound: "its processor time, not the clock",
    },
    RealTime {
        file: "crates/cli/tests/guides.rs",
        tests: &[
            "every_command_of_the_guides_does_what_its_page_shows",
            "a_command_that_is_interrupted_must_have_printed_what_its_page_shows",
        ],
        waits_for: "commands in real time; those that go on, until they have printed what the page shows",
        bound: "60 s",
    },
    RealTime {
        file: "crates/explorer/src/tests.rs",
        tests: &[
            "files_are_served_by_their_names_and_nothing_else_is",
            "what_is_no_request_is_answered_or_dropped",
        ],
        waits_for: "answers of a server over TCP of this machine",
        bound: "none: reads end with the connection",
    },
    RealTime {
        file: "crates/lab/src/parity/side_by_side.rs",
        tests: &["runs_go_on_side_by_side_and_end_with_the_first_that_fails"],
        waits_for: "threads that meet",
        bound: "60 s until both are there",
    },
    RealTime {
        file: "crates/emulator/src/namespace/listening.rs",
        tests: &["a_listener_shows_and_a_connection_does_not"],
        waits_for: "the kernel's list of sockets",
        bound: "none: the socket is in the list when bind returns",
    },
    RealTime {
        file: "crates/emulator/src/window_limited.rs",
        tests: &["a_receiver_that_does_not_read_is_seen_in_a_live_flow_and_in_a_closed_one"],
        waits_for: "what the kernel says of two connections of the loopback",
        bound: "its own, told by the test",
    },
    RealTime {
        file: "crates/emulator/src/netlink.rs",
        tests: &["what_is_sent_to_a_new_address_arrives"],
        waits_for: "a datagram over the loopback interface",
        bound: "60 s for a route, and 2 s for a datagram that is there already",
    },
    RealTime {
        file: "crates/emulator/src/veth.rs",
        tests: &["the_first_frame_arrives"],
        waits_for: "frames through a pair of devices",
        bound: "2 s for each, which is there when the frame is written",
    },
    RealTime {
        file: "crates/emulator/tests/devices.rs",
        tests: &[
            "tcp_arrives_as_it_was_sent_when_each_packet_is_written_alone",
            "tcp_arrives_as_it_was_sent_when_packets_are_written_together",
            "loss_and_marks_harm_no_byte",
            "packets_that_the_kernel_dropped_unread_are_known",
            "datagrams_of_any_size_pass_fragments_included",
        ],
        waits_for: "packets through devices of a network namespace",
        bound: "30 s or 60 s for each read",
    },
    RealTime {
        file: "crates/emulator/tests/emulation.rs",
        tests: &[
            "a_panic_of_the_carrying_thread_ends_the_command_with_an_error_of_its_own",
            "a_user_knows_what_the_kernel_dropped",
        ],
        waits_for: "programs in a network namespace",
        bound: "none: they end by themselves",
    },
    RealTime {
        file: "crates/emulator/tests/probe.rs",
        tests: &["a_process_that_stands_still_is_seen"],
        waits_for: "a thread of a process that is stopped for 100 ms",
        bound: "none: it may find more",
    },
    RealTime {
        file: "crates/emulator/tests/measure.rs",
        tests: &[
            "a_fixed_rate_and_a_drop_tail_queue_add_up_in_row_series_flows_and_log",
            "drops_at_dequeue_are_counted_and_logged",
            "a_log_holds_every_opportunity_of_a_trace_until_the_run_ended",
            "a_log_that_cannot_be_written_is_refused_before_the_run",
        ],
        waits_for: "packets through a namespace of the test",
        bound: "its read timeouts, after which it says what is missing",
    },
    RealTime {
        file: "crates/cli/tests/explorer.rs",
        tests: &["the_page_is_served_until_an_interrupt_and_nothing_else_is"],
        waits_for: "a server of the page over TCP",
        bound: "60 s (support::world::PATIENCE)",
    },
    RealTime {
        file: "crates/cli/tests/command.rs",
        tests: &["an_interrupt_leaves_nothing_behind"],
        waits_for: "the folder in the making of a command that is interrupted",
        bound: "30 s",
    },
    RealTime {
        file: "crates/cli/tests/browser.rs",
        tests: &[
            "a_comparison_draws_at_both_widths_without_a_complaint",
            "every_scheme_fits_a_screen_a_phone_and_three_pages",
            "time_zooms_by_dragging_and_by_buttons_for_every_scheme_at_once",
            "choices_redraw_and_everything_may_be_hidden",
            "a_scenario_with_several_links_and_flows_draws_them_all",
            "the_stability_map_draws_and_shows_a_point_over_time_when_pressed",
        ],
        waits_for: "pages that draw in Chromium",
        bound: "240 s for each expression",
    },
    RealTime {
        file: "crates/cli/tests/kills.rs",
        tests: &[
            "a_simulation_killed_at_any_moment_leaves_a_whole_result_or_nothing",
            "an_emulator_killed_at_any_moment_leaves_nothing",
            "either_end_of_a_measurement_killed_at_any_moment_leaves_nothing_in_the_way",
            "what_a_killed_router_left_is_removed_by_the_next_and_said",
        ],
        waits_for: "what is left of processes that were killed at random moments",
        bound: "60 s until it is gone",
    },
    RealTime {
        file: "crates/cli/tests/emulate.rs",
        tests: &[
            "a_ping_takes_the_delay_of_both_directions_over_both_protocols",
            "path_elements_act_in_both_directions_in_the_order_given",
            "a_flow_that_its_window_limits_is_named_with_what_to_do",
            "standard_streams_and_the_exit_code_are_the_commands",
            "a_command_that_crashes_gives_the_code_that_a_shell_would",
            "what_a_command_leaves_in_the_background_ends_with_it",
            "a_server_is_waited_for_and_ended",
            "emulators_within_emulators_join_their_paths",
            "an_ordinary_user_needs_no_root",
            "virtual_ethernet_takes_the_place_of_a_closed_tun",
            "with_sudo_the_command_is_the_users",
            "with_sudo_the_log_is_the_users_and_goes_only_where_that_user_may_write",
            "what_passes_the_link_is_the_programs",
            "an_interrupt_at_the_terminal_is_the_commands_to_answer",
            "signals_from_elsewhere_are_handed_on_and_nothing_remains",
            "a_kill_of_any_of_its_processes_leaves_nothing",
            "nat_reaches_the_network_and_leaves_it_as_it_was",
            "nat_without_root_is_refused_with_what_to_do",
            "the_doctor_names_what_is_missing_and_the_command_says_it_too",
            "cycles_of_start_and_stop_leave_nothing",
        ],
        waits_for: "programs behind an emulated link, and their signals",
        bound: "60 s for each event",
    },
    RealTime {
        file: "crates/cli/tests/stacks.rs",
        tests: &[
            "stacks_on_the_emulator_give_the_rows_of_their_simulation",
            "parity_of_a_stack_holds_it_against_itself",
        ],
        waits_for: "runs of seconds over an emulated link",
        bound: "each run ends by itself; half and twice as much are allowed, and unreliable runs are made again; the table judges",
    },
    RealTime {
        file: "crates/cli/tests/outputs.rs",
        tests: &[
            "a_run_that_is_killed_leaves_nothing",
            "what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_makes_is_not",
        ],
        waits_for: "files of a run that is killed",
        bound: "60 s",
    },
    RealTime {
        file: "crates/cli/tests/fetch.rs",
        tests: &[
            "a_recording_is_fetched_compared_and_there_without_a_network",
            "what_is_not_the_file_of_the_catalogue_is_refused_in_a_line",
        ],
        waits_for: "a server of recordings over TCP of this machine",
        bound: "the command's own time limits",
    },
    RealTime {
        file: "crates/cli/tests/attack/main.rs",
        tests: &[
            "no_generated_input_makes_the_command_panic_abort_or_hang_0",
            "no_generated_input_makes_the_command_panic_abort_or_hang_1",
            "no_generated_input_makes_the_command_panic_abort_or_hang_2",
            "no_generated_input_makes_the_command_panic_abort_or_hang_3",
        ],
        waits_for: "commands that may hang",
        bound: "240 s for each, and 20 s of processor time",
    },
    RealTime {
        file: "crates/sim/src/outside/tests.rs",
        tests: &["a_stack_that_panics_hangs_or_never_stops_fails_its_run_by_name"],
        waits_for: "the watch that gives up a stack which hangs",
        bound: "5 s without a call, which a slow machine must not take between two",
    },
    RealTime {
        file: "crates/cli/tests/sch_abc/main.rs",
        tests: &["the_module_does_in_a_kernel_what_the_core_does"],
        waits_for: "a virtual machine whose clock counts instructions",
        bound: "600 s",
    },
    RealTime {
        file: "crates/quic/src/driver/sockets/tests.rs",
        tests: &[
            "a_transfer_arrives_whole_and_its_accelerates_are_counted",
            "short_connections_share_the_sockets_and_find_their_own",
            "messages_travel_both_ways",
        ],
        waits_for: "flows over UDP of this machine under the real clock",
        bound: "60 s until enough has arrived",
    },
    RealTime {
        file: "crates/quic/src/driver/sockets/tests.rs",
        tests: &[
            "a_flow_that_stands_still_is_late",
            "a_run_is_unreliable_where_a_flow_stands_still_as_measuring_begins",
        ],
        waits_for: "its own sleep of 60 ms",
        bound: "none needed: a busy machine only makes it later",
    },
    RealTime {
        file: "crates/quic/src/perf/server.rs",
        tests: &["a_flood_of_lines_is_counted_and_not_said"],
        waits_for: "a second of the log to pass",
        bound: "none: at least a second, however late",
    },
    RealTime {
        file: "crates/interop/tests/driver.rs",
        tests: &[
            "every_controllers_bytes_arrive_whole_at_a_receiver_that_was_never_told",
            "a_receiver_that_does_not_report_leaves_quicdc_the_round_trip",
            "a_connection_ends_with_its_hub",
        ],
        waits_for: "transfers between sockets under our driver",
        bound: "the connections' own 30 s of silence",
    },
    RealTime {
        file: "crates/quic/tests/perf.rs",
        tests: &[
            "a_server_with_a_token_serves_those_who_know_it",
            "a_measurement_that_fails_takes_its_connections_with_it",
            "a_connection_that_passes_a_limit_of_the_server_is_ended_with_it",
            "an_upload_of_bytes_arrives_whole_over_all_connections",
            "a_download_of_bytes_arrives_whole_and_its_sender_tells_of_it",
            "uploads_and_downloads_end_when_their_time_is_up",
            "exchanges_follow_one_another_and_each_is_timed",
            "a_probe_runs_beside_the_bulk_flow",
            "both_ends_report_to_a_sender_that_goes_by_receive_times_or_single_marks",
            "a_server_with_another_certificate_is_refused",
            "logs_of_both_ends_are_qlog_and_name_their_end",
            "exchanges_go_on_as_long_as_they_are_asked_for",
            "who_does_not_answer_is_said",
        ],
        waits_for: "measurements over the loopback",
        bound: "10 s for a connection, 30 s of silence",
    },
    RealTime {
        file: "crates/quic/tests/offload.rs",
        tests: &[
            "the_driver_sends_and_receives_many_datagrams_in_one_call",
            "an_application_of_quinn_sends_and_receives_many_datagrams_in_one_call",
        ],
        waits_for: "transfers over the loopback with segmentation offload",
        bound: "60 s for each",
    },
    RealTime {
        file: "crates/quic/tests/hostile.rs",
        tests: &[
            "a_path_that_clears_ecn_is_found_out_and_marked_on_no_more",
            "a_path_that_makes_every_accelerate_a_brake_does_not_stop_the_flow",
            "a_path_that_marks_everything_congested_does_not_stop_the_flow",
            "marks_on_more_packets_than_were_sent_with_ecn_are_believed_no_more",
            "a_path_that_does_nothing_leaves_every_accelerate",
        ],
        waits_for: "sockets of this machine, under a clock that stands still while anything is left to do",
        bound: "120 s of that clock",
    },
    RealTime {
        file: "crates/stacks/src/clock.rs",
        tests: &["a_thread_inside_reads_the_simulation_s_time_and_others_read_the_machine_s"],
        waits_for: "nothing: it reads the machine's clock beside the simulation's",
        bound: "an hour between two readings",
    },
    RealTime {
        file: "crates/quic/tests/early.rs",
        tests: &["data_of_0rtt_neither_ends_ecn_nor_comes_back_as_brakes"],
        waits_for: "sockets of this machine, under a clock that stands still while anything is left to do",
        bound: "120 s of that clock",
    },
];

/// Tests that wait for nothing, in files with helpers that do.
#[cfg(test)]
const ASIDE: &[(&str, &[&str])] = &[
    (
        "crates/explorer/src/tests.rs",
        &[
            "a_policy_that_would_end_its_header_is_none",
            "a_build_without_a_page_and_a_taken_port_are_said",
            "a_page_that_is_embedded_is_whole",
        ],
    ),
    ("crates/emulator/src/namespace/listening.rs", &["reads_the_inodes_of_listeners_and_of_nothing_else"]),
    (
        "crates/cli/tests/explorer.rs",
        &[
            "the_explorer_and_the_command_give_the_same_bytes",
            "the_command_that_the_page_gives_has_the_numbers_of_the_page",
        ],
    ),
    ("crates/cli/tests/kernel_tcp.rs", &["the_example_of_a_unit_is_one"]),
    (
        "crates/cli/tests/shaper.rs",
        &[
            "the_init_script_of_openwrt_starts_what_its_configuration_says",
            "the_example_of_a_unit_is_one_that_the_command_takes",
        ],
    ),
    (
        "crates/sim/src/outside/tests.rs",
        &[
            "a_host_from_outside_is_a_controller_like_any_other_beside_modelled_flows",
            "a_connection_that_ends_before_its_time_makes_its_run_unreliable",
            "a_run_of_modelled_hosts_alone_refuses_it_and_so_does_what_it_cannot_have",
            "another_version_is_another_run",
        ],
    ),
    (
        "crates/cli/tests/guides.rs",
        &["blocks_commands_and_output_are_told_apart", "output_that_differs_and_wrong_marks_are_found"],
    ),
    ("crates/cli/tests/attack/main.rs", &["an_input_is_the_same_whenever_it_is_drawn"]),
    (
        "crates/cli/tests/outputs.rs",
        &[
            "a_fifo_is_written_through",
            "a_device_is_written_through",
            "a_link_is_followed_to_a_regular_file_and_nowhere_else",
            "standard_output_by_its_path_is_standard_output",
            "a_folder_of_results_replaces_regular_files_only",
            "a_sweep_writes_to_regular_files_only",
            "an_attack_writes_to_regular_files_only",
            "figures_are_written_beside_other_results_and_not_into_a_folder_of_other_things",
        ],
    ),
    ("crates/quic/tests/perf.rs", &["a_key_that_everybody_may_read_is_refused"]),
    ("crates/quic/tests/silent_path.rs", &["data_behind_the_end_of_a_handshake_are_found"]),
];

impl RealTime {
    /// Returns the package, the name of the test binary (`lib` for unit tests) and the prefix of its tests'
    /// names.
    ///
    /// # Panics
    ///
    /// If the file is not below `crates/NAME/src` or `crates/NAME/tests`.
    pub fn place(&self) -> (String, &'static str, String) {
        let rest = self.file.strip_prefix("crates/").expect("a file of a crate");
        let (folder, rest) = rest.split_once('/').expect("a folder of a crate");
        let package =
            if folder == "brakelight" { folder.to_string() } else { format!("brakelight-{folder}") };
        let stem = rest.strip_suffix(".rs").expect("a file of Rust");
        if let Some(binary) = stem.strip_prefix("tests/") {
            return (package, binary.split('/').next().unwrap_or(binary), String::new());
        }
        let module = stem.strip_prefix("src/").expect("a source file").replace('/', "::");
        let inside = if module == "tests" || module.ends_with("::tests") { "::" } else { "::tests::" };
        (package, "lib", module + inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources;

    /// What waits, or talks to the kernel about more than files.
    const MARKS: &[&str] = &[
        "thread::sleep",
        "time::sleep",
        ".elapsed()",
        "Instant::now() <",
        "Instant::now() >",
        "try_wait()",
        "wait_timeout",
        "set_read_timeout",
        "UdpSocket::",
        "TcpListener::",
        "TcpStream::",
        "Hub::bind",
        "Server::bind",
        "support::world",
        "support::stranger",
        "support::browser",
        "support::kernel",
        "support::receive",
        "\"sleep\"",
        "\"unshare\"",
        "\"nsenter\"",
        "\"iperf3\"",
        "\"flock\"",
    ];

    /// The tests of a text, each with its text, and all that is outside them.
    fn split(text: &str) -> (Vec<(&str, &str)>, String) {
        let mut pieces = text.split("#[test]\n");
        let (mut tests, mut outside) = (Vec::new(), pieces.next().unwrap_or_default().to_string());
        for piece in pieces {
            let Some(name) = piece.split("fn ").nth(1).and_then(|rest| rest.split('(').next()) else {
                continue;
            };
            let indent = piece.len() - piece.trim_start_matches(' ').len();
            let end = format!("\n{}}}\n", " ".repeat(indent));
            let at = piece.find(&end).map_or(piece.len(), |at| at + end.len());
            tests.push((name, &piece[..at]));
            outside += &piece[at..];
        }
        (tests, outside)
    }

    fn waits(text: &str) -> bool {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.into_iter().any(|line| MARKS.iter().any(|mark| line.contains(mark)))
    }

    /// The part of a source file that only tests have.
    fn of_tests<'a>(file: &str, text: &'a str) -> &'a str {
        let whole = file.contains("/tests/") || file.ends_with("/tests.rs");
        let from = if whole { Some(0) } else { text.find("#[cfg(test)]\nmod tests {") };
        from.map_or("", |from| &text[from..])
    }

    fn listed(file: &str, test: &str) -> bool {
        REAL_TIME.iter().any(|entry| entry.file == file && entry.tests.contains(&test))
    }

    /// The tests of a file that wait and are not in the list.
    fn missing<'a>(file: &str, text: &'a str) -> Vec<&'a str> {
        let (tests, outside) = split(of_tests(file, text));
        let helpers = waits(&outside);
        let aside = |test: &str| ASIDE.iter().any(|(other, names)| *other == file && names.contains(&test));
        let must = |(test, body): &(&str, &str)| waits(body) || helpers && !aside(test);
        tests
            .iter()
            .filter(|test| must(test))
            .map(|(test, _)| *test)
            .filter(|test| !listed(file, test))
            .collect()
    }

    #[test]
    fn every_test_that_waits_is_in_the_list() {
        let mut found = Vec::new();
        for (file, text) in sources::read(&["crates"], &[".rs"]) {
            // The guest's run inside the virtual machine that the test of `sch_abc/main.rs` starts.
            if !file.ends_with("testkit/src/real_time.rs") && !file.ends_with("sch_abc/guest.rs") {
                found.extend(missing(&file, &text).iter().map(|test| format!("{file}: {test}")));
            }
        }
        assert!(found.is_empty(), "these belong into crates/testkit/src/real_time.rs:\n{}", found.join("\n"));
    }

    #[test]
    fn every_test_of_the_list_is_there() {
        let lists = REAL_TIME.iter().map(|entry| (entry.file, entry.tests));
        for (file, names) in lists.chain(ASIDE.iter().copied()) {
            let text = sources::read(&[file], &[]).remove(0).1;
            for name in names {
                assert!(split(&text).0.iter().any(|(test, _)| test == name), "{file} has no test `{name}`");
            }
        }
        for (file, names) in ASIDE {
            assert!(!names.iter().any(|name| listed(file, name)), "{file}: a test is in both lists");
        }
    }

    #[test]
    fn a_test_that_sleeps_or_whose_file_does_is_found() {
        let file = "crates/new/tests/new.rs";
        let calm = "#[test]\nfn calm() {\n    let a = 1;\n}\n";
        let sleeps = "#[test]\nfn sleeps() {\n    std::thread::sleep(A);\n}\n";
        let helper = "fn helper() {\n    std::thread::sleep(A);\n}\n";
        assert_eq!(missing(file, calm), [] as [&str; 0]);
        assert_eq!(missing(file, &[calm, sleeps].concat()), ["sleeps"]);
        assert_eq!(missing(file, &[helper, calm].concat()), ["calm"]);
        assert_eq!(missing(file, &[calm, helper].concat()), ["calm"]);
        let unit = format!("{helper}#[cfg(test)]\nmod tests {{\n{calm}}}\n");
        assert_eq!(missing("crates/new/src/new.rs", &unit), [] as [&str; 0]);
    }

    #[test]
    fn a_test_is_called_as_its_binary_calls_it() {
        let place = |file| RealTime { file, tests: &[], waits_for: "", bound: "" }.place();
        let called = |package: &str, binary, prefix: &str| (package.to_string(), binary, prefix.to_string());
        assert_eq!(place("crates/cli/tests/attack/main.rs"), called("brakelight-cli", "attack", ""));
        assert_eq!(
            place("crates/quic/src/perf/server.rs"),
            called("brakelight-quic", "lib", "perf::server::tests::")
        );
        assert_eq!(place("crates/quic/src/a/tests.rs"), called("brakelight-quic", "lib", "a::tests::"));
    }
}
