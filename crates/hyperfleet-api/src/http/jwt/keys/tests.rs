//! Keys of issuers that rotate, hang and are down; the clock is paused, and advances while all are idle.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::advance;

use super::*;

/// The reaction of the issuer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Does {
    /// Serves keys with these ids.
    Serves(&'static [&'static str]),
    Hangs,
    Refuses,
}

struct Issuer {
    does: watch::Sender<Does>,
    fetches: Arc<AtomicUsize>,
    keys: Keys,
}

impl Issuer {
    async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let (does, current) = watch::channel(does);
        let fetches = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&fetches);
        drop(tokio::spawn(async move {
            let mut hanging = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = [0; 4096];
                let _request = stream.read(&mut buffer).await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let does = current.borrow().clone();
                let (code, body) = match does {
                    Does::Hangs => {
                        hanging.push(stream);
                        continue;
                    }
                    Does::Refuses => (500, String::new()),
                    Does::Serves(ids) => (200, set(ids)),
                };
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {code} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }));
        let text = format!(r#"{{"issuer_url": "https://issuer", "jwk_cert_url": "{url}", "jwk_max_age": "1h"}}"#);
        let keys = Keys::of(&serde_json::from_str(&text).unwrap()).unwrap();
        Self { does, fetches, keys }
    }

    fn now(&self, does: Does) {
        self.does.send_replace(does);
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// `key`, `unknown` or `unavailable`, and the seconds that the answer took.
    async fn find(&self, id: &str) -> (&'static str, u64) {
        let began = Instant::now();
        let found = match self.keys.find(Some(id)).await {
            Ok(Some(_)) => "key",
            Ok(None) => "unknown",
            Err(_) => "unavailable",
        };
        (found, began.elapsed().as_secs())
    }

    /// Waits for the end of the fetch under way.
    async fn settle(&self) {
        let Keys::Fetched(keys) = &self.keys else { return };
        while keys.lock().is_fetching {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn set(ids: &[&str]) -> String {
    let keys: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(
                r#"{{"kty": "RSA", "kid": "{id}", "n": "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri", "e": "AQAB"}}"#
            )
        })
        .collect();
    format!(r#"{{"keys": [{}]}}"#, keys.join(","))
}

/// The review's reproduction: the issuer hangs, and strangers name keys that do not exist.
#[tokio::test(start_paused = true)]
async fn a_hanging_issuer_delays_no_request_whose_key_is_known() {
    let issuer = Issuer::start(Does::Serves(&["a"])).await;
    assert_eq!(issuer.find("a").await.0, "key");
    issuer.now(Does::Hangs);
    advance(REFRESH).await;
    for _ in 0..20 {
        let strangers = async {
            let (found, seconds) = issuer.find("bogus").await;
            assert_eq!(found, "unavailable");
            assert!(seconds <= WAIT.as_secs(), "{seconds} s");
        };
        let ours = async { assert_eq!(issuer.find("a").await, ("key", 0)) };
        tokio::join!(strangers, ours);
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_do_not_make_the_server_call_the_issuer() {
    let issuer = Issuer::start(Does::Serves(&["a"])).await;
    for number in 0..50 {
        assert_eq!(issuer.find(&format!("bogus-{number}")).await.0, "unknown");
    }
    assert_eq!(issuer.fetches(), 1);
    issuer.now(Does::Refuses);
    advance(MIN_REFRESH).await;
    for number in 0..50 {
        assert_eq!(issuer.find(&format!("bogus-{number}")).await.0, "unavailable");
    }
    assert_eq!(issuer.fetches(), 2, "failures have a back-off");
}

#[tokio::test(start_paused = true)]
async fn many_at_once_are_one_fetch() {
    let issuer = Issuer::start(Does::Serves(&["a"])).await;
    let all = futures_util::future::join_all((0..50).map(|_| issuer.find("a"))).await;
    assert!(all.iter().all(|(found, _)| *found == "key"), "{all:?}");
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_and_a_withdrawn_one_is_refused() {
    let issuer = Issuer::start(Does::Serves(&["a"])).await;
    assert_eq!(issuer.find("a").await.0, "key");
    issuer.now(Does::Serves(&["b"]));
    assert_eq!(issuer.find("b").await.0, "unknown", "the keys are new");
    advance(MIN_REFRESH).await;
    assert_eq!(issuer.find("b").await.0, "key");
    assert_eq!(issuer.find("a").await.0, "unknown");
    // Without any unknown key too, in the background.
    issuer.now(Does::Serves(&["c"]));
    advance(REFRESH).await;
    assert_eq!(issuer.find("b").await, ("key", 0));
    issuer.settle().await;
    assert_eq!(issuer.find("b").await.0, "unknown");
}

#[tokio::test(start_paused = true)]
async fn keys_are_trusted_without_their_issuer_up_to_a_limit() {
    let issuer = Issuer::start(Does::Serves(&["a"])).await;
    assert_eq!(issuer.find("a").await.0, "key");
    issuer.now(Does::Refuses);
    advance(Duration::from_mins(59)).await;
    assert_eq!(issuer.find("a").await, ("key", 0));
    issuer.settle().await;
    advance(Duration::from_mins(2)).await;
    assert_eq!(issuer.find("a").await.0, "unavailable");
    issuer.settle().await;
    issuer.now(Does::Serves(&["a"]));
    advance(Duration::from_mins(2)).await;
    assert_eq!(issuer.find("a").await.0, "key");
}

#[test]
fn a_limit_below_the_interval_of_fetches_is_refused() {
    for age in ["1m", "soon", ""] {
        let settings =
            serde_json::json!({"issuer_url": "https://i", "jwk_cert_url": "https://i/k", "jwk_max_age": age});
        let fault = Keys::of(&serde_json::from_value(settings).unwrap()).unwrap_err();
        assert_eq!(fault, "jwk_max_age: must be a duration of 10m or more, such as 24h");
    }
}
