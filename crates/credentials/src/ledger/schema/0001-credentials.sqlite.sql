-- Credentials. `record` holds what is not searched for. Times are microseconds since 1970; a `due` of the greatest number waits
-- for a change. `published` repeats that of the record. `slot` is the place in the life of a cluster that only one credential has.
CREATE TABLE credentials (
  id           TEXT PRIMARY KEY,
  registry     TEXT NOT NULL,
  account      TEXT NOT NULL,
  state        TEXT NOT NULL,
  reason       TEXT NOT NULL,
  cluster_id   TEXT,
  incarnation  INTEGER,
  replaces     TEXT,
  slot         TEXT,
  published    INTEGER,
  record       TEXT NOT NULL,
  password     TEXT,
  lane         INTEGER NOT NULL,
  due          INTEGER NOT NULL,
  leased_by    TEXT,
  leased_until INTEGER NOT NULL,
  version      INTEGER NOT NULL
) STRICT;

-- The name of an account is used once.
CREATE UNIQUE INDEX credentials_account ON credentials (registry, account);
CREATE UNIQUE INDEX credentials_slot ON credentials (slot);
-- With the id, so that many that are due at the same time, as after an order about all, need no sort.
CREATE INDEX credentials_due ON credentials (registry, lane, due, id);
CREATE INDEX credentials_state ON credentials (registry, state, id);
CREATE INDEX credentials_reason ON credentials (registry, state, reason);
CREATE INDEX credentials_unadopted ON credentials (registry, published) WHERE state = 'Published';
CREATE INDEX credentials_by_key ON credentials (substr(password, 1, instr(password, '.') - 1), id) WHERE password IS NOT NULL;
CREATE INDEX credentials_cluster ON credentials (cluster_id, id);
CREATE INDEX credentials_replaces ON credentials (replaces);

CREATE TABLE credential_events (
  number     INTEGER PRIMARY KEY AUTOINCREMENT,
  credential TEXT NOT NULL,
  registry   TEXT NOT NULL,
  cluster_id TEXT,
  actor      TEXT NOT NULL,
  action     TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  reason     TEXT NOT NULL,
  remark     TEXT,
  time       INTEGER NOT NULL
) STRICT;

CREATE INDEX credential_events_credential ON credential_events (credential, number);

CREATE TRIGGER credential_events_stay BEFORE UPDATE ON credential_events
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
CREATE TRIGGER credential_events_remain BEFORE DELETE ON credential_events
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;

-- The hash chain of the events. A link covers those after the link before it, through the event of that number; `seal` is nothing,
-- sealed for this link.
CREATE TABLE credential_event_links (
  number  INTEGER PRIMARY KEY,
  through INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  hash    TEXT NOT NULL,
  seal    TEXT NOT NULL
) STRICT;

CREATE TRIGGER credential_event_links_stay BEFORE UPDATE ON credential_event_links
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
CREATE TRIGGER credential_event_links_remain BEFORE DELETE ON credential_event_links
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;

-- The calls of each registry, shared by all replicas.
CREATE TABLE registry_budgets (
  registry      TEXT PRIMARY KEY,
  next          INTEGER NOT NULL,
  blocked_until INTEGER NOT NULL
) STRICT;

-- Rotations: new credentials for many clusters. One of each registry is not over.
CREATE TABLE rotations (
  name          TEXT PRIMARY KEY,
  registry      TEXT NOT NULL,
  plan          TEXT NOT NULL,
  phase         TEXT NOT NULL,
  reason        TEXT NOT NULL,
  current_group INTEGER NOT NULL,
  tolerated     INTEGER NOT NULL,
  history       TEXT NOT NULL,
  paid_off      INTEGER NOT NULL,
  started       INTEGER NOT NULL,
  updated       INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX rotations_open ON rotations (registry) WHERE phase IN ('Running', 'Paused', 'Stopped');

-- The clusters of a rotation, each with the credential that it had.
CREATE TABLE rotation_members (
  rotation     TEXT NOT NULL,
  credential   TEXT NOT NULL,
  cluster      TEXT NOT NULL,
  member_group INTEGER NOT NULL,
  standing     TEXT NOT NULL,
  cause        TEXT,
  started      INTEGER,
  settled      INTEGER,
  PRIMARY KEY (rotation, credential)
) STRICT;

CREATE INDEX rotation_members_standing ON rotation_members (rotation, member_group, standing, cluster);
CREATE INDEX rotation_members_begun ON rotation_members (rotation, standing) WHERE standing = 'InProgress';

-- The pull secrets of all clusters as they were last looked at, and their entries without their credentials. `readable` is 0 for one
-- that is by reference, hidden or no document. `since` is the time at which the credential was made, or, with `made` 0, first seen.
CREATE TABLE pull_secrets (
  cluster_id  TEXT PRIMARY KEY,
  incarnation INTEGER NOT NULL,
  generation  INTEGER NOT NULL,
  readable    INTEGER NOT NULL,
  looked      INTEGER NOT NULL
) STRICT;

CREATE INDEX pull_secrets_unread ON pull_secrets (cluster_id) WHERE readable = 0;

CREATE TABLE pull_secret_entries (
  cluster_id TEXT NOT NULL,
  host       TEXT NOT NULL,
  digest_key TEXT NOT NULL,
  digest     TEXT NOT NULL,
  credential TEXT,
  since      INTEGER NOT NULL,
  made       INTEGER NOT NULL,
  expires    INTEGER,
  PRIMARY KEY (cluster_id, host)
) STRICT;

CREATE INDEX pull_secret_entries_expires ON pull_secret_entries (expires) WHERE expires IS NOT NULL;

-- The time of the next pass over all pull secrets, which one replica makes.
CREATE TABLE pull_secret_passes (
  id   INTEGER PRIMARY KEY,
  next INTEGER NOT NULL
) STRICT;

-- Credentials that AMS has made, as they were imported. `pass` is the import that has seen it last; `deleted` is our deletion in AMS.
CREATE TABLE ams_credentials (
  id             TEXT PRIMARY KEY,
  registry       TEXT NOT NULL,
  username       TEXT NOT NULL,
  token          TEXT,
  account        TEXT,
  resource       TEXT,
  created        INTEGER,
  pass           INTEGER NOT NULL,
  delete_started INTEGER,
  deleted        INTEGER
) STRICT;

CREATE INDEX ams_credentials_username ON ams_credentials (username);
CREATE INDEX ams_credentials_pass ON ams_credentials (pass, registry);
CREATE INDEX ams_credentials_by_key ON ams_credentials (substr(token, 1, instr(token, '.') - 1), id) WHERE token IS NOT NULL;

-- Imports, each with the numbers of its registries once it has read all.
CREATE TABLE ams_imports (
  pass     INTEGER PRIMARY KEY,
  started  INTEGER NOT NULL,
  finished INTEGER,
  counts   TEXT
) STRICT;

-- Clusters as they were compared with AMS. `clean_since` is the beginning of the time without a difference.
CREATE TABLE ams_clusters (
  cluster_id  TEXT PRIMARY KEY,
  incarnation INTEGER NOT NULL,
  pass        INTEGER NOT NULL,
  looked      INTEGER NOT NULL,
  clean_since INTEGER,
  differences TEXT NOT NULL
) STRICT;

-- The entries of their pull secrets, without passwords.
CREATE TABLE ams_entries (
  cluster_id TEXT NOT NULL,
  host       TEXT NOT NULL,
  username   TEXT,
  finding    TEXT NOT NULL,
  credential TEXT,
  PRIMARY KEY (cluster_id, host)
) STRICT;

-- The clusters that had a credential of AMS; a row stays when the cluster has another one.
CREATE TABLE ams_uses (
  credential TEXT NOT NULL,
  cluster_id TEXT NOT NULL,
  host       TEXT NOT NULL,
  PRIMARY KEY (credential, cluster_id, host)
) STRICT;

CREATE INDEX ams_uses_cluster ON ams_uses (cluster_id, credential);

CREATE TABLE write_probe (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, filler TEXT NOT NULL) STRICT;
