-- Resources, with their tables for searches, lists and the change stream. `object` is the resource as rendered JSON, so
-- that reads return it without rendering.
CREATE TABLE resources (
  id           TEXT PRIMARY KEY,
  kind         TEXT NOT NULL,
  name         TEXT NOT NULL,
  href         TEXT NOT NULL,
  owner_id     TEXT REFERENCES resources (id),
  owner_kind   TEXT,
  owner_href   TEXT,
  tenancy      TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  created_time INTEGER NOT NULL,
  created_by   TEXT NOT NULL,
  updated_time INTEGER NOT NULL,
  updated_by   TEXT NOT NULL,
  deleted_time INTEGER,
  deleted_by   TEXT,
  spec         TEXT NOT NULL,
  state        TEXT NOT NULL,
  object       TEXT NOT NULL,
  sealed       TEXT
) STRICT;

-- Names are unique among active resources: of a kind and tenancy, or of a kind and owner.
CREATE UNIQUE INDEX resources_root_name ON resources (kind, name, tenancy) WHERE deleted_time IS NULL AND owner_id IS NULL;
CREATE UNIQUE INDEX resources_child_name ON resources (kind, owner_id, name) WHERE deleted_time IS NULL AND owner_id IS NOT NULL;
CREATE INDEX resources_by_name ON resources (kind, name, id);
CREATE INDEX resources_by_created_time ON resources (kind, created_time, id);
CREATE INDEX resources_by_updated_time ON resources (kind, updated_time, id);
CREATE INDEX resources_by_owner ON resources (owner_id, kind, created_time, id);

CREATE TABLE resource_labels (
  resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  key         TEXT NOT NULL,
  value       TEXT NOT NULL,
  PRIMARY KEY (resource_id, key)
) STRICT;
CREATE INDEX resource_labels_by_value ON resource_labels (key, value, resource_id);

CREATE TABLE resource_conditions (
  resource_id          TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  type                 TEXT NOT NULL,
  status               TEXT NOT NULL,
  observed_generation  INTEGER NOT NULL,
  last_updated_time    INTEGER NOT NULL,
  last_transition_time INTEGER NOT NULL,
  PRIMARY KEY (resource_id, type)
) STRICT;
CREATE INDEX resource_conditions_by_status ON resource_conditions (type, status, resource_id);

CREATE TABLE resource_references (
  source_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  ref_type  TEXT NOT NULL,
  target_id TEXT NOT NULL REFERENCES resources (id),
  PRIMARY KEY (source_id, ref_type, target_id)
) STRICT;
CREATE INDEX resource_references_by_target ON resource_references (target_id);

-- The last transitions of each resource's conditions; `number` counts up within a resource.
CREATE TABLE transitions (
  resource_id         TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  number              INTEGER NOT NULL,
  adapter             TEXT NOT NULL,
  type                TEXT NOT NULL,
  from_status         TEXT,
  to_status           TEXT NOT NULL,
  reason              TEXT,
  message             TEXT,
  observed_generation INTEGER NOT NULL,
  time                INTEGER NOT NULL,
  PRIMARY KEY (resource_id, number)
) STRICT;

-- The change stream. Versions are assigned under a lock, as the last step of a transaction: a reader that has read one
-- has read all lower ones.
CREATE TABLE change_counter (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO change_counter (id, version) VALUES (1, 0);
CREATE TABLE changes (
  version     INTEGER PRIMARY KEY,
  kind        TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  type        TEXT NOT NULL,
  time        INTEGER NOT NULL,
  object      TEXT NOT NULL
) STRICT;
CREATE INDEX changes_by_time ON changes (time);
