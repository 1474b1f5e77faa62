-- Resources, with their tables for searches, lists and the change stream. `object` is the resource as rendered JSON, so
-- that reads return it without rendering.
CREATE TABLE resources (
  id           TEXT COLLATE "C" PRIMARY KEY,
  kind         TEXT COLLATE "C" NOT NULL,
  name         TEXT COLLATE "C" NOT NULL,
  href         TEXT COLLATE "C" NOT NULL,
  owner_id     TEXT COLLATE "C" REFERENCES resources (id),
  owner_kind   TEXT COLLATE "C",
  owner_href   TEXT COLLATE "C",
  tenancy      TEXT COLLATE "C" NOT NULL,
  generation   BIGINT NOT NULL,
  created_time BIGINT NOT NULL,
  created_by   TEXT COLLATE "C" NOT NULL,
  updated_time BIGINT NOT NULL,
  updated_by   TEXT COLLATE "C" NOT NULL,
  deleted_time BIGINT,
  deleted_by   TEXT COLLATE "C",
  spec         JSONB NOT NULL,
  state        TEXT NOT NULL,
  object       TEXT NOT NULL,
  sealed       TEXT
);

-- Names are unique among active resources: of a kind and tenancy, or of a kind and owner.
CREATE UNIQUE INDEX resources_root_name ON resources (kind, name, tenancy) WHERE deleted_time IS NULL AND owner_id IS NULL;
CREATE UNIQUE INDEX resources_child_name ON resources (kind, owner_id, name) WHERE deleted_time IS NULL AND owner_id IS NOT NULL;
CREATE INDEX resources_by_name ON resources (kind, name, id);
CREATE INDEX resources_by_created_time ON resources (kind, created_time, id);
CREATE INDEX resources_by_updated_time ON resources (kind, updated_time, id);
CREATE INDEX resources_by_owner ON resources (owner_id, kind, created_time, id);
CREATE INDEX resources_by_spec ON resources USING GIN (spec jsonb_path_ops);

CREATE TABLE resource_labels (
  resource_id TEXT COLLATE "C" NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  key         TEXT COLLATE "C" NOT NULL,
  value       TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (resource_id, key)
);
CREATE INDEX resource_labels_by_value ON resource_labels (key, value, resource_id);

CREATE TABLE resource_conditions (
  resource_id          TEXT COLLATE "C" NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  type                 TEXT COLLATE "C" NOT NULL,
  status               TEXT COLLATE "C" NOT NULL,
  observed_generation  BIGINT NOT NULL,
  last_updated_time    BIGINT NOT NULL,
  last_transition_time BIGINT NOT NULL,
  PRIMARY KEY (resource_id, type)
);
CREATE INDEX resource_conditions_by_status ON resource_conditions (type, status, resource_id);

CREATE TABLE resource_references (
  source_id TEXT COLLATE "C" NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  ref_type  TEXT COLLATE "C" NOT NULL,
  target_id TEXT COLLATE "C" NOT NULL REFERENCES resources (id),
  PRIMARY KEY (source_id, ref_type, target_id)
);
CREATE INDEX resource_references_by_target ON resource_references (target_id);

-- The last transitions of each resource's conditions; `number` counts up within a resource.
CREATE TABLE transitions (
  resource_id         TEXT COLLATE "C" NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  number              BIGINT NOT NULL,
  adapter             TEXT COLLATE "C" NOT NULL,
  type                TEXT COLLATE "C" NOT NULL,
  from_status         TEXT,
  to_status           TEXT NOT NULL,
  reason              TEXT,
  message             TEXT,
  observed_generation BIGINT NOT NULL,
  time                BIGINT NOT NULL,
  PRIMARY KEY (resource_id, number)
);

-- The change stream. Versions are assigned under a lock, as the last step of a transaction: a reader that has read one
-- has read all lower ones.
CREATE TABLE change_counter (id BIGINT PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL);
INSERT INTO change_counter (id, version) VALUES (1, 0);
CREATE TABLE changes (
  version     BIGINT PRIMARY KEY,
  kind        TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C" NOT NULL,
  type        TEXT NOT NULL,
  time        BIGINT NOT NULL,
  object      TEXT NOT NULL
);
CREATE INDEX changes_by_time ON changes (time);
