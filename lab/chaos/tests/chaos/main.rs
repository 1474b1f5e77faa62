//! Chaos: every part a process of its own, killed, restarted and cut off at random; at the end everything is as it should be.
//!
//! All choices are drawn from one seed, which is printed and can be set as `CHAOS_SEED`; their exact times depend on the
//! machine. `CHAOS_CLUSTERS` says how many clusters there are, `CHAOS_SECONDS` for how long they are troubled.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail, and to show progress"
)]

mod broker;
mod dice;
mod fleet;
mod havoc;
mod invariants;
mod part;
mod watcher;
mod world;

use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, timeout};

use dice::Dice;
use fleet::{Fleet, Lives};
use invariants::Judge;
use testkit::environment::variable;
use watcher::Watcher;
use world::World;

/// The most that two busy cores bring through in three minutes; a quiet machine takes `CHAOS_CLUSTERS=200`.
const CLUSTERS: u64 = 40;
const SECONDS: u64 = 30;
/// The same blows every time, unless `CHAOS_SEED` says otherwise: who changes something else should not be surprised.
const SEED: u64 = 7;
/// Maximum time to converge after the last fault, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(10);

fn number(name: &str, default: u64) -> u64 {
    variable(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_every_cluster_ends_with_the_right_secret() {
    LocalSet::new().run_until(Box::pin(chaos())).await;
}

async fn chaos() {
    let seed = number("CHAOS_SEED", SEED);
    let (clusters, span) = (number("CHAOS_CLUSTERS", CLUSTERS), Duration::from_secs(number("CHAOS_SECONDS", SECONDS)));
    let Some(mut world) = World::start().await else { return };
    eprintln!("chaos: CHAOS_SEED={seed} CHAOS_CLUSTERS={clusters} CHAOS_SECONDS={}", span.as_secs());
    let began = Instant::now();
    let fleet = Rc::new(Fleet::new(&world, span).await);
    let watcher = Watcher::start(&world);
    // On one thread: they only wait.
    let mut stories = JoinSet::new();
    for number in 0..clusters {
        let (fleet, dice) = (Rc::clone(&fleet), Dice::new(seed).of(number));
        stories.spawn_local(async move { fleet.live(number, dice).await });
    }
    havoc::havoc(&mut world, Dice::new(seed).of(u64::MAX), began + span).await;
    let troubled = began.elapsed();
    let ended = timeout(TIMEOUT, stories.join_all()).await;
    let lives = ended.unwrap_or_else(|_| panic!("CHAOS_SEED={seed}: clusters wait for ever; {}", world.place()));
    let judge = Judge::new(&world, Lives(lives.into_iter().collect())).await;
    let mut wrong = right(&judge, &mut world).await;
    let settled = began.elapsed();
    wrong.extend(watcher.stop().await);
    wrong.extend(world.stop().await);
    eprintln!(
        "chaos: {} {:.0} s of trouble, all right after {:.0} s; {}",
        judge.summary(),
        troubled.as_secs_f64(),
        settled.as_secs_f64(),
        world.blows()
    );
    assert!(wrong.is_empty(), "CHAOS_SEED={seed}: {} wrong; {}\n{}", wrong.len(), world.place(), wrong.join("\n"));
    world.end().await;
}

/// Waits until everything is right; what is not then.
async fn right(judge: &Judge, world: &mut World) -> Vec<String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let (wrong, ended) = (judge.wrong(world).await, world.ended());
        if wrong.is_empty() || !ended.is_empty() || Instant::now() > deadline {
            return wrong.into_iter().chain(ended).collect();
        }
        eprintln!("chaos: {} not right yet, such as: {}", wrong.len(), wrong[0]);
        sleep(Duration::from_secs(3)).await;
    }
}
