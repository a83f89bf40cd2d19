//! Answers: a client gets every one, however many it asks for and however slowly it takes them.

mod support;

use std::sync::Arc;

use sprag_net::wire::{Answered, Outcome};
use support::raw::Steady;
use support::{Cluster, PATIENCE, block_on, put};

/// The longest value.
const VALUE_BYTES: usize = 1 << 20;

/// How long a value is that was found.
fn value_bytes(outcome: Outcome) -> usize {
    let Outcome::Done(answer) = outcome else {
        panic!("it is done");
    };
    let answered: Answered = prost::Message::decode(answer).unwrap();
    answered.value.unwrap().len()
}

#[test]
fn a_client_that_asks_for_many_large_values_at_once_gets_them_all() {
    let cluster = Cluster::started(1);
    block_on(async {
        let client = cluster.client();
        let value = Arc::new(vec![7; VALUE_BYTES]);
        put(&client, b"key", &value).await;
        let asked = (0..100).map(|_| {
            let (client, value) = (client.clone(), Arc::clone(&value));
            tokio::spawn(async move {
                let found = client.get(b"key").await.unwrap().unwrap();
                assert!(found.version >= 1 && found.value == **value);
            })
        });
        for asked in asked.collect::<Vec<_>>() {
            asked.await.unwrap();
        }
    });
}

#[test]
fn a_client_that_takes_its_answers_late_gets_them_all_and_holds_nobody_else_up() {
    let cluster = Cluster::started(1);
    block_on(async {
        let client = cluster.client();
        put(&client, b"key", &vec![7; VALUE_BYTES]).await;
        let mut late = Steady::new(&cluster).await;
        for _ in 0..200 {
            late.ask().await;
        }
        // It has as much under way by now as it may have, and has taken nothing.
        for number in 0..50_u64 {
            put(&client, b"other", &number.to_le_bytes()).await;
        }
        assert!(late.connection.close_reason().is_none());
        for _ in 0..200 {
            assert_eq!(value_bytes(late.answer().await), VALUE_BYTES);
        }
    });
}

#[test]
fn a_client_that_takes_no_answer_for_long_is_cut_off() {
    let cluster = Cluster::started(1);
    block_on(async {
        put(&cluster.client(), b"key", &vec![7; VALUE_BYTES]).await;
        let mut never = Steady::new(&cluster).await;
        for _ in 0..100 {
            never.ask().await;
        }
        let closed = tokio::time::timeout(PATIENCE, never.connection.closed()).await;
        let words = closed.unwrap().to_string();
        assert!(words.contains("no answer was taken for 10 s"), "{words}");
        put(&cluster.client(), b"key", b"value").await;
    });
}

#[test]
fn a_node_told_to_stop_goes_once_its_clients_have_their_answers() {
    let mut cluster = Cluster::started(1);
    block_on(async {
        put(&cluster.client(), b"key", &vec![7; VALUE_BYTES]).await;
        let mut client = Steady::new(&cluster).await;
        // They leave together: once one is answered all are taken on.
        for _ in 0..8 {
            client.ask().await;
        }
        assert_eq!(value_bytes(client.answer().await), VALUE_BYTES);
        cluster.tell_to_stop(1);
        for _ in 1..8 {
            assert_eq!(value_bytes(client.answer().await), VALUE_BYTES);
        }
    });
    assert!(cluster.terminate(1).success());
}

#[test]
fn a_node_told_to_stop_waits_for_no_client_that_takes_nothing() {
    let mut cluster = Cluster::started(1);
    block_on(async {
        put(&cluster.client(), b"key", &vec![7; VALUE_BYTES]).await;
        let mut never = Steady::new(&cluster).await;
        for _ in 0..32 {
            never.ask().await;
        }
        assert_eq!(value_bytes(never.answer().await), VALUE_BYTES);
        cluster.tell_to_stop(1);
        // It still hears that the node goes, and reads nothing until then.
        let closed = tokio::time::timeout(PATIENCE, never.connection.closed()).await;
        let words = closed.unwrap().to_string();
        assert!(words.contains("the node stops"), "{words}");
    });
    assert!(cluster.terminate(1).success());
}
