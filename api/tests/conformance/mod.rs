//! The cases, and what they share.

// Each test crate that uses these uses a part of them.
#![allow(dead_code)]

pub(crate) mod block_on;
pub(crate) mod coarse;
pub(crate) mod coarse_holds;
pub(crate) mod concurrency;
pub(crate) mod counters;
pub(crate) mod data;
pub(crate) mod fences;
pub(crate) mod futures;
pub(crate) mod joints;
pub(crate) mod keep_alive;
pub(crate) mod limiters;
pub(crate) mod locks;
pub(crate) mod metrics;
pub(crate) mod onces;
pub(crate) mod overrides;
pub(crate) mod owners;
pub(crate) mod refunds;
pub(crate) mod semaphores;
pub(crate) mod several;
pub(crate) mod shared;
pub(crate) mod spaces;
pub(crate) mod stress;
pub(crate) mod tier;

use sprag::Space;

/// Waits until `condition` holds, for as long as it takes. It yields, for nothing tells us when.
pub(crate) fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// How many wait for the lock `name`.
pub(crate) fn waiters(space: &Space, name: &str) -> u32 {
    let locks = space.inspect(name).unwrap();
    let lock = locks.iter().find(|lock| lock.name == name.as_bytes());
    lock.map_or(0, |lock| lock.waiters)
}

/// Instantiates every case for a tier.
macro_rules! suite {
    ($module:ident, $tier:ident) => {
        mod $module {
            $crate::conformance::cases!($tier);
        }
    };
}
pub(crate) use suite;

/// The list of cases.
macro_rules! cases {
    ($tier:ident) => {
        $crate::conformance::instantiate!(
            $tier,
            locks,
            [
                a_free_lock_is_had_at_once_and_a_held_one_is_not,
                tokens_are_consecutive_and_each_lock_has_its_own,
                dropping_a_hold_releases_it,
                a_timed_wait_that_ends_leaves_nothing,
                a_wait_without_end_is_granted_by_a_release,
                waiters_are_served_in_the_order_they_came,
                a_waiter_gets_the_lock_of_a_holder_whose_lease_ran_out,
                an_old_token_frees_no_newer_hold_of_the_same_owner,
                a_released_hold_cannot_be_used_by_its_token,
                a_ttl_outside_its_bounds_is_an_error_that_names_them,
                names_are_bytes_of_every_value,
                names_of_every_length_are_locks_of_their_own,
                names_too_short_or_too_long_are_errors_everywhere,
                a_detached_hold_lives_until_released_by_its_token,
                a_detached_hold_can_be_renewed_and_adopted_by_its_token,
                breaking_a_lock_ends_its_hold_and_is_written_down,
                the_ring_of_breaks_keeps_the_last_64,
                an_inspection_tells_holder_token_lease_and_waiters,
                an_inspection_lists_by_prefix_in_order,
                owned_locks_and_holds_outlive_the_space_they_came_from,
                a_forgotten_hold_ends_with_its_lease,
                errors_and_debug_output_name_what_they_are_about,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            shared,
            [
                those_who_share_keep_out_who_wants_the_lock_alone_and_the_other_way_round,
                a_hold_is_downgraded_and_upgraded_in_place,
                a_second_who_upgrades_is_told_and_keeps_its_share,
                who_wants_a_lock_alone_is_not_starved_by_those_who_share_it,
                each_share_has_a_lease_of_its_own,
                a_share_that_is_kept_alive_stays_so_through_downgrade_and_upgrade,
                a_share_is_detached_adopted_renewed_and_released_by_its_token,
                a_break_ends_all_who_share_and_is_written_down,
                a_wait_for_a_share_or_an_upgrade_that_ends_leaves_nothing,
                futures_of_shares_are_woken_and_leave_nothing_when_dropped,
                an_inspection_tells_who_shares_a_lock,
                a_region_without_room_for_another_share_says_so,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            semaphores,
            [
                no_more_permits_are_out_than_there_are,
                waiters_for_permits_are_served_in_order_whatever_they_want,
                numbers_of_permits_out_of_bounds_and_another_capacity_are_errors,
                permits_of_one_whose_lease_is_over_come_back,
                permits_are_detached_adopted_renewed_and_released_by_their_token,
                a_wait_for_permits_that_ends_lets_the_next_one_in,
                a_hold_of_permits_is_shared_and_cannot_be_had_alone,
                a_semaphore_that_nobody_uses_can_have_another_capacity_once_its_entry_is_gone,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            concurrency,
            [
                no_more_of_a_key_are_out_than_the_limiter_allows,
                a_limiter_with_another_capacity_is_an_error_until_it_is_updated,
                when_the_capacity_falls_nobody_loses_a_hold_and_nobody_gets_in_until_there_is_room,
                when_the_capacity_rises_those_who_wait_are_served_in_order,
                who_waits_for_more_than_a_capacity_that_fell_is_told,
                keys_of_every_length_are_their_own_whatever_the_limiters_are_called,
                those_of_a_key_whose_lease_is_over_come_back,
                holds_of_a_key_go_by_their_token,
                keys_that_nobody_uses_make_room_and_limiters_stay,
                threads_never_have_more_than_the_capacity_while_it_changes,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            coarse,
            [
                a_partition_and_the_locks_in_it_exclude_each_other,
                the_table_excludes_all_locks_of_keys_and_partitions,
                who_waits_for_the_table_keeps_newcomers_out_and_is_served,
                several_locks_are_had_all_at_once_or_not_at_all,
                who_waits_for_several_locks_holds_none_and_is_woken,
                numbers_of_locks_and_partitions_out_of_bounds_are_errors,
                owners_that_wait_for_each_other_are_told,
                a_deadlock_over_a_partition_and_several_locks_is_told,
                futures_of_an_owner_find_deadlocks_too,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            coarse_holds,
            [
                coarse_and_several_locks_end_with_their_lease_and_last_as_long_as_it_is_renewed,
                several_locks_that_are_kept_alive_outlive_their_lease_and_a_break_of_one_is_told,
                a_detached_coarse_lock_is_renewed_adopted_and_released_by_its_token,
                breaking_a_coarse_lock_ends_its_hold_and_is_written_down,
                an_inspection_tells_who_holds_several_and_coarse_locks,
                what_a_session_that_ends_held_of_several_and_coarse_locks_is_had,
                a_timed_wait_for_several_or_coarse_locks_leaves_nothing,
                futures_of_several_and_coarse_locks_are_woken,
                a_fence_takes_the_tokens_of_several_locks_each_its_own,
                holders_of_every_granularity_exclude_each_other_under_many_threads,
                owners_that_take_locks_in_one_order_are_never_told_and_others_never_hang,
                a_circle_of_three_is_broken_by_exactly_one,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            futures,
            [
                a_future_is_ready_at_once_when_the_lock_is_free,
                a_future_is_woken_by_a_release,
                a_dropped_future_leaves_nothing,
                futures_that_move_between_polls_are_all_woken,
                threads_and_futures_are_served_in_one_order,
                a_granted_future_hands_out_a_hold_that_releases,
                a_future_gets_the_lock_of_a_holder_whose_lease_ran_out,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            owners,
            [
                an_owner_gets_its_hold_again_and_the_last_release_counts,
                threads_of_one_owner_share_its_hold,
                owners_exclude_each_other_and_plain_locks,
                a_timed_wait_of_an_owner_ends_and_leaves_nothing,
                an_owner_that_lost_its_hold_is_told_so,
                an_owner_checks_names_and_ttls,
                a_future_of_an_owner_gets_its_hold_again_or_waits_for_all_of_it,
                a_dropped_future_of_an_owner_lets_another_be_first,
                renewing_at_any_depth_renews_the_one_hold_beneath_all,
                an_owner_kept_alive_at_any_depth_outlives_its_ttl_until_the_last_release,
                every_depth_follows_a_loss_and_a_later_hold_is_not_theirs,
                a_callback_may_have_a_hold_of_the_owner_to_drop,
                an_owner_shares_a_lock_once_and_upgrades_rather_than_wait_for_itself,
                threads_of_an_owner_wait_while_one_upgrades,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            keep_alive,
            [
                a_hold_that_is_kept_alive_outlives_its_ttl,
                losing_a_kept_hold_calls_back_once,
                a_dropped_hold_is_renewed_no_more,
                what_is_kept_alive_last_counts_and_a_lost_hold_is_not,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            fences,
            [
                a_fence_admits_what_is_not_older,
                a_fence_admits_once_what_is_newer,
                a_fence_never_admits_zero_and_nothing_above_the_highest_token,
                a_fence_rejects_the_holder_before,
                fences_and_locks_of_one_name_are_apart,
                fence_names_have_bounds,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            counters,
            [
                a_counter_starts_at_0_and_tells_each_sum,
                an_addition_within_bounds_never_overdraws,
                a_sum_that_is_no_number_is_an_error_and_changes_nothing,
                a_swap_tells_what_was_and_a_comparison_what_is,
                a_counter_at_0_gives_its_room_and_all_others_keep_theirs,
                counters_and_other_objects_of_one_name_are_apart,
                counters_are_listed_by_prefix_in_order,
                threads_that_count_at_once_miss_nothing_and_never_overdraw,
                striped_and_plain_handles_are_of_one_counter,
                a_striped_counter_keeps_its_bounds_and_tells_an_overflow,
                threads_on_a_striped_counter_miss_nothing_and_never_overdraw,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            onces,
            [
                the_first_caller_owns_the_key_and_the_others_get_its_result,
                results_of_every_length_come_back_whole_and_longer_ones_are_errors,
                an_owner_whose_deadline_has_passed_stores_nothing,
                an_attempt_that_is_abandoned_frees_the_key_and_a_dropped_one_is_told_of,
                an_owner_moves_its_deadline_while_it_is_to_come,
                a_detached_attempt_goes_on_by_its_token,
                an_attempt_ends_with_its_session,
                owned_onces_and_attempts_outlive_the_space_they_came_from,
                times_of_onces_outside_their_bounds_are_errors_that_name_them,
                once_keys_are_bytes_apart_from_other_names,
                a_table_full_of_onces_refuses_until_one_is_not_kept_any_more,
                of_many_threads_one_does_it_and_all_read_what_it_stored,
                errors_and_debug_output_of_onces_name_the_key,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            joints,
            [
                all_limits_allow_or_nothing_is_taken,
                a_region_that_is_full_of_them_says_that_no_resize_helps,
                the_limit_that_refuses_longest_is_told,
                a_peek_changes_nothing_and_a_cost_of_zero_takes_nothing,
                what_is_said_to_be_left_can_be_had_in_one_call,
                costs_and_numbers_of_limits_out_of_bounds_are_errors,
                other_limits_under_a_name_are_an_error_that_names_both,
                keys_under_several_limits_are_bytes_of_every_length,
                at_the_cap_shared_limits_decide_and_say_so,
                threads_get_no_more_than_any_of_several_limits,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            refunds,
            [
                a_refund_gives_back_what_was_taken,
                a_refund_of_what_took_nothing_gives_nothing,
                a_refund_after_a_change_or_of_another_limiter_is_void,
                a_place_is_reserved_once_and_can_be_given_back,
                a_sliding_window_has_no_reservations_and_says_so,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            several,
            [
                all_limits_are_charged_or_none_is,
                a_key_with_an_override_is_charged_by_that,
                a_key_that_is_named_twice_is_checked_twice,
                each_part_of_a_call_is_given_back_by_itself,
                none_too_many_and_limiters_of_another_space_are_errors,
                keys_without_room_are_charged_in_one_call_with_others,
                a_change_of_a_limit_keeps_what_calls_have_taken_together,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            limiters,
            [
                a_limiter_admits_its_burst_and_no_more,
                a_peek_changes_nothing_and_a_cost_of_zero_takes_nothing,
                a_cost_above_the_burst_is_never_admitted,
                a_rate_of_zero_admits_nothing,
                a_batch_decides_as_one_by_one,
                a_batch_with_a_bad_key_decides_nothing,
                another_definition_is_an_error_unless_it_says_update,
                an_update_keeps_what_was_used,
                limiters_of_one_name_share_their_keys,
                limiters_of_two_names_do_not,
                keys_are_bytes_of_every_length,
                at_the_cap_a_shared_bucket_decides_and_says_so,
                limits_are_read_from_text_and_refused_with_a_reason,
                a_limiter_that_found_no_room_leaves_nothing,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            overrides,
            [
                an_override_decides_on_its_key_alone_and_for_everyone,
                what_was_used_stays_used_when_an_override_is_set_changed_or_cleared,
                a_key_that_is_shut_out_stays_out_until_it_is_cleared,
                a_change_of_the_limit_leaves_overrides_alone,
                what_was_admitted_under_another_limit_is_not_given_back,
                an_override_outlives_its_key,
                keys_without_room_are_decided_by_the_bucket_of_their_own_limit,
                overrides_are_listed_by_limiter_and_key,
                overrides_out_of_bounds_or_without_room_are_errors_that_say_so,
                a_long_key_takes_the_room_of_one_whose_override_was_cleared,
                thousands_of_overrides_share_one_limit,
                no_check_after_an_override_was_set_or_cleared_is_decided_by_another_limit,
                checks_and_overrides_at_once_admit_no_more_than_the_widest_limit,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            spaces,
            [
                clones_share_everything,
                partitions_are_stable_and_within_bounds,
                a_space_tells_its_url,
                caps_and_shares_outside_their_bounds_are_errors,
                a_full_table_is_a_typed_error_and_reclaims_first,
                two_sessions_exclude_each_other_and_one_that_ends_frees_what_it_held,
                a_hold_adopted_by_another_session_is_no_longer_the_first_ones,
                queues_span_sessions,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            metrics,
            [
                nothing_is_counted_before_anything_is_done,
                each_answer_of_a_limiter_is_counted,
                a_call_of_several_limits_is_counted_as_one_check,
                what_a_shared_bucket_decides_is_counted_besides,
                counts_are_exact_however_many_threads_count,
                each_way_an_acquire_can_go_is_counted,
                a_wait_that_fails_was_neither_granted_nor_cancelled,
                permits_several_locks_and_upgrades_are_acquires_too,
                a_deadlock_is_counted_by_the_one_who_is_told,
                a_hold_is_counted_as_lost_once_however_often_it_is_told,
                renewals_are_counted,
                what_comes_of_an_idempotency_key_is_counted,
                a_region_tells_how_full_it_is,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            stress,
            [
                many_threads_exclude_each_other_and_their_tokens_are_consecutive,
                every_waiter_of_many_is_served,
                every_future_of_many_is_served,
                a_storm_of_cancelled_waits_leaves_nothing,
                owners_exclude_each_other_under_many_threads,
            ]
        );
        $crate::conformance::instantiate!(
            $tier,
            data,
            [
                the_shared_cases_of_locks_hold,
                the_shared_cases_of_semaphores_hold,
                the_shared_cases_of_counters_hold,
                the_shared_cases_of_onces_hold,
                the_shared_cases_of_limiters_hold,
                the_shared_cases_of_several_limits_hold,
            ]
        );
    };
}
pub(crate) use cases;

macro_rules! instantiate {
    ($tier:ident, $noun:ident, [$($case:ident),+ $(,)?]) => {
        mod $noun {
            $(
                #[test]
                fn $case() {
                    let tier = <$crate::conformance::tier::$tier as $crate::conformance::tier::Tier>::new();
                    $crate::conformance::$noun::$case(&tier);
                }
            )+
        }
    };
}
pub(crate) use instantiate;
