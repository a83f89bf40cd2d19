//! What several hold at once, one step after another, against naive models: lists of holds and queues that
//! say what a reader of the documentation would. Times are arguments and only rise, by so little at a
//! time that all who wait look again before anyone is passed over.

mod rules;
mod step;
#[path = "../support/mod.rs"]
mod support;
mod world;

use proptest::prelude::*;
use step::step;
use support::model_config;
use world::World;

proptest! {
    #![proptest_config(model_config())]

    // property 1, property 2, property 3, property 4, property 5, property 6, property 12
    #[test]
    fn shared_locks_and_semaphores_and_keys_of_limiters_do_what_a_naive_model_does(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.end();
    }
}
