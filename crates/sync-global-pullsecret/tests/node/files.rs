//! Mounted Secrets, read while they are swapped.

use sync_global_pullsecret::source::{CredentialsReader, Folder, SourceEvent, SourceSettings};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::real::Mounted;

fn document(number: u32) -> String {
    format!(r#"{{"auths":{{"r{number}.io":{{"auth":"YTph"}}}}}}"#)
}

/// Credentials and revision are never of two states, the last state is always observed, and a swap is never taken for a loss.
#[tokio::test]
async fn swaps_are_observed_as_a_whole() {
    const LAST: u32 = 300;
    let mounted = Mounted::new();
    mounted.publish("original", Some(&document(0)), Some("original"));
    mounted.publish("global", Some(&document(1)), Some("1"));
    let reader = CredentialsReader::new(Zeroizing::new([7; 32]));
    let (sender, mut events) = mpsc::channel(4);
    let source = SourceSettings::Files(Folder(mounted.path().to_path_buf()));
    drop(tokio::spawn(source.run(reader.clone(), sender)));
    let publishing = tokio::task::spawn_blocking(move || {
        for number in 2..=LAST {
            mounted.publish("global", Some(&document(number)), Some(&number.to_string()));
        }
        mounted
    });
    let mut observed = 0;
    while observed < LAST {
        let SourceEvent::Credentials(credentials) = events.recv().await.unwrap() else { panic!("lost") };
        observed = credentials.revision().unwrap().parse().unwrap_or_else(|_| panic!("fell back to the original"));
        let SourceEvent::Credentials(expected) = reader.read(Zeroizing::new(document(observed).into_bytes()), None)
        else {
            panic!()
        };
        assert_eq!(credentials.id(), expected.id(), "credentials of one state, revision of another");
    }
    drop(publishing.await.unwrap());
}
