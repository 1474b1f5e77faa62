-- Credentials. `record` holds what is not searched for. Times are microseconds since 1970; a `due` of the greatest number waits
-- for a change. `published` repeats that of the record. `slot` is the place in the life of a cluster that only one credential has.
CREATE TABLE credentials (
  id           TEXT COLLATE "C" PRIMARY KEY,
  registry     TEXT COLLATE "C" NOT NULL,
  account      TEXT COLLATE "C" NOT NULL,
  state        TEXT COLLATE "C" NOT NULL,
  reason       TEXT COLLATE "C" NOT NULL,
  cluster_id   TEXT COLLATE "C",
  incarnation  BIGINT,
  replaces     TEXT COLLATE "C",
  slot         TEXT COLLATE "C",
  published    BIGINT,
  record       TEXT NOT NULL,
  password     TEXT,
  lane         BIGINT NOT NULL,
  due          BIGINT NOT NULL,
  leased_by    TEXT,
  leased_until BIGINT NOT NULL,
  version      BIGINT NOT NULL
);

-- The name of an account is used once.
CREATE UNIQUE INDEX credentials_account ON credentials (registry, account);
CREATE UNIQUE INDEX credentials_slot ON credentials (slot);
-- With the id, so that many that are due at the same time, as after an order about all, need no sort.
CREATE INDEX credentials_due ON credentials (registry, lane, due, id);
CREATE INDEX credentials_state ON credentials (registry, state, id);
CREATE INDEX credentials_reason ON credentials (registry, state, reason);
CREATE INDEX credentials_unadopted ON credentials (registry, published) WHERE state = 'Published';
CREATE INDEX credentials_by_key ON credentials (split_part(password, '.', 1), id) WHERE password IS NOT NULL;
CREATE INDEX credentials_cluster ON credentials (cluster_id, id);
CREATE INDEX credentials_replaces ON credentials (replaces);

CREATE TABLE credential_events (
  number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  credential TEXT COLLATE "C" NOT NULL,
  registry   TEXT NOT NULL,
  cluster_id TEXT,
  actor      TEXT NOT NULL,
  action     TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  reason     TEXT NOT NULL,
  remark     TEXT,
  time       BIGINT NOT NULL
);

CREATE INDEX credential_events_credential ON credential_events (credential, number);

CREATE FUNCTION credential_events_are_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are only ever added';
END
$$;
CREATE TRIGGER credential_events_stay BEFORE UPDATE OR DELETE ON credential_events
FOR EACH ROW EXECUTE FUNCTION credential_events_are_kept();

-- The hash chain of the events. A link covers those after the link before it, through the event of that number; `seal` is nothing,
-- sealed for this link.
CREATE TABLE credential_event_links (
  number  BIGINT PRIMARY KEY,
  through BIGINT NOT NULL,
  time    BIGINT NOT NULL,
  hash    TEXT NOT NULL,
  seal    TEXT NOT NULL
);

CREATE TRIGGER credential_event_links_stay BEFORE UPDATE OR DELETE ON credential_event_links
FOR EACH ROW EXECUTE FUNCTION credential_events_are_kept();

-- The calls of each registry, shared by all replicas.
CREATE TABLE registry_budgets (
  registry      TEXT COLLATE "C" PRIMARY KEY,
  next          BIGINT NOT NULL,
  blocked_until BIGINT NOT NULL
);

-- Rotations: new credentials for many clusters. One of each registry is not over.
CREATE TABLE rotations (
  name          TEXT COLLATE "C" PRIMARY KEY,
  registry      TEXT COLLATE "C" NOT NULL,
  plan          TEXT NOT NULL,
  phase         TEXT COLLATE "C" NOT NULL,
  reason        TEXT NOT NULL,
  current_group BIGINT NOT NULL,
  tolerated     BIGINT NOT NULL,
  history       TEXT NOT NULL,
  paid_off      BIGINT NOT NULL,
  started       BIGINT NOT NULL,
  updated       BIGINT NOT NULL
);

CREATE UNIQUE INDEX rotations_open ON rotations (registry) WHERE phase IN ('Running', 'Paused', 'Stopped');

-- The clusters of a rotation, each with the credential that it had.
CREATE TABLE rotation_members (
  rotation     TEXT COLLATE "C" NOT NULL,
  credential   TEXT COLLATE "C" NOT NULL,
  cluster      TEXT COLLATE "C" NOT NULL,
  member_group BIGINT NOT NULL,
  standing     TEXT COLLATE "C" NOT NULL,
  cause        TEXT,
  started      BIGINT,
  settled      BIGINT,
  PRIMARY KEY (rotation, credential)
);

CREATE INDEX rotation_members_standing ON rotation_members (rotation, member_group, standing, cluster);
CREATE INDEX rotation_members_begun ON rotation_members (rotation, standing) WHERE standing = 'InProgress';

-- The pull secrets of all clusters as they were last looked at, and their entries without their credentials. `readable` is 0 for one
-- that is by reference, hidden or no document. `since` is the time at which the credential was made, or, with `made` 0, first seen.
CREATE TABLE pull_secrets (
  cluster_id  TEXT COLLATE "C" PRIMARY KEY,
  incarnation BIGINT NOT NULL,
  generation  BIGINT NOT NULL,
  readable    BIGINT NOT NULL,
  looked      BIGINT NOT NULL
);

CREATE INDEX pull_secrets_unread ON pull_secrets (cluster_id) WHERE readable = 0;

CREATE TABLE pull_secret_entries (
  cluster_id TEXT COLLATE "C" NOT NULL,
  host       TEXT COLLATE "C" NOT NULL,
  digest_key TEXT NOT NULL,
  digest     TEXT NOT NULL,
  credential TEXT,
  since      BIGINT NOT NULL,
  made       BIGINT NOT NULL,
  expires    BIGINT,
  PRIMARY KEY (cluster_id, host)
);

CREATE INDEX pull_secret_entries_expires ON pull_secret_entries (expires) WHERE expires IS NOT NULL;

-- The time of the next pass over all pull secrets, which one replica makes.
CREATE TABLE pull_secret_passes (
  id   BIGINT PRIMARY KEY,
  next BIGINT NOT NULL
);

-- Credentials that AMS has made, as they were imported. `pass` is the import that has seen it last; `deleted` is our deletion in AMS.
CREATE TABLE ams_credentials (
  id             TEXT COLLATE "C" PRIMARY KEY,
  registry       TEXT COLLATE "C" NOT NULL,
  username       TEXT COLLATE "C" NOT NULL,
  token          TEXT,
  account        TEXT COLLATE "C",
  resource       TEXT COLLATE "C",
  created        BIGINT,
  pass           BIGINT NOT NULL,
  delete_started BIGINT,
  deleted        BIGINT
);

CREATE INDEX ams_credentials_username ON ams_credentials (username);
CREATE INDEX ams_credentials_pass ON ams_credentials (pass, registry);
CREATE INDEX ams_credentials_by_key ON ams_credentials (split_part(token, '.', 1), id) WHERE token IS NOT NULL;

-- Imports, each with the numbers of its registries once it has read all.
CREATE TABLE ams_imports (
  pass     BIGINT PRIMARY KEY,
  started  BIGINT NOT NULL,
  finished BIGINT,
  counts   TEXT
);

-- Clusters as they were compared with AMS. `clean_since` is the beginning of the time without a difference.
CREATE TABLE ams_clusters (
  cluster_id  TEXT COLLATE "C" PRIMARY KEY,
  incarnation BIGINT NOT NULL,
  pass        BIGINT NOT NULL,
  looked      BIGINT NOT NULL,
  clean_since BIGINT,
  differences TEXT NOT NULL
);

-- The entries of their pull secrets, without passwords.
CREATE TABLE ams_entries (
  cluster_id TEXT COLLATE "C" NOT NULL,
  host       TEXT COLLATE "C" NOT NULL,
  username   TEXT COLLATE "C",
  finding    TEXT COLLATE "C" NOT NULL,
  credential TEXT COLLATE "C",
  PRIMARY KEY (cluster_id, host)
);

-- The clusters that had a credential of AMS; a row stays when the cluster has another one.
CREATE TABLE ams_uses (
  credential TEXT COLLATE "C" NOT NULL,
  cluster_id TEXT COLLATE "C" NOT NULL,
  host       TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (credential, cluster_id, host)
);

CREATE INDEX ams_uses_cluster ON ams_uses (cluster_id, credential);

CREATE TABLE write_probe (id BIGINT PRIMARY KEY, time BIGINT NOT NULL, filler TEXT NOT NULL);
