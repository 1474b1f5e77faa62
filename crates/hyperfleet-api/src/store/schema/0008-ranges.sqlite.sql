-- Labels and conditions get what lists are restricted to and ordered by, so that those with one value are one range of an index,
-- in the order of a list. The tables are made anew, without the numbers of rows that SQLite adds: a row is found in one step.
CREATE TABLE new_labels (
  resource_id  TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  key          TEXT NOT NULL,
  value        TEXT NOT NULL,
  kind         TEXT NOT NULL,
  tenancy      TEXT NOT NULL,
  created_time INTEGER NOT NULL,
  PRIMARY KEY (resource_id, key)
) STRICT, WITHOUT ROWID;
-- Of resources only an index is read.
INSERT INTO new_labels SELECT m.resource_id, m.key, m.value, r.kind, r.tenancy, r.created_time
FROM resources r INDEXED BY resources_by_tenancy CROSS JOIN resource_labels m ON m.resource_id = r.id;
DROP TABLE resource_labels;
ALTER TABLE new_labels RENAME TO resource_labels;
CREATE INDEX resource_labels_by_value ON resource_labels (key, value, kind, created_time, resource_id);
CREATE INDEX resource_labels_by_tenancy ON resource_labels (key, value, kind, tenancy, created_time, resource_id);

CREATE TABLE new_conditions (
  resource_id          TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  type                 TEXT NOT NULL,
  status               TEXT NOT NULL,
  observed_generation  INTEGER NOT NULL,
  last_updated_time    INTEGER NOT NULL,
  last_transition_time INTEGER NOT NULL,
  reason               TEXT,
  kind                 TEXT NOT NULL,
  created_time         INTEGER NOT NULL,
  PRIMARY KEY (resource_id, type)
) STRICT, WITHOUT ROWID;
INSERT INTO new_conditions SELECT m.resource_id, m.type, m.status, m.observed_generation, m.last_updated_time,
  m.last_transition_time, m.reason, r.kind, r.created_time
FROM resources r INDEXED BY resources_by_tenancy CROSS JOIN resource_conditions m ON m.resource_id = r.id;
DROP TABLE resource_conditions;
ALTER TABLE new_conditions RENAME TO resource_conditions;
CREATE INDEX resource_conditions_by_status ON resource_conditions (type, status, kind, created_time, resource_id);
CREATE INDEX resource_conditions_by_reason ON resource_conditions (type, reason, kind, created_time, resource_id);

-- A search for other columns walks through this index, not through the resources themselves, which are large.
DROP INDEX resources_by_created_time;
CREATE INDEX resources_by_created_time ON resources (kind, created_time, id, tenancy, name, generation, updated_time, deleted_time,
  owner_id);
