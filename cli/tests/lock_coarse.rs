//! `sprag lock --partition` and `--table`: all locks of a part of the space, or of all of it.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use lock::world::World;

#[test]
fn a_script_locks_a_partition_and_the_table_over_the_locks_beneath() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
part=$(sprag --at "$AT" lock --acquire --partition --ttl 10m orders/42)
sprag --at "$AT" lock --try orders/42 -- echo overlap || echo "beneath: $?"
sprag --at "$AT" lock --try --table -- echo overlap || echo "above: $?"
sprag --at "$AT" lock --renew "$part" --partition --ttl 20m orders/42
sprag --at "$AT" lock --release "$part" orders/42 || echo "no key: $?"
sprag --at "$AT" lock --release "$part" --partition orders/42
table=$(sprag --at "$AT" lock --acquire --table --ttl 10m)
sprag --at "$AT" lock --try anything -- echo overlap || echo "all: $?"
sprag --at "$AT" lock --wait 50ms --partition orders/42 -- echo overlap || echo "late: $?"
sprag --at "$AT" lock --release "$table" --table
sprag --at "$AT" lock --try orders/42 -- sprag --at "$AT" lock --try --table -- echo overlap || echo "held: $?"
sprag --at "$AT" lock --try --table -- echo "free"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "beneath: 75\nabove: 75\nno key: 123\nall: 75\nlate: 124\nheld: 75\nfree\n"
    );
    for told in [
        "the table is not free",
        "or it was acquired with --of, --key, --partition or --table",
        "the partition of 'orders/42' was not free within 50ms",
    ] {
        assert!(finished.err.contains(told), "{told}: {}", finished.err);
    }
}

#[test]
fn what_makes_no_sense_of_a_partition_and_the_table_is_told() {
    let world = World::new();
    let cases: [(&[&str], &str); 5] = [
        (&["--table", "orders", "--", "true"], "--table"),
        (&["--table"], "sprag lock --table -- CMD"),
        (
            &["--table", "--partition", "a", "--", "true"],
            "--partition",
        ),
        (&["--shared", "--partition", "a", "--", "true"], "--shared"),
        (&["--partition", "", "--", "true"], "1 to 1024 bytes"),
    ];
    for (args, error) in cases {
        let finished = world.run(args);
        assert_eq!(finished.code, Some(64), "{args:?}: {}", finished.err);
        assert!(finished.err.contains(error), "{args:?}: {}", finished.err);
        assert_eq!(finished.out, "");
    }
}

#[test]
fn one_that_would_wait_for_what_it_is_part_of_is_told() {
    let world = World::new();
    let finished = world.script(
        r#"
sprag --at "$AT" lock a -- sprag --at "$AT" lock --partition a -- echo never || echo "up: $?"
sprag --at "$AT" lock --partition a -- sprag --at "$AT" lock a -- echo never || echo "down: $?"
sprag --at "$AT" lock --table -- sprag --at "$AT" lock --wait 50ms a -- echo never || echo "under the table: $?"
sprag --at "$AT" lock --table -- sprag --at "$AT" lock --wait 50ms --partition a -- echo never || echo "a part: $?"
sprag --at "$AT" lock --table -- sprag --at "$AT" lock --wait 50ms b a -- echo never || echo "several: $?"
sprag --at "$AT" lock --table -- sprag --at "$AT" lock --wait 50ms --table -- echo never || echo "itself: $?"
sprag --at "$AT" lock a -- sprag --at "$AT" lock --wait 50ms --table -- echo never || echo "above: $?"
sprag --at "$AT" lock --partition a -- sprag --at "$AT" lock --wait 50ms --table -- echo never || echo "the whole: $?"
sprag --at "$AT" lock --table -- sprag --at "$AT" lock --of 2 a -- echo "a semaphore is not beneath"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "up: 64\ndown: 64\nunder the table: 64\na part: 64\nseveral: 64\nitself: 64\nabove: 64\nthe whole: 64\n\
         a semaphore is not beneath\n"
    );
}

#[test]
fn one_that_would_wait_for_the_partition_that_its_other_name_lies_in_is_told() {
    let world = World::new();
    let space = world.space();
    let names = (0..).map(|number| number.to_string());
    let other = names
        .into_iter()
        .find(|name| space.partition_of(name) == space.partition_of("a"))
        .expect("there are more names than partitions");
    let finished = world.script(&format!(
        r#"
sprag --at "$AT" lock --partition a -- sprag --at "$AT" lock --wait 50ms {other} -- echo never || echo "down: $?"
sprag --at "$AT" lock {other} -- sprag --at "$AT" lock --wait 50ms --partition a -- echo never || echo "up: $?"
"#
    ));
    assert_eq!(finished.out, "down: 64\nup: 64\n", "{}", finished.err);
    let told = "the partition of 'a' can't be had as long as the command that this is part of";
    assert!(finished.err.contains(told), "{}", finished.err);
}

#[test]
fn several_locks_are_had_together_while_a_command_runs() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
sprag --at "$AT" lock b a -- sh -c 'set -- $SPRAG_TOKEN; echo "$SPRAG_KEY, $# tokens"'
sprag --at "$AT" lock a b -- sh -c 'for name in a b; do
  sprag --at "$AT" lock --try $name -- echo overlap || echo "$name: $?"
done'
token=$(sprag --at "$AT" lock --acquire b)
sprag --at "$AT" lock --try a b -- echo overlap || echo "one is held: $?"
sprag --at "$AT" lock --try a -- echo "the other is free"
sprag --at "$AT" lock --release "$token" b
sprag --at "$AT" lock -- -a -b -- echo "both had"
sprag --at "$AT" lock a -- sprag --at "$AT" lock b a -- echo never || echo "itself: $?"
sprag --at "$AT" lock --acquire a b || echo "a script: $?"
sprag --at "$AT" lock --shared a b -- echo never || echo "shared: $?"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "b, 2 tokens\na: 75\nb: 75\none is held: 75\nthe other is free\nboth had\nitself: 64\n\
         a script: 64\nshared: 64\n"
    );
}
