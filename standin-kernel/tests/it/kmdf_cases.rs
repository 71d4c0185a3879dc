//! Tests the framework with scripts that the module `cases` of the KMDF test driver runs.
//! `docs/reference/kmdf-requests.md` cites the cases by their names, and describes the behavior of
//! Microsoft's source.

use std::{sync::Arc, time::Duration};

use standin_kernel::{
    Completion, DeviceConfig, Kernel, KernelConfig, KernelError, NtStatus, Request, RequestAction,
    RequestKind, Schedule, Work,
};

use crate::{
    bench::{CLIENT, lines},
    common,
};

/// A queue that presents all reads, and a queue for the requests that the driver forwards to it.
const QUEUES: &str = ";queue q0 2 read;route q0 3;queue q1 3";

/// Cases: the name, the driver's setup, the script, and the output of the driver and the test. The
/// test runs the steps of the script that start with `>`, and the driver runs the other steps.
#[rustfmt::skip]
const CASES: &[[&str; 4]] = &[
    // Cancellation.
    ["a_mark_in_a_callback_is_answered_after_it", QUEUES,
        "on read purge q0|mark r|irql;on cancel complete r c0000120;>read 4;>status 0",
        "read0 0 cancel0 state c0000120"],
    ["a_mark_of_a_cancelled_request_calls_at_once", QUEUES,
        ">read 4;>cancel 0;mark r0;irql;complete r0 c0000120;>status 0", "read0 cancel0 0 c0000120"],
    ["a_purge_refuses_marks_without_cancelling", QUEUES,
        "on read purge q0|markex r|canceled r|complete r 0;>read 4", "read0 c0000120 0 state"],
    ["a_request_is_marked_once", QUEUES, ">read 4;mark r0;mark r0", "read0 bugcheck 10d"],
    ["a_cancelable_request_is_not_asked", QUEUES, ">read 4;mark r0;canceled r0", "read0 bugcheck 10d"],
    ["no_mark_in_the_senders_context", "caller;queue q0 2 read;route q0 3",
        "on caller markex r|unmark r|mark r|enqueue r;>read 4", "caller0 c0000010 c0000010 read0 0"],
    ["a_stop_and_purge_cancels_what_comes_back", QUEUES,
        "on read forward r q1;>read 4;next q1 r0;stoppurge q1;requeue r0;state q1;>status 0",
        "read0 0 state 0 13 0 0 c0000120"],
    ["a_stop_and_purge_leaves_what_arrives_meanwhile", QUEUES,
        "target t0;open t0 own;on control forward r q1;on done reuse r1 0 0|format r1 t0 222000|routine r1|send r1 t0;new r1 t0;routine r1;format r1 t0 222000;send r1 t0;stoppurge q1;state q1",
        "control0 sent 1 0 c0000120 0 done1 0 control2 state sent 1 0 9 1 0"],
    ["a_request_is_destroyed_after_the_queue_is_told", "gone destroyed;queue q0 2 read;route q0 3",
        ">read 4;drain q0;complete r0 0", "read0 gone destroyed gone state destroyed gone destroyed"],
    ["a_request_is_destroyed_after_the_next_is_presented", "gone destroyed;queue q0 1 read;route q0 3",
        ">read 4;>read 4;complete r0 0", "read0 gone read0 destroyed gone destroyed"],
    ["a_request_is_the_queues_until_its_sender_is_told", QUEUES,
        "target t0;open t0 own;on done state q1;on control forward r q1;new r1 t0;routine r1;format r1 t0 222000;send r1 t0;next q1 r0;drain q1;complete r0 0",
        "control0 sent 1 0 0 0 0 done1 6 0 1 state"],
    ["a_purge_calls_for_cancelable_requests", QUEUES,
        "on cancel complete r c0000120;>read 4;mark r0;purge q0;>status 0", "read0 cancel0 state c0000120"],
    ["synchronized_callbacks_defer_a_cancel_routine", ";queue q0 2 read lock;route q0 3",
        "on read purge q0|mark r|irql;on cancel irql|complete r c0000120;>read 4;>status 0",
        "read0 2 cancel0 2 state c0000120"],
    ["a_driver_completes_no_request_of_its_own", "", "new r0 -;complete r0 0", "bugcheck 10d"],
    ["memory_of_a_completed_request_is_not_referenced", "", ">control 0 4 0;inmem r0 m0;ref m0;complete r0 0",
        "control0 0 bugcheck 10d"],
    ["memory_is_released_by_the_cleanup_of_its_request", "gone;on gone deref m0;on control inmem r m0|ref m0|complete r 0",
        ">control 0 4 0;>status 0", "control0 0 gone 0"],
    ["memory_is_released_by_the_children_of_its_request", "",
        "local t0;>control 0 4 0;inmem r0 m0;new r1 t0 r0;format r1 t0 222004 m0;send r1 t0;complete r0 0;>status 0",
        "control0 0 sent 1 0 0"],
    ["memory_of_the_driver_can_outlive_a_request", "",
        ">control 0 4 0;wrap r0 m0;ref m0;complete r0 0;>status 0", "control0 0"],
    ["a_passive_child_of_a_request_is_cleaned_up_later", "",
        "on gone irql;>control 0 4 0;child r0;high complete r0 0;>status 0", "control0 gone 0 0"],
    ["a_request_that_was_never_presented_has_no_cleanup", "gone;queue q0 1 read;route q0 3",
        ">read 1;>read 1;>cancel 1;complete r0 0", "read0 gone gone"],
    ["a_request_that_waits_can_be_cancelled",
        ";queue q0 2 read;route q0 3;queue q1 3 canceled;queue q2 1 write;route q2 4",
        "on queuecancel complete r c0000120;on read forward r q1;>read 1;>write 3;>write 6;>cancel 0;>cancel 2;>cancel 1;>status 0;>status 2;>status 1;canceled r1",
        "read0 write1 queuecancel0 c0000120 c0000120 pending 1"],
    ["the_driver_is_called_for_a_request_that_it_made_cancelable", QUEUES,
        "on cancel complete r c0000120;>read 4;mark r0;>cancel 0;>status 0;>read 4;mark r0;unmark r0;complete r0 0;>cancel 1;>status 1",
        "read0 cancel0 c0000120 read0 0 0"],
    ["a_cancelled_request_cannot_be_made_cancelable", QUEUES,
        ">read 4;canceled r0;>cancel 0;canceled r0;markex r0;complete r0 0;>status 0", "read0 0 1 c0000120 0"],
    ["unmarking_a_request_reports_an_earlier_cancellation", QUEUES,
        ">read 4;mark r0;>cancel 0;unmark r0;complete r0 0;>status 0", "read0 cancel0 c0000120 0"],
    // Buffers.
    ["a_read_has_no_input", QUEUES, ">read 4;input r0 1;inmem r0 m0;inmdl r0 m0;output r0 1",
        "read0 c0000010 0 false c0000010 c0000010 0 4 true"],
    ["a_write_has_no_output", ";queue q0 2 write;route q0 4",
        ">write 4;output r0 1;outmem r0 m0;outmdl r0 m0;input r0 1",
        "write0 c0000010 0 false c0000010 c0000010 0 4 true"],
    ["a_create_has_no_buffers", "files;on create input r 1|output r 1|inmem r m0|inmdl r m0|complete r 0", "",
        "create0 c0000010 0 false c0000010 0 false c0000010 c000000d"],
    ["a_failed_retrieval_resets_its_results", "",
        ">control 0 4 2;input r0 5;output r0 3;input r0 4;output r0 0",
        "control0 c0000023 0 false c0000023 0 false 0 4 true 0 2 true"],
    ["an_empty_buffer_is_too_small", "",
        ">control 0 0 0;input r0 0;output r0 0;inmem r0 m0;outmem r0 m0;inmdl r0 m0;outmdl r0 m0",
        "control0 c0000023 0 false c0000023 0 false c0000023 c0000023 c0000023 c0000023"],
    ["method_neither_of_a_process_has_no_buffers", "",
        ">control 3 4 4;input r0 0;outmem r0 m0;inmdl r0 m0;outmdl r0 m0",
        "control0 c0000010 0 false c0000010 c0000010 c0000010"],
    ["an_empty_buffer_precedes_its_method", "", ">control 3 0 0;input r0 0;outmem r0 m0;inmdl r0 m0",
        "control0 c0000023 0 false c0000023 c0000010"],
    ["method_neither_has_no_mdl", "",
        "target t0;open t0 own;memory m0 8;new r1 t0;format r1 t0 222003 m0;send r1 t0;output r0 1;outmem r0 m1;outmdl r0 m1",
        "control0 sent 1 0 0 8 true 0 c0000010"],
    ["parameters_have_one_size", "", ">control 0 0 0;parameters r0;parameters r0 8", "control0 14 7"],
    ["pages_are_locked_in_the_senders_thread", "", ">control 3 4 0;lock r0 0;lock r0 1",
        "control0 c00000e8 c0000005"],
    ["unsafe_buffers_are_for_the_senders_context", "", ">control 3 4 4;unsafein r0 0;unsafeout r0 0",
        "control0 c0000010 0 false c0000010 0 false"],
    // Queues.
    ["a_manual_queue_holds_requests_until_they_are_retrieved", QUEUES,
        "on read forward r q1;next q1 r5;>read 1;>read 2;>status 0;next q1 r5;complete r5 0;>status 0;>status 1;next q1 r5;complete r5 0;>status 1",
        "8000001a read0 read1 pending 0 0 pending 0 0"],
    ["a_requeued_request_comes_first_again", QUEUES,
        "on read forward r q1;>read 1;>read 2;next q1 r5;requeue r5;next q1 r5;complete r5 0;>status 0;>status 1",
        "read0 read1 0 0 0 0 pending"],
    ["requests_are_retrieved_by_file", "files;on create complete r 0;queue q0 2 read;route q0 3;queue q1 3",
        "on read forward r q1;>read 1;>open;>read 1;>control 0 0 0;byfile q1 r5 r2;complete r5 0;>status 0;>status 1;byfile q1 r5 r2",
        "create0 read0 create1 read1 control2 0 pending 0 8000001a"],
    ["requests_can_be_found_without_being_retrieved", QUEUES,
        "on read forward r q1;find q1 r5;>read 1;>read 1;find q1 r5;find q1 r6 r5;deref r5;find q1 r5 r6;deref r6;>status 0;>status 1",
        "8000001a read0 read1 0 0 8000001a pending pending"],
    ["a_stopped_queue_accepts_and_does_not_dispatch", QUEUES,
        "on read forward r q1;state q1;stop q1;>read 1;state q1;next q1 r5;start q1;state q1;next q1 r5;complete r5 0;>status 0",
        "15 0 0 state read0 9 1 0 c0200203 11 1 0 0 0"],
    // The driver completes the request with STATUS_WDF_BUSY, which is unknown to processes.
    ["a_purged_queue_cancels_its_requests_and_accepts_none", ";queue q0 2 read;route q0 3;queue q1 3 canceled",
        "on queuecancel complete r c0000120;on read forward r q1;>read 1;purge q1;>status 0;state q1;>read 1;complete r0 c0200204;>status 1;start q1;>read 1;>status 2",
        "read0 queuecancel0 state c0000120 14 0 0 read0 c0200204 80000011 read0 pending"],
    ["a_draining_queue_still_provides_its_requests", QUEUES,
        "on read forward r q1;>read 1;drain q1;state q1;next q1 r5;complete r5 0;>status 0", "read0 10 1 0 0 state 0"],
    ["the_driver_is_notified_when_a_manual_queue_is_no_longer_empty", QUEUES,
        "on read forward r q1;ready q1;ready q1;>read 1;>read 2", "0 c0000010 read0 ready read1"],
    ["a_sequential_queue_presents_one_request_at_a_time", ";queue q0 1 write;route q0 4",
        ">write 3;>write 6;complete r0 0;>status 0;>status 1;complete r0 0;>status 1", "write0 write0 0 pending 0"],
    // The timer completes the write while the stop waits. The next write is presented only after the start.
    ["stopping_a_queue_waits_for_the_requests_that_the_driver_holds", ";queue q0 1 write;route q0 4",
        "on timer irql|complete r0 0;>write 3;>write 6;timer;stops q0;irql;start q0;>status 0;>status 1",
        "write0 timer 2 0 write0 0 pending"],
    ["configurations_of_queues_are_checked",
        ";queue q1 0;queue q1 4 read;queue q1 1;queue q1 3 read;queue q1 1 read 2", "",
        "c000000d c000000d c020020b c000000d c000000d"],
    ["a_device_has_one_default_queue", ";queue q1 1 read main", "", "c0000001"],
    ["a_default_queue_is_created_before_the_start", "", "queue q1 1 read main", "c0000184"],
    ["a_queue_needs_a_place_for_its_handle", ";queue q1 1 read nowhere", "", "c00000f2"],
    ["dispatching_is_checked",
        ";queue q1 1 write;route q1 3;route q1 2;route q7 e;route q7 3;queue q2 2 read;route q2 3;route q2 3",
        "", "c0000010 c000000d c0000010 c0000010 c0200204"],
    ["creates_are_directed_once",
        ";on default complete r 0;queue q1 2 read;route q1 0;queue q2 2 default;route q2 0;route q2 0", "",
        "c0000010 c000000d default0"],
    ["dispatching_is_configured_before_the_start", "", "queue q1 1 read;route q1 3", "c0000184"],
    ["a_request_without_a_callback_fails_even_if_it_is_empty", "", ">read 0;>status 0", "c0000010"],
    ["empty_requests_are_completed_by_the_framework", QUEUES, ">read 0;>status 0", "0"],
    ["a_queue_can_ask_for_empty_requests", ";queue q0 1 read zero;route q0 3", ">read 0", "read0"],
    ["a_parallel_queue_without_a_number_presents_nothing", ";queue q0 2 read 0;route q0 3", ">read 4;state q0",
        "11 1 0"],
    ["a_parallel_queue_has_a_limit", ";queue q0 2 read 2;route q0 3",
        ">read 1;>read 1;>read 1;state q0;complete r1 0", "read0 read1 3 1 2 read1"],
    ["a_sequential_queue_lets_the_driver_retrieve", ";queue q0 1 read;route q0 3",
        ">read 1;>read 1;next q0 r5;state q0", "read0 0 7 0 2"],
    ["a_parallel_queue_does_not", "", "next q7 r5", "c0000184"],
    ["only_manual_queues_are_searched", QUEUES, ">read 1;find q0 r5;found q0 r5 r0", "read0 c0000010 c0000010"],
    ["a_found_request_must_be_in_the_queue", QUEUES,
        "on read forward r q1;>read 1;>read 1;next q1 r0;found q1 r5 r0;find q1 r5 r0;find q1 r5;stop q1;found q1 r6 r5",
        "read0 read1 0 c0000225 c0000225 0 c0200203"],
    ["a_second_callback_for_a_stop_is_fatal", QUEUES, ">read 4;stop q0;stop q0", "read0 bugcheck 10d"],
    ["a_second_callback_for_a_purge_is_fatal", QUEUES, ">read 4;drain q0;purge q0", "read0 bugcheck 10d"],
    ["a_stop_of_an_idle_queue_is_over_at_once", QUEUES, "stop q0;state q0", "state 13 0 0"],
    ["a_stop_waits_for_the_callback", QUEUES, "on read complete r 0|stop q0|irql;>read 4", "read0 0 state"],
    ["a_callback_must_not_wait_for_its_queue", QUEUES, "on read complete r 0|stops q0;>read 4",
        "read0 bugcheck c4"],
    ["synchronous_forms_return_when_they_are_over", QUEUES,
        "stops q0;state q0;start q0;drains q0;state q0;stoppurges q0;state q0;purges q0;state q0",
        "13 0 0 14 0 0 13 0 0 12 0 0"],
    ["a_drained_queue_fails_requests", QUEUES, "drain q0;>read 4;>status 0", "state c0000184"],
    ["a_completion_presents_nothing_before_the_callback_returns", ";queue q0 1 read;route q0 3",
        "stop q0;>read 1;>read 1;on read complete r 0|irql;start q0", "state read0 0 read0 0"],
    ["a_callback_sends_to_its_own_queue", "",
        "target t0;open t0 own;new r1 t0;format r1 t0 222000;send r1 t0;irql", "control0 sent 1 0 0"],
    ["ready_callbacks_are_for_manual_queues", QUEUES,
        "ready q0;ready q1;ready q1;ready q1 off;stop q1;ready q1 off;ready q1 off",
        "c0000010 0 c0000010 c0000010 state 0 c0000010"],
    ["a_start_makes_a_queue_ready", QUEUES, "ready q1;stop q1;on read forward r q1;>read 1;start q1",
        "0 state read0 ready"],
    ["a_forward_to_the_same_queue_fails", QUEUES, ">read 4;forward r0 q0;complete r0 0;>status 0",
        "read0 c0000010 0"],
    ["a_forward_to_a_drained_queue_fails", QUEUES, ">read 4;drain q1;forward r0 q1;complete r0 0;>status 0",
        "read0 state c0200204 0"],
    ["a_forward_to_a_stopped_queue_waits", QUEUES, ">read 4;stop q1;forward r0 q1;state q1",
        "read0 state 9 1 0"],
    ["a_cancelled_request_is_not_forwarded", ";queue q0 2 read;route q0 3;queue q1 3 canceled",
        ">read 4;>cancel 0;forward r0 q1;state q1", "read0 queuecancel0 7 0 1"],
    ["a_request_in_the_senders_context_is_not_forwarded", "caller;queue q0 2 read;route q0 3",
        "on caller forward r q0|enqueue r;>read 4", "caller0 c0000010 read0 0"],
    ["a_created_request_is_not_forwarded", QUEUES, "new r0 -;forward r0 q1", "c0000010"],
    ["a_refused_request_stays_the_drivers", "caller;queue q0 2 read;route q0 3",
        "drain q0;on caller enqueue r|complete r c0000001;>read 4;>status 0",
        "state caller0 c0200204 c0000001"],
    ["only_manual_queues_take_requests_back", QUEUES, ">read 4;requeue r0", "read0 c0000010"],
    ["a_forward_to_a_parent_is_checked", QUEUES, ">read 4;parent r0 q7;parent r0 q7 2;parent r0 q7 1",
        "read0 c0000004 c000000d c0000010"],
    ["requests_that_a_stop_returns_come_in_reverse", ";queue q0 2 read stop power;route q0 3",
        ">read 1;>read 1;on stop ack r 1;>cycle", "read0 read1 1 stop0 1 stop1 read1 read0"],
    ["all_queues_are_resumed_before_one_is_started",
        ";queue q0 2 read stop resume power;route q0 3;queue q1 2 write stop resume power;route q1 4",
        ">read 1;>write 1;on stop ack r 1|on stop ack r 0;>cycle", "read0 write1 1 stop0 1 stop1 resume1 read0"],
    ["a_stopping_queue_is_held_by_power", ";queue q0 2 read stop resume power;route q0 3",
        ">read 1;on stop state q0|ack r 0;>cycle;state q0", "read0 1 stop0 23 0 1 resume0 7 0 1"],
    ["a_stopping_queue_still_gives_requests", ";queue q0 2 read;route q0 3;queue q1 3 stop power",
        "on read forward r q1;>read 1;>read 1;next q1 r0;on stop next q1 r5|ack r 0;>cycle",
        "read0 read1 0 1 stop0 0"],
    ["a_stop_is_acknowledged_in_its_callback", QUEUES, ">read 4;ack r0 0", "read0 bugcheck 10d"],
    ["a_stop_is_acknowledged_for_a_sent_request", ";queue q0 2 read stop power;route q0 3",
        "local t0;>read 4;format r0 t0 222000;routine r0;send r0 t0;on stop ack r 0|canceled r;on done complete r 0;>cycle;>kept;>status 0",
        "read0 sent 1 0 1 stop0 0 0 0 done0 0"],
    ["a_sent_request_is_not_returned_to_its_queue", ";queue q0 2 read stop power;route q0 3",
        "local t0;>read 4;format r0 t0 222000;routine r0;send r0 t0;on stop ack r 1;>cycle",
        "read0 sent 1 0 1 stop0 bugcheck 10d"],
    ["a_stop_tells_of_cancelable_requests", ";queue q0 2 read stop power;route q0 3",
        ">read 1;mark r0;on stop ack r 0;>cycle", "read0 10000001 stop0"],
    ["queues_of_functions_are_power_managed", ";queue q1 3 usual;state q1", "state q1", "31 0 0 15 0 0"],
    ["queues_of_filters_are_not", "filter;queue q1 3 usual;state q1", "", "15 0 0"],
    ["a_filter_passes_on_what_its_default_queue_does_not_handle", "filter", ">read 4;>status 0", "0"],
    // Files.
    ["requests_without_file_objects", "", ">control 0 0 0;file r0", "control0 false"],
    ["requests_with_file_objects", "files;on create file r|complete r 0", ">control 0 0 0;file r0",
        "create0 true control0 true"],
    ["callbacks_without_file_objects", "nofiles;on create complete r 0", ">close",
        "null create0 cleanup close"],
    ["a_create_is_in_no_queue_of_the_driver", "files;on create queueof r|complete r 0", "", "create0 false"],
    ["a_create_is_cancelled_at_once", "files;on create complete r 0",
        "target t0;open t0 own;on cancel complete r c0000120;on done complete r c0000120;on create on create mark r|current r|routine r|send r t0|cancelsent r0;>open",
        "create0 create0 create1 sent 1 0 cancel1 c0000120 0 done0 1 open c0000120"],
    ["a_mark_of_a_cancelled_create_calls_at_once", "files;on create complete r 0",
        "target t0;open t0 own;on cancel complete r c0000120;on done complete r c0000120;on create on create irql|current r|routine r|send r t0|cancelsent r0|mark r1|irql;>open",
        "create0 create0 create1 0 sent 1 0 0 cancel1 c0000120 0 done0 0 open c0000120"],
    ["a_create_can_be_forwarded", "files;queue q1 3;on create forward r q1|next q1 r5|complete r5 0", "",
        "create0 0"],
    ["a_failed_create_is_not_cleaned_up", "files;on create complete r c0000022", "", "create0 open c0000022"],
    ["creates_succeed_by_default", "", ">open;>close", ""],
    // Targets.
    ["a_request_for_a_closed_target_is_not_created", "",
        "target t0;tstate t0;new r0 t0;new r1 -;change r1 t0;format r1 t0 222000",
        "1 c0000184 c0000184 c0000184"],
    ["a_target_that_was_never_opened_is_stopped_and_closed", "",
        "target t0;halt t0 3;tstate t0;clear t0 2;tstate t0;open t0 own;tstate t0;target t1;shutquery t1;tstate t1",
        "2 6 1 4"],
    ["opens_are_checked", "",
        "target t0;open t0 none;open t0 own;open t0 own;open t0 again;shut t0;open t0 name;shut t0;open t0 again;tstate t0",
        "c000000d c0000184 c0000010 1"],
    ["a_device_that_is_not_there_is_not_opened", "", "target t0;open t0 absent;open t0 nowhere",
        "c0000034 c000003a"],
    ["a_closed_target_does_not_start", "", "target t0;begin t0;open t0 own;shut t0;begin t0;tstate t0",
        "c0000184 c0000184 4"],
    ["a_purge_fails_what_waits", "",
        "local t0;halt t0 3;new r0 t0;routine r0;format r0 t0 222000;send r0 t0;clear t0 2;tstate t0",
        "sent 1 0 c0200206 0 done0 6"],
    ["a_stop_leaves_what_ignores_the_state", "",
        "local t0;new r0 t0;routine r0;format r0 t0 222000;send r0 t0 4;halt t0 1;>kept", "sent 1 0 0 0 done0"],
    ["a_stop_cancels_what_was_sent", "",
        "local t0;new r0 t0;routine r0;format r0 t0 222000;send r0 t0;halt t0 1;tstate t0",
        "sent 1 0 c0000120 0 done0 2"],
    ["an_unknown_action_does_nothing", "", "local t0;halt t0 0;tstate t0;clear t0 0;tstate t0", "1 1"],
    ["a_request_that_was_cancelled_before_is_not_sent", "",
        "local t0;new r0 t0;format r0 t0 222000;cancelsent r0;send r0 t0;reuse r0 0 0;format r0 t0 222004;send r0 t0",
        "0 sent 0 c0000120 0 sent 1 0"],
    ["reuse_is_for_all_requests", QUEUES,
        ">read 4;reuse r0 0 c0000001;status r0;reuse r0 1;new r1 -;reuse r1 4;reuse r1 2;complete r0 0",
        "read0 0 c0000001 c0200208 c000000d c000000d"],
    ["reuse_ends_a_cancellation", QUEUES,
        ">read 4;mark r0;>cancel 0;reuse r0 0 0;markex r0;unmark r0;mark r0;on cancel complete r c0000120;purge q0;>status 0",
        "read0 cancel0 0 0 0 cancel0 state c0000120"],
    ["a_cancelled_request_is_marked_again", QUEUES,
        ">read 4;mark r0;>cancel 0;on cancel complete r c0000120;mark r0;>status 0",
        "read0 cancel0 cancel0 c0000120"],
    ["reuse_forgets_the_routine", "",
        "local t0;new r0 t0;routine r0;reuse r0 0 0;format r0 t0 222004;send r0 t0", "0 sent 1 0"],
    ["options_of_a_send_are_checked", "",
        "local t0;new r0 t0;format r0 t0 222004;send r0 t0 a;send r0 t0 9;send r0 t0 10000;control t0 222004 8 8",
        "sent 0 c000000d sent 0 c000000d sent 0 c000000d c0000004 7"],
    ["a_synchronous_send_forgets_nothing", "", "local t0;control t0 222004 8 10 8", "0 4"],
    ["a_warning_has_bytes", "", "local t0;control t0 222008 8", "80000005 4"],
    ["a_descriptor_has_a_buffer", "", "local t0;control t0 222004 0;control t0 222004 m5",
        "c000000d 7 c000000d 7"],
    ["a_closed_target_sends_nothing", "", "target t0;control t0 222004 8", "c0000184 7"],
    ["ranges_of_memory_are_checked", "",
        "local t0;memory m0 8;new r0 t0;format r0 t0 222004 m0 4 5;format r0 t0 222004 m0 9 0;format r0 t0 222004 m0 2 ffffffffffffffff;format r0 t0 222004 m0 4 4",
        "c0000095 c0000095 c0000095"],
    ["a_received_request_needs_a_routine", QUEUES,
        "local t0;>read 4;current r0;send r0 t0;send r0 t0 8;>status 0", "read0 sent 0 c0000010 sent 1 0 0"],
    ["a_created_request_is_not_forgotten", "", "local t0;new r0 t0;format r0 t0 222004;send r0 t0 8",
        "sent 0 c0000184"],
    ["a_formatted_request_is_not_forgotten", QUEUES, "local t0;>read 4;format r0 t0 222004;send r0 t0 8",
        "read0 sent 0 c0000010"],
    ["a_request_is_sent_once", "", "local t0;new r0 t0;format r0 t0 222000;send r0 t0;send r0 t0",
        "sent 1 0 bugcheck 10d"],
    ["a_sent_request_stays_cancelled", QUEUES,
        ">read 4;>cancel 0;target t0;open t0 own;current r0;routine r0;send r0 t0;canceled r1",
        "read0 read1 sent 1 0 1"],
    ["a_sent_request_is_cancelled", "",
        "local t0;new r0 t0;routine r0;format r0 t0 222000;send r0 t0;cancelsent r0;cancelsent r0",
        "sent 1 0 c0000120 0 done0 1 0"],
    ["a_request_whose_time_is_over_is_cancelled", "",
        "local t0;new r0 t0;routine r0;format r0 t0 222000;send r0 t0 3 c350;status r0",
        "c00000b5 0 done0 sent 1 0 c00000b5"],
    ["a_target_queues_and_refuses_requests_in_its_states", "",
        "target t0;open t0 name;memory m0 8;halt t0 2;new r0 t0;routine r0;format r0 t0 222004 m0;send r0 t0;begin t0;reuse r0 0 0;send r0 t0;format r0 t0 222004 m0;clear t0 1;send r0 t0",
        "sent 1 0 0 4 done0 0 0 sent 0 c00000d0 sent 0 c0000184"],
    ["only_remote_targets_are_opened_and_closed", "", "local t0;shut t0", "bugcheck 10d"],
    // Names.
    ["a_device_has_its_name_alone", "", r"controldevice d1 \Device\A;controldevice d2 \device\a;delete d1;controldevice d3 \Device\A",
        "0 c0000035 0"],
    ["a_link_has_its_name_alone", "",
        r"controldevice d1 \Device\A \DosDevices\KmdfTest;controldevice d2 \Device\B \??\X;controldevice d3 \Device\C \DosDevices\x",
        "0 c0000035 0 0 0 c0000035"],
    ["names_have_a_directory", "",
        r"controldevice d1 \Devices\A;controldevice d1 Device\A;controldevice d2 \Device\A \DosDevice\X;controldevice d3 \Device\B DosDevices\X",
        "c000003a c000003b 0 c000003a 0 c000003b"],
    ["a_second_device_collides", "named", ">add", "open c0000035"],
    ["a_second_link_collides", "", ">add", "open c0000035"],
    // Statuses.
    ["only_the_policy_owner_prevents_idling", "nopolicy", "stopidle", "c0000184"],
    ["a_mark_needs_a_callback", QUEUES, ">read 4;marknull r0", "read0 bugcheck 10d"],
    ["a_routed_queue_is_not_deleted", QUEUES, "delete q0;>read 4;>status 0", "read0 pending"],
    ["a_completed_request_is_formatted_again", "",
        "local t0;new r0 t0;format r0 t0 222004;send r0 t0;send r0 t0", "sent 1 0 sent 0 c00000d0"],
    ["calls_about_children_are_checked", "", "children", "0 0 c000000d c0000010 true c000000d"],
    ["what_the_framework_refuses", "", "statuses", "c020020f c0000010 0 0 0"],
    // Timers.
    ["a_stop_aborts_the_callbacks_start", QUEUES,
        "on timer starttimer;on read starttimer|stoptimer|complete r 0;passivetimer;>read 4;>advance 20",
        "read0 0 timer 0 1"],
];

/// Cases that end with a bugcheck: the name, the driver's setup, the script, the output, and parts of the
/// bugcheck's message.
#[rustfmt::skip]
const STOPS: &[(&str, &str, &str, &str, &[&str])] = &[
    ("waiting_for_a_request_from_its_own_callback_is_a_bugcheck", "", "purges q7", "bugcheck c4",
        &["WdfIoQueuePurgeSynchronously", "etw_kmdf_driver", "would wait forever for device control",
            "is never completed"]),
    ("completing_a_cancelable_request_is_a_bugcheck", QUEUES, ">read 4;mark r0;complete r0 0",
        "read0 bugcheck 10d",
        &["WdfRequestComplete was called from", "which is cancelable", "call WdfRequestUnmarkCancelable first"]),
    ("unmarking_a_request_that_is_not_cancelable_is_a_bugcheck", QUEUES, ">read 4;unmark r0",
        "read0 bugcheck 10d", &["WdfRequestUnmarkCancelable", "not cancelable"]),
    ("a_forwarded_request_no_longer_belongs_to_the_driver", QUEUES,
        ">read 4;forward r0 q1;state q1;>status 0;complete r0 0", "read0 11 1 0 pending bugcheck 10d",
        &["WdfRequestComplete", "is still in a queue", "does not own it"]),
    ("a_driver_must_not_delete_a_request", QUEUES, ">read 4;delete r0", "read0 bugcheck 10d",
        &["WdfObjectDelete", "WDFREQUEST", "only the framework may delete"]),
    ("a_driver_must_not_complete_a_request_that_it_has_sent", QUEUES,
        "local t0;>read 4;format r0 t0 222000;routine r0;send r0 t0;complete r0 0", "read0 sent 1 0 bugcheck 10d",
        &["WdfRequestComplete", "was sent to an I/O target and is not completed"]),
];

/// A running case.
struct Run {
    kernel: Kernel,
    printed: usize,
    log: Vec<String>,
    /// The message of the bugcheck that ended the case.
    message: String,
}

impl Run {
    /// Adds the driver's output, and then the outcome of a step. Returns `None` after a bugcheck.
    fn note<T>(&mut self, result: Result<T, KernelError>) -> Option<T> {
        let lines = lines(&self.kernel);
        self.log.extend_from_slice(&lines[self.printed..]);
        self.printed = lines.len();
        let problem = match result {
            Ok(value) => return Some(value),
            Err(KernelError::BugCheck(bugcheck)) => {
                self.message.clone_from(&bugcheck.message);
                format!("bugcheck {:x}", bugcheck.code)
            }
            Err(KernelError::CannotOpen { status, .. } | KernelError::Status { status, .. }) => {
                format!("open {:x}", status.0)
            }
            Err(other) => other.to_string(),
        };
        self.log.push(problem);
        None
    }
}

/// Handles requests to the lower device: it keeps a request, answers with `pong`, or warns that the
/// output is longer.
fn answer(kind: RequestKind) -> RequestAction {
    let overflow = NtStatus(0x8000_0005_u32.cast_signed());
    let pong = Completion::success(b"pong".to_vec());
    match kind {
        RequestKind::DeviceControl { code: 0x0022_2000 } => RequestAction::Keep,
        RequestKind::DeviceControl { code: 0x0022_2008 } => {
            RequestAction::Complete(Completion { status: overflow, ..pong })
        }
        RequestKind::DeviceControl { .. } => RequestAction::Complete(pong),
        _ => RequestAction::Complete(Completion::success(Vec::new())),
    }
}

/// Runs a case, and returns the output, and the message of a bugcheck.
fn run(setup: &str, script: &str) -> (String, String) {
    const RUN: u32 = 0x0022_2FFC;
    let kernel = Kernel::new();
    let lower = kernel.simulate_device(Some(r"\Device\Simulated"), |request| answer(request.kind));
    let driver = kernel.load_as(&common::kmdf(), &format!("cases{setup}")).unwrap();
    let device = driver.add_device_with(DeviceConfig::new().above_simulated(&lower)).unwrap();
    let mut run = Run { kernel, printed: 0, log: Vec::new(), message: String::new() };
    let mut files = Vec::from_iter(run.note(device.open(CLIENT)));
    let mut requests: Vec<Request> = Vec::new();
    for step in script.split(';') {
        let Some(file) = files.last() else { break };
        let words: Vec<&str> = step.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        let noted = match words.first().copied().unwrap_or_default() {
            "" => Some(()),
            ">read" => run.note(file.start_read(number(1))).map(|request| requests.push(request)),
            ">write" => run
                .note(file.start_write(&vec![1; number(1)]))
                .map(|request| requests.push(request)),
            ">control" => {
                let code = 0x0022_3000 | u32::try_from(number(1)).unwrap();
                let sent = file.start_device_control(code, &vec![1; number(2)], number(3));
                run.note(sent).map(|request| requests.push(request))
            }
            ">cancel" => run.note(requests[number(1)].cancel()),
            ">status" => {
                run.note(requests[number(1)].try_finish()).map(|done| {
                    run.log.push(done.map_or_else(
                        || "pending".to_owned(),
                        |done| format!("{:x}", done.status.0),
                    ));
                })
            }
            ">open" => run.note(device.open(CLIENT)).map(|file| files.push(file)),
            ">close" => {
                let closed = files.remove(0).close();
                run.note(closed)
            }
            ">add" => {
                let added = driver.add_device();
                run.note(added).map(drop)
            }
            ">advance" => {
                let time = Duration::from_millis(number(1) as u64);
                let advanced = run.kernel.advance(time);
                run.note(advanced)
            }
            ">cycle" => run.note(device.power_cycle()),
            ">kept" => {
                let kept = lower.kept().into_iter().next().map(|(request, _)| request);
                let done = Completion::success(Vec::new());
                kept.and_then(|request| run.note(lower.complete(&request, done).map(drop)))
            }
            _ => run.note(file.device_control(RUN, step.as_bytes(), 0).map(drop)),
        };
        if noted.is_none() {
            break;
        }
    }
    run.kernel.leave_behind();
    (run.log.join(" "), run.message)
}

#[test]
fn requests_do_as_in_the_frameworks_source() {
    let mut failed = Vec::new();
    let cases = CASES.iter().map(|&[name, setup, script, log]| (name, setup, script, log, &[][..]));
    for (name, setup, script, expected, parts) in cases.chain(STOPS.iter().copied()) {
        let (printed, message) = run(setup, script);
        if printed != expected || !parts.iter().all(|part| message.contains(part)) {
            failed.push(format!(
                "{name}:\n  {printed:?} {message}\n  {expected:?} {parts:?} was expected"
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_device_leaves_d0_after_the_callbacks_of_its_queues() {
    let config = KernelConfig { processors: 2, ..KernelConfig::default() };
    let kernel = Arc::new(Kernel::with_config(config));
    let setup = "queue q0 2 read power;route q0 3;queue q1 2 write stop power;route q1 4;\
                 on read complete r 0|delay|irql;on stop ack r 0";
    let driver = kernel.load_as(&common::kmdf(), &format!("cases;{setup}")).unwrap();
    let device = driver.add_device().unwrap();
    let file = device.open(CLIENT).unwrap();
    let _kept = file.start_write(&[1]).unwrap();
    let reader: Work = Box::new(move || drop(file.start_read(4).unwrap()));
    let watched = Arc::clone(&kernel);
    let cycler: Work = Box::new(move || {
        while !lines(&watched).iter().any(|line| line == "read1") {
            std::thread::yield_now();
        }
        device.power_cycle().unwrap();
    });
    kernel.together(Schedule::Parallel, vec![reader, cycler]).unwrap();
    assert_eq!(lines(&kernel), ["write0", "read1", "0", "1", "stop0"]);
    kernel.leave_behind();
}
