//! Many runs, of any generation and content, killed anywhere, each alone or beside another, and versions added by hand between
//! them: whatever they leave, a run of the newest generation brings the secret right, and the run after it finds nothing to do.

use proptest::prelude::*;

use super::*;

const PLACES: [Records; 2] = [Records::UnderEtag, Records::WithVersion];

/// A store without its network: what plans do to it.
#[derive(Clone, Debug, Default)]
struct World {
    place: Records,
    secret: Option<Metadata>,
    versions: BTreeMap<VersionNumber, VersionState>,
    records: BTreeMap<VersionNumber, Record>,
}

impl World {
    /// The versions from the recorded one up, as a run reads them.
    fn observe(&self) -> Observed {
        let recorded = self.secret.as_ref().and_then(|secret| Record::read(&secret.annotations).version);
        let start = recorded.unwrap_or(VersionNumber::FIRST);
        let versions: BTreeMap<_, _> = self.versions.range(start..).map(|(number, state)| (*number, *state)).collect();
        let is_live = |number: &VersionNumber| matches!(versions.get(number), Some(VersionState::Live(_)));
        let records = self.records.iter().filter(|(number, _)| is_live(number));
        let records = records.map(|(number, record)| (*number, record.clone())).collect();
        Observed { secret: self.secret.clone(), versions, added: BTreeSet::new(), place: self.place, records }
    }

    fn add(&mut self, state: VersionState) -> VersionNumber {
        let next = self.next();
        self.versions.insert(next, state);
        next
    }

    /// Carries out the first `steps` actions.
    fn apply(&mut self, plan: &Plan, desired: &Desired, steps: usize) {
        for action in plan.actions.iter().take(steps) {
            assert!(self.act(action, desired), "a plan announces the number that its version gets");
        }
    }

    /// Carries out an action; returns false if a version with another number was added meanwhile. Where versions have the
    /// record, metadata is written whatever its etag, as it is at a server without that condition.
    fn act(&mut self, action: &Action, desired: &Desired) -> bool {
        match action {
            Action::Create { labels, annotations } | Action::Update { labels, annotations } => {
                let (labels, annotations) = (labels.clone(), annotations.clone());
                self.secret = Some(Metadata { labels, annotations, etag: String::new() });
            }
            Action::Add { content, number, record } => {
                let state = match content {
                    Content::Desired => VersionState::Live(desired.content),
                    Content::CopyOf(source) => self.versions[source],
                };
                if *number != self.next() {
                    return false;
                }
                self.add(state);
                if !record.is_empty() {
                    self.records.insert(*number, Record::read(record));
                }
            }
            Action::Destroy(number) => {
                self.versions.insert(*number, VersionState::Destroyed);
            }
            Action::Delete { .. } => *self = Self { place: self.place, ..Self::default() },
        }
        true
    }

    fn next(&self) -> VersionNumber {
        self.versions.last_key_value().map_or(VersionNumber::FIRST, |(last, _)| last.next())
    }

    /// The generation of the highest version with a record.
    fn generation(&self) -> Option<Generation> {
        self.records.last_key_value().and_then(|(_, record)| record.generation)
    }
}

proptest! {
    #[test]
    fn every_history_converges(
        place in prop::sample::select(PLACES.to_vec()),
        history in prop::collection::vec((1_u64..4, 0_u8..3, 0_usize..7, 0_usize..4, any::<bool>()), 1..12)
    ) {
        let mut world = World { place, ..World::default() };
        let by_hand = VersionState::Live(content("by hand"));
        let mut added_by_hand = BTreeSet::new();
        for (generation, name, steps, retain, then_by_hand) in history {
            let run = Desired {
                identity: identity(generation),
                content: content(&name.to_string()),
                retain,
                ..desired()
            };
            world.apply(&store(&run, &world.observe()), &run, steps);
            // The first version of a secret always counts as this project's.
            if then_by_hand && !world.versions.is_empty() {
                added_by_hand.insert(world.add(by_hand));
            }
        }
        let last = Desired { identity: identity(9), ..desired() };
        let plan = store(&last, &world.observe());
        world.apply(&plan, &last, usize::MAX);

        let live: Vec<_> = world.versions.iter().filter(|(_, state)| matches!(state, VersionState::Live(_))).collect();
        let desired = VersionState::Live(last.content);
        prop_assert_eq!(live.last().map(|(_, state)| **state), Some(desired));
        prop_assert_eq!(world.versions.last_key_value().map(|(_, state)| *state), Some(desired));
        prop_assert_eq!(live.iter().filter(|(_, state)| **state == desired).count(), 1);
        let record = Record::read(&world.secret.clone().unwrap().annotations);
        prop_assert!(record.added.len() <= last.retain, "{:?}", record);
        prop_assert!(record.added.iter().all(|number| world.versions.contains_key(number)), "{:?}", record);
        let recorded_or_by_hand = record.added.union(&added_by_hand).copied().collect::<BTreeSet<_>>();
        prop_assert!(live.iter().all(|(number, _)| recorded_or_by_hand.contains(number)), "{:?} {:?}", live, record);
        prop_assert!(added_by_hand.iter().all(|number| world.versions[number] == by_hand), "{:?}", world.versions);
        let again = store(&last, &world.observe());
        prop_assert_eq!(again.reason, Reason::SecretUnchanged);
        prop_assert_eq!(again.actions, vec![]);
    }

    /// Runs need no other fence than a record in each version: of two that go on side by side in any order, the older
    /// generation never writes on top of the newer one.
    #[test]
    fn an_older_generation_never_follows_a_newer_one(
        order in prop::collection::vec(any::<bool>(), 1..40),
        retain in 1_usize..4,
        exists in any::<bool>()
    ) {
        let mut world = World { place: Records::WithVersion, ..World::default() };
        if exists {
            let first = Desired { identity: identity(1), content: content("first"), ..desired() };
            world.apply(&store(&first, &world.observe()), &first, usize::MAX);
        }
        let runs = [(2, "older"), (3, "newer")].map(|(generation, name)| {
            Desired { identity: identity(generation), content: content(name), retain, ..desired() }
        });
        let mut plans: [Vec<Action>; 2] = Default::default();
        for is_newer in order {
            let (run, plan) = (&runs[usize::from(is_newer)], &mut plans[usize::from(is_newer)]);
            if plan.is_empty() {
                *plan = store(run, &world.observe()).actions;
                continue;
            }
            let before = world.generation();
            let action = plan.remove(0);
            if !world.act(&action, run) {
                plan.clear();
            }
            prop_assert!(world.generation() >= before, "{:?} after {:?}", world.generation(), before);
        }
        world.apply(&store(&runs[1], &world.observe()), &runs[1], usize::MAX);
        let newest = world.versions.last_key_value().map(|(_, state)| *state);
        prop_assert_eq!(newest, Some(VersionState::Live(content("newer"))));
    }
}
