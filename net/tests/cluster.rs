//! Three real nodes: what is put is found.

mod support;

use support::{Cluster, block_on};

#[test]
fn what_is_put_is_found_with_its_version() {
    let cluster = Cluster::started(3);
    block_on(async {
        let client = cluster.client();
        assert_eq!(client.get(b"key").await.unwrap(), None);
        for version in 1..=3_u64 {
            let value = version.to_le_bytes();
            assert_eq!(client.put(b"key", &value).await, Ok(version));
            let found = client.get(b"key").await.unwrap().unwrap();
            assert_eq!((found.version, &found.value[..]), (version, &value[..]));
        }
    });
}
