//! Fault injection: one fault after the other.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::world::World;

/// The parts, as [`World`] has them, by how often they are struck; then Jobs, connections to the broker, and the broker.
const WEIGHTS: [u64; 10] = [4, 4, 2, 2, 3, 2, 2, 6, 1, 1];
const JOBS: usize = 7;
const CONNECTIONS: usize = 8;
/// A part is down for up to this.
const LONGEST_OUTAGE: Duration = Duration::from_secs(2);
const LONGEST_PEACE: Duration = Duration::from_secs(1);

/// Strikes until `end`, and everything at least once; when it returns everything runs again.
pub(crate) async fn havoc(world: &mut World, mut dice: Dice, end: Instant) {
    let mut spared: Vec<usize> = (0..WEIGHTS.len()).collect();
    while Instant::now() < end || !spared.is_empty() {
        sleep(dice.time(LONGEST_PEACE)).await;
        // The spared ones and those that are drawn take turns.
        let is_turn = !spared.is_empty() && dice.percent(60);
        let target = if is_turn { spared[dice.pick(&vec![1; spared.len()])] } else { dice.pick(&WEIGHTS) };
        spared.retain(|place| *place != target);
        let is_rude = dice.percent(60);
        let signal = if is_rude { Signal::KILL } else { Signal::TERM };
        let outage = dice.time(LONGEST_OUTAGE);
        match target {
            place if place < JOBS => {
                let part = &mut world.parts[place];
                let (name, ended) = (part.name, part.end(signal).await);
                sleep(outage).await;
                world.parts[place].start();
                world.struck(name, signal);
                world.wrong.extend(ended.err());
            }
            JOBS => {
                if kill_a_job(world, &mut dice, signal) {
                    world.struck("a Job", signal);
                }
            }
            CONNECTIONS => {
                world.broker.cut_connections().await;
                world.struck("the broker's connections", Signal::KILL);
            }
            _ => {
                if world.broker.restart(signal, outage).await {
                    world.struck("the broker", signal);
                }
            }
        }
    }
}

/// Strikes one of the Jobs that were begun lately, if it runs.
fn kill_a_job(world: &World, dice: &mut Dice, signal: Signal) -> bool {
    let running: Vec<i32> = world.job_pids();
    let Some(pid) = running.get(usize::try_from(dice.below(running.len() as u64)).unwrap()) else { return false };
    // It may have ended meanwhile.
    Pid::from_raw(*pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}
