//! One macro for each kind of algorithm.

/// The tests of [`conformance::controller`](crate::conformance::controller) for the controller of this name
/// in this registry, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_controller {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        #[cfg(test)]
        mod controller_conformance {
            #[allow(unused_imports)]
            use super::*;
            use $crate::conformance::controller;

            fn each(hold: impl Fn(&$crate::registry::ControllerConfig)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for options in options {
                    hold(&$registry.controller($name, options).unwrap_or_else(|error| panic!("{error}")));
                }
            }

            #[test]
            fn stays_sound_and_repeats_itself() {
                each(controller::stays_sound_and_repeats_itself);
            }

            #[test]
            fn can_start() {
                each(controller::can_start);
            }

            #[test]
            fn is_as_it_says() {
                each(|config| controller::is_as_it_says(config, &$registry));
            }
        }
    };
}

/// The tests of [`conformance::feedback`](crate::conformance::feedback) for the feedback of this name in this
/// registry, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_feedback {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        #[cfg(test)]
        mod feedback_conformance {
            #[allow(unused_imports)]
            use super::*;
            use $crate::conformance::feedback::{self, Feedback};

            fn each(hold: impl Fn(&Feedback)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for options in options {
                    let config = $registry.feedback($name, options).unwrap_or_else(|error| panic!("{error}"));
                    hold(&Feedback::new(config));
                }
            }

            #[test]
            fn acknowledges_in_time_and_says_what_arrived() {
                each(feedback::acknowledges_in_time_and_says_what_arrived);
            }

            #[test]
            fn tells_an_unmarked_flow_of_no_marks() {
                each(feedback::tells_an_unmarked_flow_of_no_marks);
            }
        }
    };
}

/// The tests of [`conformance::queue`](crate::conformance::queue), and those of
/// [`conformance::path`](crate::conformance::path) in links, for the queue of this name in this registry,
/// with its defaults and with each of the lists of options. The queue is of one buffer and acts on packets
/// that stand in it for seconds; one that is otherwise calls the functions itself.
#[macro_export]
macro_rules! conformance_queue {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        #[cfg(test)]
        mod queue_conformance {
            #[allow(unused_imports)]
            use super::*;
            use $crate::conformance::path::{self, Case};
            use $crate::conformance::queue::{self, Queue};

            fn each(hold: impl Fn(&Queue)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for options in options {
                    let config = $registry.queue($name, options).unwrap_or_else(|error| panic!("{error}"));
                    hold(&Queue::new(config));
                }
            }

            fn each_link(hold: impl Fn(&Case)) {
                each(|queue| {
                    path::links(&queue.config).iter().for_each(&hold);
                    path::restarting_links(&queue.config).iter().for_each(&hold);
                });
            }

            #[test]
            fn keeps_what_a_queue_must_keep() {
                each(queue::keeps_what_a_queue_must_keep);
            }

            #[test]
            fn repeats_itself() {
                each(queue::repeats_itself);
            }

            #[test]
            fn acts_on_a_standing_queue() {
                each(queue::acts_on_a_standing_queue);
            }

            #[test]
            fn its_links_conserve_packets_and_end_quietly() {
                each_link(path::conserves_packets_and_ends_quietly);
            }

            #[test]
            fn its_links_keep_the_order_of_each_flow() {
                each_link(path::keeps_its_order);
            }

            #[test]
            fn its_links_do_the_same_when_called_late() {
                each_link(path::does_the_same_when_called_late);
            }
        }
    };
}

/// The tests of [`conformance::path`](crate::conformance::path) for the path element of this name in this
/// registry, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_element {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        $crate::conformance_path!(element_conformance, $name $(, [$($option),+])*, |options| {
            path::element($registry.element($name, options).unwrap_or_else(|error| panic!("{error}")))
        });
    };
}

/// The tests of [`conformance::path`](crate::conformance::path) for the radio of this name in this registry,
/// with drop-tail queues, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_radio {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        $crate::conformance_path!(radio_conformance, $name $(, [$($option),+])*, |options| {
            let radio = $registry.radio($name, options).unwrap_or_else(|error| panic!("{error}"));
            let queue = $registry.queue("droptail", &[]).unwrap_or_else(|error| panic!("{error}"));
            path::radio(radio, &queue)
        });
    };
}

/// The tests of [`conformance::application`](crate::conformance::application) for the application of this
/// name in this registry, to which it was added, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_application {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        #[cfg(test)]
        mod application_conformance {
            #[allow(unused_imports)]
            use super::*;
            use $crate::apps::Applications as _;
            use $crate::conformance::application;

            fn each(hold: impl Fn(&$crate::apps::Traffic)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for options in options {
                    hold(&$registry.traffic($name, options).unwrap_or_else(|error| panic!("{error}")));
                }
            }

            #[test]
            fn stays_within_its_flow() {
                each(application::stays_within_its_flow);
            }

            #[test]
            fn repeats_itself_and_goes_on_as_its_copy() {
                each(application::repeats_itself_and_goes_on_as_its_copy);
            }

            #[test]
            fn offers_no_more_than_it_says() {
                each(application::offers_no_more_than_it_says);
            }
        }
    };
}

/// The tests of [`conformance::host`](crate::conformance::host) for the controller of a host of this name in
/// this registry, to which the host was added, with its defaults and with each of the lists of options.
#[macro_export]
macro_rules! conformance_host {
    ($registry:expr, $name:literal $(, [$($option:expr),+ $(,)?])* $(,)?) => {
        #[cfg(test)]
        mod host_conformance {
            #[allow(unused_imports)]
            use super::*;
            use $crate::conformance::host;

            fn each(hold: impl Fn(&$crate::registry::HostedConfig)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for options in options {
                    let config =
                        $registry.controller($name, options).unwrap_or_else(|error| panic!("{error}"));
                    hold(config.hosted().unwrap_or_else(|| panic!("{} is of no host from outside", $name)));
                }
            }

            #[test]
            fn delivers_all_of_a_transfer_and_no_more() {
                each(host::delivers_all_of_a_transfer_and_no_more);
            }

            #[test]
            fn repeats_itself_byte_for_byte_without_a_clock() {
                each(host::repeats_itself_byte_for_byte_without_a_clock);
            }

            #[test]
            fn bears_late_calls() {
                each(host::bears_late_calls);
            }

            #[test]
            fn says_how_much_it_has_sent() {
                each(host::says_how_much_it_has_sent);
            }

            #[test]
            fn is_quiet_without_data() {
                each(host::is_quiet_without_data);
            }
        }
    };
}

/// What elements and radios share.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_path {
    ($module:ident, $name:literal $(, [$($option:expr),+])*, |$given:ident| $case:expr) => {
        #[cfg(test)]
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            use $crate::conformance::path::{self, Case};

            fn each(hold: impl Fn(&Case)) {
                let options: &[$crate::registry::Options<'_>] = &[&[], $(&[$($option),+]),*];
                for &$given in options {
                    hold(&$case);
                }
            }

            #[test]
            fn conserves_packets_and_ends_quietly() {
                each(path::conserves_packets_and_ends_quietly);
            }

            #[test]
            fn keeps_its_order() {
                each(path::keeps_its_order);
            }

            #[test]
            fn does_the_same_when_called_late() {
                each(path::does_the_same_when_called_late);
            }

            #[test]
            fn repeats_itself() {
                each(path::repeats_itself);
            }
        }
    };
}
