-- Labels and conditions get what lists are restricted to and ordered by, so that those with one value are one range of an index,
-- in the order of a list. The tables are made anew, which is faster than changing each row; no write may come between.
LOCK TABLE resources, resource_labels, resource_conditions IN ACCESS EXCLUSIVE MODE;

CREATE TABLE new_labels (
  resource_id  TEXT COLLATE "C" NOT NULL,
  key          TEXT COLLATE "C" NOT NULL,
  value        TEXT COLLATE "C" NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  tenancy      TEXT COLLATE "C" NOT NULL,
  created_time BIGINT NOT NULL
);
INSERT INTO new_labels SELECT m.resource_id, m.key, m.value, r.kind, r.tenancy, r.created_time
FROM resource_labels m JOIN resources r ON r.id = m.resource_id;
DROP TABLE resource_labels;
ALTER TABLE new_labels RENAME TO resource_labels;
ALTER TABLE resource_labels ADD PRIMARY KEY (resource_id, key),
  ADD FOREIGN KEY (resource_id) REFERENCES resources (id) ON DELETE CASCADE;
CREATE INDEX resource_labels_by_value ON resource_labels (key, value, kind, created_time, resource_id);
CREATE INDEX resource_labels_by_tenancy ON resource_labels (key, value, kind, tenancy, created_time, resource_id);
ANALYZE resource_labels;

CREATE TABLE new_conditions (
  resource_id          TEXT COLLATE "C" NOT NULL,
  type                 TEXT COLLATE "C" NOT NULL,
  status               TEXT COLLATE "C" NOT NULL,
  observed_generation  BIGINT NOT NULL,
  last_updated_time    BIGINT NOT NULL,
  last_transition_time BIGINT NOT NULL,
  reason               TEXT COLLATE "C",
  kind                 TEXT COLLATE "C" NOT NULL,
  created_time         BIGINT NOT NULL
) WITH (fillfactor = 70);
INSERT INTO new_conditions SELECT m.resource_id, m.type, m.status, m.observed_generation, m.last_updated_time,
  m.last_transition_time, m.reason, r.kind, r.created_time FROM resource_conditions m JOIN resources r ON r.id = m.resource_id;
DROP TABLE resource_conditions;
ALTER TABLE new_conditions RENAME TO resource_conditions;
ALTER TABLE resource_conditions ADD PRIMARY KEY (resource_id, type),
  ADD FOREIGN KEY (resource_id) REFERENCES resources (id) ON DELETE CASCADE;
CREATE INDEX resource_conditions_by_status ON resource_conditions (type, status, kind, created_time, resource_id);
CREATE INDEX resource_conditions_by_reason ON resource_conditions (type, reason, kind, created_time, resource_id);
ANALYZE resource_conditions;

-- A search for other columns walks through this index, not through the resources themselves, which are large.
DROP INDEX resources_by_created_time;
CREATE INDEX resources_by_created_time ON resources (kind, created_time, id)
  INCLUDE (tenancy, name, generation, updated_time, deleted_time, owner_id);
